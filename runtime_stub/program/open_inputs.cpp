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

bool takes_shape(const Session& session, uint32_t i, const Tensor& tensor) {
  const Tensor most = input_type(session, i);
  const uint32_t open =
      is_open(session, i)
          ? packed_input(session, packed_input(session, i)->shape_output - 1)
                ->shape_output
          : 0;
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

static void set_extents(Session& session, uint32_t i, const Tensor& tensor) {
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
  const Tensor most = input_type(session, i);
  auto to = static_cast<uint8_t*>(take_memory(most.bytes()));
  session.inputs[i] = to;
  if (to == nullptr) return false;
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
  return true;
}

void print_input_type(Printer& out, const Session& session, uint32_t i) {
#ifdef SVOD_PICTURES
  if (is_picture(session, i)) {
    out << "a picture file, in an array u8[bytes]";
    return;
  }
#endif
  const Tensor type = input_type(session, i);
  print_type(out, type.element, type.rank, type.dims);
  if (is_open(session, i)) out << ", at most";
}

} // namespace packed
