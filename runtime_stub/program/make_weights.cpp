// Threads take parts as they take chunks of a kernel, from a pool that ends with the last
// part: a run may want another number of threads.
#include "runtime_stub/program/make_weights.h"

#include "runtime_stub/platform.h"
#include "runtime_stub/program/tensor.h"
#include "runtime_stub/stored_weights.h"

namespace packed {

namespace {

struct Work {
  WeightMaking all;
  uint8_t* workspaces; // one for each thread
  uint64_t apart;      // bytes from one to the next
  uint32_t damaged;    // 1 + the number of such a part; 0: none
};

void do_part(void* context, uint32_t part, uint32_t thread) {
  Work& work = *static_cast<Work*>(context);
  if (!make_part(work.all, part, work.workspaces + thread * work.apart))
    __atomic_store_n(&work.damaged, part + 1, __ATOMIC_SEQ_CST);
}

uint32_t threads_for(const Session& session, uint64_t asked, uint64_t parts) {
  constexpr uint64_t kMost = 256;
  const uint32_t bound = svod_header(session.model.image)->threads;
  uint64_t threads = asked != 0 ? asked : svod_cpu_count();
  if (bound != 0 && threads > bound) threads = bound;
  if (threads > parts) threads = parts;
  return static_cast<uint32_t>(threads < kMost ? threads : kMost);
}

// False: there is no memory.
bool make_on(uint32_t threads, Work& work) {
  work.apart = (work.all.workspace_bytes + SVOD_ALIGN - 1) / SVOD_ALIGN * SVOD_ALIGN;
  const uint64_t room = threads * work.apart;
  const uint64_t pool_room = threads > 1 ? svod_pool_bytes(threads) : 0;
  auto memory = static_cast<uint8_t*>(svod_allocate(room + pool_room + SVOD_ALIGN));
  if (memory == nullptr) return false;
  svod_want_large_pages(memory, room);
  work.workspaces = memory;
  if (threads > 1) {
    SvodPool* pool = svod_pool_make(memory + room, threads);
    svod_pool_run(pool, work.all.parts, do_part, &work);
    svod_pool_end(pool);
  } else {
    for (uint32_t part = 0; part < work.all.parts; part++) do_part(&work, part, 0);
  }
  svod_unmap(memory, room + pool_room + SVOD_ALIGN);
  return true;
}

Exit make(Session& session, uint64_t threads, uint64_t entries, Printer& errors) {
  Work work = {};
  WeightMaking& all = work.all;
  all.entries = entries;
  all.weight_bytes = svod_header(session.model.image)->weight_bytes;
  if (all.weight_bytes == 0) return EXIT_DONE;
  const void* stored = nullptr;
  svod_get_stored(&stored, &all.bytes);
  all.stored = static_cast<const uint8_t*>(stored);
  if (!open_stored(all)) {
    print_error(errors, "the stored weights in this program are damaged");
    return EXIT_DAMAGED;
  }
  all.weights = static_cast<uint8_t*>(take_memory(all.weight_bytes));
  if (all.weights != nullptr) svod_want_large_pages(all.weights, all.weight_bytes);
  if (all.weights == nullptr ||
      !make_on(threads_for(session, threads, all.parts), work)) {
    print_error(errors, "there is not enough memory for the expanded weights");
    return EXIT_FILE;
  }
  if (work.damaged != 0) {
    errors << "error: the stored weights in this program are damaged, in block "
           << work.damaged - 1 << " of " << all.parts << "\n";
    return EXIT_DAMAGED;
  }
  session.model.weights = all.weights;
  session.model.weight_bytes = all.weight_bytes;
  return EXIT_DONE;
}

} // namespace

Exit make_weights(Session& session, uint64_t threads, Printer& errors) {
  const auto entry = session.entry - svod_entry(session.model.image, 0);
  return make(session, threads, uint64_t{1} << entry, errors);
}

Exit make_all_weights(Session& session, Printer& errors) {
  return make(session, 0, ~uint64_t{0}, errors);
}

} // namespace packed
