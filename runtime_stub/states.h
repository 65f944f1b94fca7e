// Tensors that stay from run to run: where a run finds them, and what is done behind it.
//
//   memory of the states:  a counter for each | pointers of all inputs | of all outputs |
//   places, each at its offset from here
//
// Memory of zeros is that of states before their first run.
#ifndef SVOD_STATES_H
#define SVOD_STATES_H

#include "runtime_stub/replay.h"

inline uint64_t svod_states_head(const SvodEntry* entry) {
  return svod_states_head(entry->state_count,
                          uint64_t{entry->input_count} + entry->output_count,
                          sizeof(void*));
}

// Bytes of the memory, a multiple of SVOD_ALIGN; 0 without states.
inline uint64_t svod_states_bytes(const void* image, const SvodEntry* entry) {
  if (entry->state_count == 0) return 0;
  uint64_t end = 0;
  for (uint32_t i = 0; i < entry->state_count; i++) {
    const SvodState* state = svod_state(image, entry, i);
    const uint64_t last = state->offset + state->bytes * svod_state_places(state->kind);
    if (last > end) end = last;
  }
  end = (end + SVOD_ALIGN - 1) & ~uint64_t{SVOD_ALIGN - 1};
  return svod_states_head(entry) + end;
}

// The pointers of a run, for the caller's tensors to be filled in.
inline const void** svod_state_inputs(const SvodEntry* entry, void* memory) {
  return reinterpret_cast<const void**>(static_cast<uint64_t*>(memory) +
                                        entry->state_count);
}

inline void** svod_state_outputs(const SvodEntry* entry, void* memory) {
  return const_cast<void**>(svod_state_inputs(entry, memory)) + entry->input_count;
}

inline uint8_t* svod_state_place(const SvodEntry* entry, const SvodState* state,
                                 void* memory) {
  return static_cast<uint8_t*>(memory) +
         static_cast<size_t>(svod_states_head(entry) + state->offset);
}

// Before a run: where its states lie.
inline void svod_bind_states(const void* image, const SvodEntry* entry, void* memory,
                             const void** inputs, void** outputs) {
  for (uint32_t i = 0; i < entry->state_count; i++) {
    const SvodState* state = svod_state(image, entry, i);
    const uint64_t done = static_cast<const uint64_t*>(memory)[i];
    uint8_t* const place = svod_state_place(entry, state, memory);
    uint8_t* const second = place + static_cast<size_t>(state->bytes);
    const bool odd = done != 0;
    uint8_t *in = place, *out = place;
    if (state->kind == SVOD_STATE_MOVES)
      in = out = place + static_cast<size_t>(state->step) * static_cast<size_t>(done);
    if (state->kind == SVOD_STATE_COPIED) out = second;
    if (state->kind == SVOD_STATE_TURNS)
      in = odd ? second : place, out = odd ? place : second;
    inputs[state->input] = in;
    outputs[state->output] = out;
  }
}

// Before the first run: what a state begins with, a tensor as it lies with the caller.
inline void svod_set_state(const void* image, const SvodEntry* entry, void* memory,
                           uint32_t number, const void* data) {
  const SvodState* state = svod_state(image, entry, number);
  static_cast<uint64_t*>(memory)[number] = 0;
  uint8_t* const place = svod_state_place(entry, state, memory);
  for (size_t i = 0; i < state->parts; i++)
    __builtin_memcpy(place + i * state->apart_bytes,
                     static_cast<const uint8_t*>(data) + i * state->part_bytes,
                     state->part_bytes);
}

// After a run that came to its end: its outputs are the next one's inputs.
inline void svod_keep_states(const void* image, const SvodEntry* entry, void* memory) {
  for (uint32_t i = 0; i < entry->state_count; i++) {
    const SvodState* state = svod_state(image, entry, i);
    uint64_t* const done = static_cast<uint64_t*>(memory) + i;
    uint8_t* const place = svod_state_place(entry, state, memory);
    const size_t step = state->step;
    const auto bytes = static_cast<size_t>(state->bytes);
    if (state->kind == SVOD_STATE_TURNS) *done ^= 1;
    if (state->kind == SVOD_STATE_COPIED)
      __builtin_memmove(place, place + bytes + step, bytes - step);
    if (state->kind == SVOD_STATE_MOVES && ++*done == state->period) {
      const size_t all = step * state->period;
      __builtin_memmove(place, place + all, bytes - all);
      *done = 0;
    }
  }
}

#endif
