// The extents' own entry of the image says which axes are open; the others must be as
// they were packed.
#include "runtime_stub/program/open_inputs.h"

#include "runtime_stub/platform.h"
#include "runtime_stub/program/element_runs.h"
#ifdef SVOD_PICTURES
#include "runtime_stub/program/pictures.h"
#endif

namespace packed {

static const SvodTensor* packed_input(const Session& session, uint32_t i) {
  return svod_input(session.model.image, session.entry, i);
}

uint32_t model_inputs(const Session& session) {
  uint32_t count = session.entry->input_count;
  while (count > 0 && packed_input(session, count - 1)->role != SVOD_ROLE_MODEL) count--;
  return count;
}

bool is_state(const Session& session, uint32_t i) {
  return packed_input(session, i)->role == SVOD_ROLE_STATE;
}

bool is_open(const Session& session, uint32_t i) {
  const SvodTensor* input = packed_input(session, i);
  return input->role == SVOD_ROLE_MODEL && input->shape_output != 0;
}

// One bit for each axis of which a run decides the size.
static uint32_t open_axes(const Session& session, uint32_t i) {
  const SvodTensor* input = packed_input(session, i);
#ifdef SVOD_STATES
  if (is_state(session, i)) {
    const SvodState* state =
        svod_state(session.model.image, session.entry, input->shape_output - 1);
    return state->counter == 0 ? 0 : uint32_t{1} << state->axis;
  }
#endif
  return is_open(session, i)
             ? packed_input(session, input->shape_output - 1)->shape_output
             : 0;
}

// Of a state that grows the most rows with which a run may begin: it has room for more.
Tensor most_of(const Session& session, uint32_t i) {
  Tensor most = input_type(session, i);
#ifdef SVOD_STATES
  if (open_axes(session, i) == 0 || !is_state(session, i)) return most;
  const void* image = session.model.image;
  const SvodState* state =
      svod_state(image, session.entry, packed_input(session, i)->shape_output - 1);
  most.dims[state->axis] =
      static_cast<int64_t>(svod_state(image, session.entry, state->counter - 1)->most);
#endif
  return most;
}

bool takes_shape(const Session& session, uint32_t i, const Tensor& tensor) {
  const Tensor most = most_of(session, i);
  const uint32_t open = open_axes(session, i);
  bool takes = most.rank == tensor.rank;
  for (uint32_t axis = 0; takes && axis < most.rank; axis++) {
    takes = (open >> axis & 1) != 0 ? tensor.dims[axis] <= most.dims[axis]
                                    : tensor.dims[axis] == most.dims[axis];
  }
  return takes;
}

bool takes_type(const Session& session, uint32_t i, const Tensor& tensor) {
  return tensor.element == input_type(session, i).element &&
         takes_shape(session, i, tensor);
}

void set_extents(Session& session, uint32_t i, const Tensor& tensor) {
  const void* extents = session.inputs[packed_input(session, i)->shape_output - 1];
  for (uint32_t axis = 0; axis < tensor.rank; axis++) {
    static_cast<int64_t*>(const_cast<void*>(extents))[axis] = tensor.dims[axis];
  }
}

bool clear_inputs(Session& session) {
  const uint32_t count = session.entry->input_count;
#ifdef SVOD_PICTURES
  if (!keep_origins(session)) return false;
#endif
  for (uint32_t i = 0; i < count; i++) session.inputs[i] = nullptr;
  for (uint32_t i = 0; i < count; i++) {
    if (!is_open(session, i)) continue;
    const Tensor most = input_type(session, i);
    const void*& extents = session.inputs[packed_input(session, i)->shape_output - 1];
    extents = take_memory(most.rank * sizeof(int64_t));
    if (extents == nullptr) return false;
    set_extents(session, i, most);
  }
  return true;
}

bool spread_input(Session& session, uint32_t i, const Tensor& tensor) {
  session.inputs[i] = take_memory(input_type(session, i).bytes());
  if (session.inputs[i] == nullptr) return false;
  spread_elements(session, i, tensor);
  return true;
}

void spread_elements(Session& session, uint32_t i, const Tensor& tensor) {
  const Tensor most = input_type(session, i);
  auto to = static_cast<uint8_t*>(const_cast<void*>(session.inputs[i]));
  set_extents(session, i, tensor);
  const auto from = static_cast<const uint8_t*>(tensor.data);
  const Element& element = *most.element;
  const uint64_t bytes = most.element_bytes();
  each_run(most, tensor.dims, [&](uint64_t apart, uint64_t together, uint64_t count) {
    if (element.packed()) {
      store_bits(element, to, apart, load_bits(element, from, together));
    } else {
      memcpy(to + apart * bytes, from + together * bytes,
             static_cast<size_t>(count * bytes));
    }
  });
}

void print_input_type(Printer& out, const Session& session, uint32_t i) {
#ifdef SVOD_PICTURES
  if (is_picture(session, i)) {
    out << "a picture file, in an array u8[bytes]";
    return;
  }
#endif
  const Tensor type = most_of(session, i);
  print_type(out, type.element, type.rank, type.dims);
  if (open_axes(session, i) != 0) out << ", at most";
}

} // namespace packed
