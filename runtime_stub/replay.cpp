// Does the steps of an entry. Everything was decided when packing: a slot is a class and
// an offset, so its address is one addition, and a step is a copy or a kernel over such
// addresses. The addresses of a step's buffers are written into the end of the arena,
// because their number is the model's and the stack is small. Loops and conditions are
// ranges of steps; the open ones are a short list, so nothing here calls itself.
//
// In a chain, several launches run chunk by chunk. What they pass on is one chunk large
// and lies in the thread's scratch, so every thread has addresses of its own.
//
//   arena:  temporaries | scratch of thread 0 | scratch of thread 1 | ... | buffer
//   addresses of thread 0 | of thread 1 | ...
#include "runtime_stub/replay.h"

namespace {

// An open range of steps: [begin, end) runs, then the steps at `after`.
struct Frame {
  uint32_t begin, end, after;
  const SvodRegion* loop; // null: a branch
  uint64_t count;
};

// The state of a run beside the arena.
struct Replay {
  SvodRun* run;
  const SvodSlot* slots;
  uint32_t step = 0;
  uint32_t nesting = 0;
  uint32_t loops = 0;                         // among the open ranges
  uint32_t iterations[SVOD_MAX_NESTING] = {}; // per loop, the outermost first
  Frame open[SVOD_MAX_NESTING];
};

uint64_t round_up(uint64_t bytes) {
  return (bytes + SVOD_ALIGN - 1) & ~uint64_t{SVOD_ALIGN - 1};
}

bool aligned(const void* pointer, uint32_t alignment) {
  return (reinterpret_cast<uintptr_t>(pointer) & (alignment - 1)) == 0;
}

void* address(const Replay& replay, uint32_t number) {
  const SvodRun& run = *replay.run;
  const SvodSlot* slot = &replay.slots[number];
  size_t offset = static_cast<size_t>(slot->offset);
  while (slot->slot_class == SVOD_SLOT_SLICE) {
    const SvodHeader* header = svod_header(run.model->image);
    const SvodSlice* slice = svod_at<SvodSlice>(header, header->slices, slot->io);
    if (slice->stride != 0) {
      offset += static_cast<size_t>(slice->stride) *
                (replay.iterations[slice->depth] & slice->mask);
    }
    slot = &replay.slots[slice->parent];
    offset += static_cast<size_t>(slot->offset);
  }
  const void* base = run.arena;
  if (slot->slot_class == SVOD_SLOT_INPUT) base = run.inputs[slot->io];
  if (slot->slot_class == SVOD_SLOT_OUTPUT) base = run.outputs[slot->io];
  if (slot->slot_class == SVOD_SLOT_WEIGHT) base = run.model->weights;
  // Kernels read inputs and weights through the same kind of pointer they write
  // temporaries by.
  return const_cast<uint8_t*>(static_cast<const uint8_t*>(base) + offset);
}

// A chain of `count` launches, mostly of one, as the pool's threads see it. Any of them
// may write `status`, a whole word; the end of the region orders that before the read.
// (Small cores have no atomics, nor threads.)
struct Chain {
  const Replay* replay;
  uint32_t first, count; // steps
  uint8_t* scratch;
  void** buffers; // room for the addresses of each thread
  volatile int32_t status;
  volatile uint32_t failed; // step
};

const uint32_t* args_of(const SvodRun& run, const SvodStep& step) {
  return svod_at<uint32_t>(run.model->image, svod_header(run.model->image)->args,
                           step.first_arg);
}

void run_chunk(void* context, uint32_t chunk, uint32_t thread) {
  Chain& chain = *static_cast<Chain*>(context);
  const Replay& replay = *chain.replay;
  const SvodRun& run = *replay.run;
  const void* image = run.model->image;
  uint8_t* scratch =
      chain.scratch + static_cast<size_t>(thread * run.entry->scratch_bytes);
  void** buffers =
      chain.buffers + static_cast<size_t>(thread) * svod_header(image)->max_buffers;
  for (uint32_t s = chain.first; s < chain.first + chain.count; s++) {
    const SvodStep& step = *svod_step(image, run.entry, s);
    const uint32_t* args = args_of(run, step);
    for (uint32_t i = 0; i < step.arg_count; i++) {
      const SvodSlot& slot = replay.slots[args[i]];
      // The kernel counts from the beginning of a whole buffer, of which only this
      // chunk's part is there.
      buffers[i] =
          slot.slot_class == SVOD_SLOT_PART
              ? reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(scratch) +
                                        static_cast<uintptr_t>(slot.offset) -
                                        static_cast<uintptr_t>(slot.bytes) * chunk)
              : address(replay, args[i]);
    }
    const int32_t status =
        run.model->launch(run.level, step.program, buffers, scratch, chunk);
    if (status != 0) {
      chain.status = status;
      chain.failed = s;
      return;
    }
    if (chain.count != 1 && run.step_done != nullptr && run.threads == 1) {
      run.step_done(run.listener, s);
    }
  }
}

void write_number(const Replay& replay, uint32_t slot, uint64_t value) {
  if (slot != SVOD_NO_SLOT) __builtin_memcpy(address(replay, slot), &value, 8);
}

bool read_truth(const Replay& replay, uint32_t slot) {
  return *static_cast<const uint8_t*>(address(replay, slot)) != 0;
}

void close_loop(Replay& replay, const SvodRegion& loop) {
  replay.loops--;
  replay.nesting--;
  write_number(replay, loop.done, replay.iterations[replay.loops]);
}

// Enters a loop or the branch of an if that is taken.
int32_t open_region(Replay& replay, const SvodStep& step) {
  const SvodRegion& region = *svod_region(replay.run->model->image, &step);
  const uint32_t first = replay.step + 1;
  Frame& frame = replay.open[replay.nesting++];
  const bool holds = read_truth(replay, region.start);
  if (step.kind == SVOD_STEP_IF) {
    const uint32_t middle = first + region.steps;
    frame = {holds ? first : middle, middle, middle + region.else_steps, nullptr, 0};
    if (!holds) frame.end = frame.after;
    replay.step = frame.begin;
    return SVOD_OK;
  }
  int64_t count = 0;
  __builtin_memcpy(&count, address(replay, region.count), 8);
  if (!holds || count < 0) count = 0;
  const uint32_t end = first + region.steps;
  frame = {first, end, end, &region, static_cast<uint64_t>(count)};
  replay.iterations[replay.loops++] = 0;
  if (count == 0) {
    close_loop(replay, region);
    replay.step = frame.after;
    return SVOD_OK;
  }
  if (region.limit == 0) return SVOD_LIMIT;
  write_number(replay, region.iteration, 0);
  replay.step = first;
  return SVOD_OK;
}

// Where the innermost range has come to its end: once more, or on.
int32_t end_range(Replay& replay) {
  const Frame& frame = replay.open[replay.nesting - 1];
  replay.step = frame.after;
  if (frame.loop == nullptr) {
    replay.nesting--;
    return SVOD_OK;
  }
  const SvodRegion& loop = *frame.loop;
  const uint32_t done = ++replay.iterations[replay.loops - 1];
  const bool again = loop.again == SVOD_NO_SLOT || read_truth(replay, loop.again);
  if (!again || done >= frame.count) {
    close_loop(replay, loop);
    return SVOD_OK;
  }
  if (done >= loop.limit) {
    replay.step = frame.begin - 1; // the loop's own
    return SVOD_LIMIT;
  }
  write_number(replay, loop.iteration, done);
  replay.step = frame.begin;
  return SVOD_OK;
}

int32_t check_tensors(const SvodRun& run) {
  const void* image = run.model->image;
  for (uint32_t i = 0; i < run.entry->input_count; i++) {
    if (run.inputs == nullptr || run.inputs[i] == nullptr) return SVOD_BAD_ARGUMENT;
    if (!aligned(run.inputs[i], svod_input(image, run.entry, i)->alignment)) {
      return SVOD_MISALIGNED;
    }
    if (!svod_has_packed_value(image, svod_input(image, run.entry, i), run.inputs[i])) {
      return SVOD_BAD_ARGUMENT;
    }
  }
  for (uint32_t i = 0; i < run.entry->output_count; i++) {
    if (run.outputs == nullptr || run.outputs[i] == nullptr) return SVOD_BAD_ARGUMENT;
    if (!aligned(run.outputs[i], svod_output(image, run.entry, i)->alignment)) {
      return SVOD_MISALIGNED;
    }
  }
  return SVOD_OK;
}

int32_t check_run(const SvodRun& run) {
  if (run.arena == nullptr || run.threads == 0 || run.level >= run.model->level_count) {
    return SVOD_BAD_ARGUMENT;
  }
  if (run.model->weights == nullptr && svod_header(run.model->image)->weight_bytes != 0) {
    return SVOD_BAD_ARGUMENT;
  }
  if (!aligned(run.arena, SVOD_ALIGN)) return SVOD_MISALIGNED;
  uint64_t needed = svod_arena_bytes(run.model->image, run.entry, run.threads);
  if (run.arena_bytes < needed) return SVOD_ARENA_SMALL;
  return check_tensors(run);
}

bool same_shape(const void* image, const SvodTensor& tensor, const SvodShape& shape) {
  if (tensor.dtype != shape.dtype || tensor.rank != shape.rank) return false;
  const int64_t* dims = svod_dims(image, &tensor);
  for (uint32_t i = 0; i < tensor.rank; i++) {
    if (dims[i] != shape.dims[i]) return false;
  }
  return true;
}

} // namespace

bool svod_has_packed_value(const void* image, const SvodTensor* input, const void* data) {
  const char* fixed = svod_text(image, input->fixed);
  for (uint32_t i = 0; i < input->fixed.size; i++) {
    if (static_cast<const char*>(data)[i] != fixed[i]) return false;
  }
  return true;
}

const SvodEntry* svod_find_entry(const void* image, const SvodShape* inputs,
                                 uint32_t count) {
  for (uint32_t e = 0; e < svod_header(image)->entries.count; e++) {
    const SvodEntry* entry = svod_entry(image, e);
    bool same = entry->input_count == count;
    for (uint32_t i = 0; same && i < count; i++) {
      same = same_shape(image, *svod_input(image, entry, i), inputs[i]);
    }
    if (same) return entry;
  }
  return nullptr;
}

uint64_t svod_arena_bytes(const void* image, const SvodEntry* entry, uint32_t threads) {
  uint64_t addresses = uint64_t{svod_header(image)->max_buffers} * sizeof(void*);
  return round_up(entry->arena_bytes) +
         (entry->scratch_bytes + round_up(addresses)) * threads;
}

// A copy, or a launch with those that follow it in a chain. On failure replay.step is the
// step that failed.
static int32_t do_step(Replay& replay, const SvodStep& step, uint8_t* scratch,
                       void** buffers) {
  const SvodRun& run = *replay.run;
  if (step.kind == SVOD_STEP_COPY) {
    const uint32_t* args = args_of(run, step);
    __builtin_memmove(address(replay, args[1]), address(replay, args[0]),
                      static_cast<size_t>(replay.slots[args[1]].bytes));
    return SVOD_OK;
  }
  Chain chain{&replay, replay.step, step.followers + 1, scratch, buffers, 0, 0};
  if (run.parallel != nullptr && run.threads > 1 && step.chunks > 1) {
    run.parallel(run.pool, step.chunks, run_chunk, &chain);
  } else {
    for (uint32_t chunk = 0; chunk < step.chunks; chunk++) run_chunk(&chain, chunk, 0);
  }
  if (chain.status == 0) return SVOD_OK;
  replay.step = chain.failed;
  const bool is_told = chain.status == SVOD_LIMIT || chain.status == SVOD_BAD_ARGUMENT;
  return is_told ? chain.status : SVOD_INDEX;
}

int32_t svod_replay(SvodRun* run) {
  int32_t status = check_run(*run);
  if (status != SVOD_OK) return status;
  const void* image = run->model->image;
  const SvodEntry& entry = *run->entry;
  uint8_t* scratch = static_cast<uint8_t*>(run->arena) +
                     static_cast<size_t>(round_up(entry.arena_bytes));
  void** buffers = reinterpret_cast<void**>(
      scratch + static_cast<size_t>(entry.scratch_bytes * run->threads));
  Replay replay;
  replay.run = run;
  replay.slots = svod_at<SvodSlot>(image, svod_header(image)->slots, entry.first_slot);
  for (;;) {
    while (status == SVOD_OK && replay.nesting > 0 &&
           replay.step == replay.open[replay.nesting - 1].end) {
      status = end_range(replay);
    }
    if (status != SVOD_OK || replay.step >= entry.step_count) break;
    const uint32_t number = replay.step;
    const SvodStep& step = *svod_step(image, &entry, number);
    if (step.kind == SVOD_STEP_LOOP || step.kind == SVOD_STEP_IF) {
      status = open_region(replay, step);
    } else {
      status = do_step(replay, step, scratch, buffers);
      if (status == SVOD_OK) replay.step += 1 + step.followers;
    }
    if (status != SVOD_OK) break;
    const bool told = step.followers != 0 && run->threads == 1;
    if (run->step_done != nullptr && !told) run->step_done(run->listener, number);
  }
  if (status != SVOD_OK) run->failed_step = replay.step;
  return status;
}
