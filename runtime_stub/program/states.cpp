// What a program does with its states beside running: it begins with others, goes on to
// the entry that has room for them as they grow, and says when none has.
#include "runtime_stub/platform.h"
#include "runtime_stub/program/open_inputs.h"
#ifdef SVOD_STATES
#include "runtime_stub/states.h"
#endif

namespace packed {

void reset_states([[maybe_unused]] Session& session) {
#ifdef SVOD_STATES
  memset(session.states, 0, static_cast<size_t>(session.state_bytes));
#endif
}

void set_state([[maybe_unused]] Session& session, [[maybe_unused]] uint32_t i,
               [[maybe_unused]] const Tensor& tensor) {
#ifdef SVOD_STATES
  const void* image = session.model.image;
  const uint32_t number = svod_input(image, session.entry, i)->shape_output - 1;
  const SvodState* state = svod_state(image, session.entry, number);
  const int64_t rows = state->counter == 0 ? 0 : tensor.dims[state->axis];
  svod_set_state(image, session.entry, session.states, number, tensor.data,
                 static_cast<uint64_t>(rows));
  session.inputs[i] = tensor.data; // it is given
#endif
}

void enter_next([[maybe_unused]] Session& session) {
#if defined(SVOD_STATES) && defined(SVOD_SEVERAL_ENTRIES)
  if (session.forgets) reset_states(session);
  const void* image = session.model.image;
  session.entry = svod_entry(image, svod_state_entry(image, session.states));
#endif
}

Tensor counted_type(const Session& session, uint32_t i) {
  Tensor out = input_type(session, i);
#ifdef SVOD_STATES
  const void* image = session.model.image;
  const SvodTensor* input = svod_input(image, session.entry, i);
  if (input->counter == 0) return out;
  const uint32_t counter = input->counter - 1;
  const uint64_t most = svod_state(image, session.entry, counter)->most;
  const uint64_t held =
      session.forgets ? 0
                      : svod_counted_rows(image, session.entry, session.states, counter);
  const uint64_t fewer = held < most ? most - held : 0;
  for (uint32_t axis = 0; axis < out.rank; axis++)
    if ((input->counted_axes >> axis & 1) != 0)
      out.dims[axis] -= static_cast<int64_t>(fewer);
#endif
  return out;
}

#ifdef SVOD_STATES

void repeat_step(Session& session) {
  const void* image = session.model.image;
  bool grows = false, given = false;
  for (uint32_t i = 0; i < session.entry->state_count; i++) {
    const SvodState* state = svod_state(image, session.entry, i);
    if (state->counter == 0) continue;
    grows = true;
    given = given || session.inputs[state->input] != nullptr;
  }
  session.repeats = grows;
  if (grows) session.forgets = false; // or a repeated step would hold no rows
  for (uint32_t i = 0; !given && i < session.entry->state_count; i++) {
    const SvodState* state = svod_state(image, session.entry, i);
    if (state->counter == 0) continue;
    const uint32_t counter = state->counter - 1;
    svod_set_state(image, session.entry, session.states, counter,
                   &svod_state(image, session.entry, counter)->most, 0);
  }
}

Exit check_full(const Session& session, Printer& errors) {
  const void* image = session.model.image;
  const uint32_t full = svod_full_state(image, session.entry, session.states);
  if (full == session.entry->state_count) return EXIT_DONE;
  const SvodState* state = svod_state(image, session.entry, full);
  const uint32_t counter = state->counter - 1;
  errors << "error: the state '";
  errors.name(input_type(session, state->input).name)
      << "' is full: it holds "
      << svod_counted_rows(image, session.entry, session.states, counter)
      << " rows, and a run begins with at most "
      << svod_state(image, session.entry, counter)->most
      << "; begin anew, or pack with a larger --dim\n";
  return EXIT_INDEX;
}

#endif

} // namespace packed
