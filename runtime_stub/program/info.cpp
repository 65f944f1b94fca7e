// What was packed, from the image: the manifest as it stands, or the same for people.
#include "runtime_stub/program/binding.h"
#include "runtime_stub/program/modes.h"
#include "runtime_stub/program/open_inputs.h"
#ifdef SVOD_PICTURES
#include "runtime_stub/program/pictures.h"
#endif
#include "runtime_stub/program/value.h"

namespace packed {

static void print_tensor(Printer& out, const char* kind, uint32_t i,
                         const Tensor& tensor) {
  out << kind << " " << i << "  ";
  out.name(tensor.name) << " ";
  print_type(out, tensor.element, tensor.rank, tensor.dims);
}

// Sequences, optionals and maps, and which tensors they are.
static void print_values(Printer& out, const char* kind, const Session& session,
                         Side side) {
  for (uint32_t v = 0; v < value_count(session, side); v++) {
    Value value = value_at(session, side, v);
    if (value.is_tensor()) continue;
    out << "value    ";
    out.name(value.name) << ", " << kind << ": ";
    print_value_kind(out, session, value);
    if (value.count > 0) out << "; " << kind << " " << value.first;
    if (value.count > 1) out << " to " << value.first + value.count - 1;
    if (value.presence != 0) out << ", there when output " << value.presence - 1;
    out << "\n";
  }
}

static void print_steps(Printer& out, const Session& session) {
  for (uint32_t s = 0; s < session.entry->step_count; s++) {
    const SvodStep* step = svod_step(session.model.image, session.entry, s);
    out << "kernel   " << step_name(session, *step);
    out.column(16) << step->chunks << " parts, " << step->flops << " flops: ";
    out.name(text_of(session, step->sources)) << "\n";
  }
}

void print_info(const Session& session, bool json) {
  Printer out(1);
  const SvodHeader* header = svod_header(session.model.image);
  if (json) {
    out << text_of(session, header->manifest) << "\n";
    return;
  }
  out << "model    sha256 ";
  out.hexadecimal(header->model_sha256, 32) << "\n";
  for (uint32_t i = 0; i < model_inputs(session); i++) {
#ifdef SVOD_PICTURES
    if (is_picture(session, i)) {
      out << "input " << i << "  ";
      out.name(input_type(session, i).name) << " ";
      print_picture(out, session, i);
      out << "\n";
      continue;
    }
#endif
    print_tensor(out, "input", i, input_type(session, i));
    if (is_open(session, i)) out << ", at most; a run decides";
    if (packed_value(session, i).data != nullptr) {
      out << ", packed for ";
      print_packed_value(out, session, i);
    }
    out << "\n";
  }
  for (uint32_t i = 0; i < session.entry->output_count; i++) {
    if (svod_output(session.model.image, session.entry, i)->role == SVOD_ROLE_STATE)
      continue;
    print_tensor(out, "output", i, output_type(session, i));
    uint32_t extents = svod_output(session.model.image, session.entry, i)->shape_output;
    if (extents != 0) out << ", at most; extents are output " << extents - 1;
    out << "\n";
  }
  for (uint32_t i = 0, shown = 0; i < session.entry->state_count; i++) {
    const SvodState* state = svod_state(session.model.image, session.entry, i);
    if (is_counter(session, i)) continue;
    print_tensor(out, "state", shown++, input_type(session, state->input));
    out << ", of the next run ";
    out.name(output_type(session, state->output).name);
    if (state->counter != 0)
      out << ", grows along axis " << state->axis << "; a run begins with at most "
          << svod_state(session.model.image, session.entry, state->counter - 1)->most;
    out << "\n";
  }
  print_values(out, "input", session, Side::Input);
  print_values(out, "output", session, Side::Output);
  // What the header of a library calls ARENA_BYTES and the JSON bytes.arena.
  const SvodEntry& entry = *session.entry;
  const uint64_t arena = arena_bytes(session, 1);
  out << "arena    " << arena << " bytes for one thread, "
      << arena_bytes(session, 2) - arena << " more for each further one: temporaries "
      << entry.arena_bytes << " (lower bound " << entry.arena_lower_bound << "), scratch "
      << entry.scratch_bytes << ", tables "
      << arena - entry.arena_bytes - entry.scratch_bytes << "\n"
      << "weights  " << header->weight_bytes << " bytes\n"
      << "image    " << header->image_bytes << " bytes\n"
      << "levels  ";
  for (uint32_t i = 0; i < session.model.level_count; i++) {
    const SvodLevel& level = session.model.levels[i];
    const bool runs = svod_missing_features(level.features) == 0;
    out << " " << level.name << (runs ? "" : " (not on this CPU)");
  }
  out << "\n";
  print_steps(out, session);
}

} // namespace packed
