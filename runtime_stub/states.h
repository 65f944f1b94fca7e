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

// Of a state that counts rows, how many: it has two places that take turns.
inline uint64_t svod_counted_rows(const void* image, const SvodEntry* entry,
                                  const void* memory, uint32_t counter) {
  const SvodState* state = svod_state(image, entry, counter);
  const bool odd = static_cast<const uint64_t*>(memory)[counter] != 0;
  const uint8_t* place = svod_state_place(entry, state, const_cast<void*>(memory));
  uint64_t rows = 0;
  __builtin_memcpy(&rows, place + (odd ? static_cast<size_t>(state->bytes) : 0),
                   sizeof(rows));
  return rows;
}

// The first state that grows and holds more rows than a run may begin with; the number of
// states when there is none.
inline uint32_t svod_full_state(const void* image, const SvodEntry* entry,
                                const void* memory) {
  for (uint32_t i = 0; i < entry->state_count; i++) {
    const uint32_t counter = svod_state(image, entry, i)->counter;
    if (counter != 0 && svod_counted_rows(image, entry, memory, counter - 1) >
                            svod_state(image, entry, counter - 1)->most)
      return i;
  }
  return entry->state_count;
}

// The entry of the next run, the first that has room for all; the last where none has.
// All entries have the same places.
inline uint32_t svod_state_entry(const void* image, const void* memory) {
  const uint32_t last = svod_header(image)->entries.count - 1;
  for (uint32_t e = 0; e < last; e++) {
    const SvodEntry* entry = svod_entry(image, e);
    if (svod_full_state(image, entry, memory) == entry->state_count) return e;
  }
  return last;
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

// Before the first run: what a state begins with, a tensor as it lies with the caller. Of
// one that grows `rows` are given.
inline void svod_set_state(const void* image, const SvodEntry* entry, void* memory,
                           uint32_t number, const void* data, uint64_t rows) {
  const SvodState* state = svod_state(image, entry, number);
  static_cast<uint64_t*>(memory)[number] = 0;
  uint8_t* const place = svod_state_place(entry, state, memory);
  size_t part = state->part_bytes;
  if (state->counter != 0) {
    const SvodTensor* tensor = svod_input(image, entry, state->input);
    const auto room =
        static_cast<size_t>(svod_dims(image, tensor)[static_cast<size_t>(state->axis)]);
    part = part / room * static_cast<size_t>(rows);
    svod_set_state(image, entry, memory, state->counter - 1, &rows, 0);
  }
  for (size_t i = 0; i < state->parts; i++)
    __builtin_memcpy(place + i * state->apart_bytes,
                     static_cast<const uint8_t*>(data) + i * part, part);
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
