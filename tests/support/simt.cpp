// Threads are fibres with stacks of their own, made by makecontext and switched by
// longjmp, which asks the kernel for nothing. What a byte was last read and written by is
// kept beside it for one launch. Blocks have no order, so accesses of two blocks are
// never apart; threads of one block are apart when a wait lies between them.
#undef _FORTIFY_SOURCE // a jump to another stack is meant
#include "tests/support/simt.h"

#include "compiler/support/check.h"

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <dlfcn.h>
#include <ucontext.h>
#include <unordered_map>
#include <unordered_set>

namespace svod::test {

const char* simt_runtime() {
  return R"(
extern "C" {
#define SVOD_SEEN __attribute__((visibility("default")))
typedef void (*Access)(void*, unsigned long, int);
static Access access;
static void (*wait)();
static unsigned (*shuffle)(unsigned, unsigned);
static void (*exchange)(const unsigned*, unsigned, unsigned*);
static unsigned (*arrive)(unsigned*);
static void (*copy)(void*, const void*, unsigned, bool);
static void (*wait_for_copies)(int);
SVOD_SEEN unsigned svod_now_thread, svod_now_block;
SVOD_SEEN void svod_watch(Access on_access, void (*on_wait)(),
                          unsigned (*on_shuffle)(unsigned, unsigned),
                          void (*on_exchange)(const unsigned*, unsigned, unsigned*),
                          unsigned (*on_arrival)(unsigned*),
                          void (*on_copy)(void*, const void*, unsigned, bool),
                          void (*on_copies)(int)) {
  access = on_access, wait = on_wait, shuffle = on_shuffle;
  exchange = on_exchange, arrive = on_arrival;
  copy = on_copy, wait_for_copies = on_copies;
}
unsigned svod_thread_number() { return svod_now_thread; }
unsigned svod_block_number() { return svod_now_block; }
void svod_wait_for_block() { wait(); }
void svod_exchanged(const unsigned* words, unsigned count, unsigned* of_all) {
  exchange(words, count, of_all);
}
unsigned svod_shuffled(unsigned word, unsigned lane) { return shuffle(word, lane); }
unsigned svod_arrived(unsigned* at) { return arrive(at); }
void svod_copied(void* to, const void* from, unsigned bytes, bool there) {
  copy(to, from, bytes, there);
}
void svod_end_copies() { wait_for_copies(-1); }
void svod_wait_for_copies(unsigned but) { wait_for_copies((int)but); }
#define SVOD_WATCH(size)                                                 \
  void __tsan_read##size(void* at) { access(at, size, 0); }              \
  void __tsan_write##size(void* at) { access(at, size, 1); }             \
  void __tsan_unaligned_read##size(void* at) { access(at, size, 0); }    \
  void __tsan_unaligned_write##size(void* at) { access(at, size, 1); }   \
  void __tsan_read_write##size(void* at) { access(at, size, 1); }        \
  void __tsan_unaligned_read_write##size(void* at) { access(at, size, 1); }
SVOD_WATCH(1) SVOD_WATCH(2) SVOD_WATCH(4) SVOD_WATCH(8) SVOD_WATCH(16)
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_init() {}
void* __tsan_memcpy(void* to, const void* from, unsigned long bytes) {
  access((void*)from, bytes, 0), access(to, bytes, 1);
  for (unsigned long i = 0; i < bytes; ++i) ((char*)to)[i] = ((const char*)from)[i];
  return to;
}
void* __tsan_memmove(void* to, const void* from, unsigned long bytes) {
  access((void*)from, bytes, 0), access(to, bytes, 1);
  const bool up = to < from;
  for (unsigned long i = 0; i < bytes; ++i) {
    const unsigned long at = up ? i : bytes - 1 - i;
    ((char*)to)[at] = ((const char*)from)[at];
  }
  return to;
}
void* __tsan_memset(void* to, int value, unsigned long bytes) {
  access(to, bytes, 1);
  for (unsigned long i = 0; i < bytes; ++i) ((char*)to)[i] = (char)value;
  return to;
}
}
)";
}

namespace {

constexpr size_t kStackBytes = 256 << 10;
constexpr size_t kMostFaults = 8;
constexpr uint32_t kAllLanes = UINT32_MAX;

// Who accessed a byte last: a thread of the launch, and how often it had waited.
struct Mark {
  uint32_t launch = 0, block = 0, thread = 0, waits = 0;
};
struct Marks {
  Mark read, written;
  bool many = false; // threads have read since the last wait
};

struct Region {
  const std::byte* begin;
  size_t bytes;
  std::string name;
  bool written, free; // free: not watched further
  std::vector<Marks>* marks;
};

// To shared memory, on its way until it is waited for.
struct Copy {
  std::byte* to;
  const std::byte* from; // null: zeros
  size_t bytes;
};

struct Fibre {
  ucontext_t context;
  jmp_buf at;
  std::vector<std::byte> stack;
  bool started = false, done = false;
  // At a shuffle: the words it has for others, whose it asks for, and where it gets them.
  bool shuffles = false;
  std::span<const uint32_t> offered;
  uint32_t lane = kAllLanes;
  uint32_t* received = nullptr;
  std::vector<std::vector<Copy>> copies; // by the end that they came before
};

} // namespace

struct Simt::State {
  std::vector<Region> regions;
  std::unordered_map<const std::byte*, std::vector<Marks>> marks;
  std::vector<std::unique_ptr<Fibre>> fibres;
  std::vector<std::string> faults;
  uint32_t launch = 0, waits = 0;
  unsigned *thread = nullptr, *block = nullptr;
  // Blocks of this launch that counted their arrival at a place, and those whose work the
  // running block sees since it counted its own.
  std::unordered_map<const unsigned*, std::vector<uint32_t>> arrived;
  std::unordered_set<uint32_t> seen;
  size_t last_region = 0;
  // Of the block that runs.
  jmp_buf scheduler;
  Fibre* running = nullptr;
  const SimtKernel* kernel = nullptr;
  void* const* pointers = nullptr;
  void* room = nullptr;
  uint32_t* counters = nullptr;
  int32_t fault = 0;

  void tell(const std::string& what) {
    if (faults.size() < kMostFaults)
      faults.push_back("thread " + std::to_string(*thread) + " of block " +
                       std::to_string(*block) + " " + what);
  }
  const Region* find(const std::byte* at, size_t bytes, bool writes);
  void access(const std::byte* at, size_t bytes, bool writes);
  void touch(Marks& marks, const Region& region, size_t offset, bool writes);
  bool on_stack(const std::byte* at) const;
  void run_block(int threads);
  bool run_warp(int first, int end);
  bool exchange(int first, int end);
  void run_fibre(Fibre& fibre);
};

namespace {
Simt::State* current = nullptr; // of the one launch that runs

void on_access(void* at, unsigned long bytes, int writes);
void on_wait();
unsigned on_shuffle(unsigned word, unsigned lane);
void on_exchange(const unsigned* words, unsigned count, unsigned* of_all);
unsigned on_arrival(unsigned* at);
void on_copy(void* to, const void* from, unsigned bytes, bool there);
void on_copies(int but);
} // namespace

// Of arguments that lie on each other the one that may be accessed so.
const Region* Simt::State::find(const std::byte* at, size_t bytes, bool writes) {
  auto holds = [&](const Region& r) {
    return at >= r.begin && at + bytes <= r.begin + r.bytes && (r.written || !writes);
  };
  if (last_region < regions.size() && holds(regions[last_region]))
    return &regions[last_region];
  const auto found = std::ranges::find_if(regions, holds);
  if (found == regions.end()) return nullptr;
  last_region = static_cast<size_t>(found - regions.begin());
  return &*found;
}

// A kernel without waits runs on the caller's stack.
bool Simt::State::on_stack(const std::byte* at) const {
  if (running != nullptr)
    return at >= running->stack.data() &&
           at < running->stack.data() + running->stack.size();
  const auto* here = reinterpret_cast<const std::byte*>(__builtin_frame_address(0));
  constexpr ptrdiff_t kNear = 1 << 20;
  return at > here - kNear && at < here + kNear;
}

void Simt::State::touch(Marks& m, const Region& region, size_t offset, bool writes) {
  const Mark now{launch, *block, *thread, waits};
  auto apart = [&](const Mark& other) {
    return other.block == *block ? other.waits != waits : seen.contains(other.block);
  };
  auto meets = [&](const Mark& other) {
    const bool own = other.block == *block && other.thread == *thread;
    return other.launch == launch && !own && !apart(other);
  };
  const bool read_by_others = m.many && m.read.launch == launch && !apart(m.read);
  if (meets(m.written))
    tell(std::string(writes ? "writes" : "reads") + " byte " + std::to_string(offset) +
         " of " + region.name + ", which thread " + std::to_string(m.written.thread) +
         " of block " + std::to_string(m.written.block) + " writes");
  else if (writes && (meets(m.read) || read_by_others))
    tell("writes byte " + std::to_string(offset) + " of " + region.name +
         ", which thread " + std::to_string(m.read.thread) + " of block " +
         std::to_string(m.read.block) + " reads");
  if (writes) {
    m.written = now;
    return;
  }
  const bool same_time =
      m.read.launch == launch && (m.read.block != *block || m.read.waits == waits);
  const bool other = m.read.block != *block || m.read.thread != *thread;
  m.many = same_time && (m.many || other);
  m.read = now;
}

void Simt::State::access(const std::byte* at, size_t bytes, bool writes) {
  const Region* region = find(at, bytes, writes);
  if (region == nullptr) {
    if (on_stack(at)) return;
    std::string near = "no buffer";
    for (const Region& r : regions)
      if (at + bytes > r.begin && at < r.begin + r.bytes + 4096)
        near = "byte " + std::to_string(at - r.begin) + " of " + r.name + ", which has " +
               std::to_string(r.bytes);
    return tell(std::string(writes ? "writes " : "reads ") + near);
  }
  if (region->free) return;
  const auto offset = static_cast<size_t>(at - region->begin);
  for (size_t i = offset; i < offset + bytes; ++i)
    touch((*region->marks)[i], *region, i, writes);
}

namespace {

void on_access(void* at, unsigned long bytes, int writes) {
  if (current == nullptr) return; // asked what it shares
  current->access(static_cast<const std::byte*>(at), bytes, writes != 0);
}

void on_wait() {
  Fibre& fibre = *current->running;
  if (_setjmp(fibre.at) == 0) _longjmp(current->scheduler, 1);
}

void shuffle(std::span<const uint32_t> words, uint32_t lane, uint32_t* received) {
  Fibre& fibre = *current->running;
  fibre.shuffles = true, fibre.offered = words;
  fibre.lane = lane, fibre.received = received;
  if (_setjmp(fibre.at) == 0) _longjmp(current->scheduler, 1);
}

unsigned on_shuffle(unsigned word, unsigned lane) {
  uint32_t received = 0;
  shuffle({&word, 1}, lane, &received);
  return received;
}

void on_exchange(const unsigned* words, unsigned count, unsigned* of_all) {
  shuffle({words, count}, kAllLanes, of_all);
}

unsigned on_arrival(unsigned* at) {
  std::vector<uint32_t>& before = current->arrived[at];
  current->seen.insert(before.begin(), before.end());
  before.push_back(*current->block);
  return (*at)++;
}

// It may be written from now on, and is when it is waited for, as late as may be.
void on_copy(void* to, const void* from, unsigned bytes, bool there) {
  current->access(static_cast<std::byte*>(to), bytes, true);
  std::vector<std::vector<Copy>>& copies = current->running->copies;
  if (copies.empty()) copies.emplace_back();
  copies.back().push_back({static_cast<std::byte*>(to),
                           there ? static_cast<const std::byte*>(from) : nullptr, bytes});
}

// -1: what follows is of the next end.
void on_copies(int but) {
  std::vector<std::vector<Copy>>& copies = current->running->copies;
  if (copies.empty()) copies.emplace_back();
  if (but < 0) {
    copies.emplace_back();
    return;
  }
  // The last list is open.
  const ptrdiff_t done = std::max<ptrdiff_t>(0, std::ssize(copies) - 1 - but);
  for (ptrdiff_t i = 0; i < done; ++i)
    for (const Copy& c : copies[static_cast<size_t>(i)]) {
      current->access(c.to, c.bytes, true);
      if (c.from != nullptr) current->access(c.from, c.bytes, false);
      if (c.from != nullptr)
        std::memcpy(c.to, c.from, c.bytes);
      else
        std::fill_n(c.to, c.bytes, std::byte(0));
    }
  copies.erase(copies.begin(), copies.begin() + done);
}

void begin_fibre() {
  current->kernel->thread(current->pointers, current->room, current->counters,
                          &current->fault);
  current->running->done = true;
  _longjmp(current->scheduler, 1);
}

} // namespace

// Until it waits or ends.
void Simt::State::run_fibre(Fibre& fibre) {
  running = &fibre;
  if (_setjmp(scheduler) == 0) {
    if (fibre.started) _longjmp(fibre.at, 1);
    fibre.started = true;
    setcontext(&fibre.context);
  }
  running = nullptr;
}

// What the threads [first, end) of a warp hand each other, all of which are at a shuffle.
// A shuffle is no wait: accesses on both sides of it are not apart.
bool Simt::State::exchange(int first, int end) {
  auto fibre = [&](int t) -> Fibre& { return *fibres[static_cast<size_t>(t)]; };
  for (int t = first; t < end; ++t) {
    *thread = static_cast<unsigned>(t);
    if (!fibre(t).shuffles)
      return tell("does not take part where its warp shuffles"), false;
    if (fibre(t).lane != kAllLanes && fibre(t).lane >= static_cast<uint32_t>(end - first))
      return tell("asks for lane " + std::to_string(fibre(t).lane) + " of a warp of " +
                  std::to_string(end - first)),
             false;
    uint32_t* to = fibre(t).received;
    for (int other = first; other < end; ++other) {
      const bool wanted = fibre(t).lane == kAllLanes ||
                          fibre(t).lane == static_cast<uint32_t>(other - first);
      if (wanted) to = std::ranges::copy(fibre(other).offered, to).out;
    }
  }
  for (int t = first; t < end; ++t) fibre(t).shuffles = false;
  return true;
}

// Until all of its threads wait for the block or end; false: a fault ends the block.
bool Simt::State::run_warp(int first, int end) {
  for (;;) {
    bool shuffles = false;
    for (int t = first; t < end; ++t) {
      *thread = static_cast<unsigned>(t);
      run_fibre(*fibres[static_cast<size_t>(t)]);
      shuffles |= fibres[static_cast<size_t>(t)]->shuffles;
    }
    if (!shuffles) return true;
    if (!exchange(first, end)) return false;
  }
}

void Simt::State::run_block(int threads) {
  while (fibres.size() < static_cast<size_t>(threads)) {
    fibres.push_back(std::make_unique<Fibre>());
    fibres.back()->stack.resize(kStackBytes);
  }
  for (int t = 0; t < threads; ++t) {
    Fibre& f = *fibres[static_cast<size_t>(t)];
    f.started = f.done = f.shuffles = false;
    f.copies.clear();
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = f.stack.data();
    f.context.uc_stack.ss_size = f.stack.size();
    f.context.uc_link = nullptr;
    makecontext(&f.context, begin_fibre, 0);
  }
  for (bool going = true; going; ++waits) {
    int done = 0;
    for (int t = 0; t < threads; t += kWarpThreads)
      if (!run_warp(t, std::min(t + kWarpThreads, threads))) return;
    for (int t = 0; t < threads; ++t)
      done += fibres[static_cast<size_t>(t)]->done ? 1 : 0;
    going = done == 0;
    if (done != 0 && done != threads) return tell("waits for threads that have ended");
  }
}

Simt::Simt(void* handle) : state_(std::make_unique<State>()) {
  using Watch = void (*)(
      void (*)(void*, unsigned long, int), void (*)(), unsigned (*)(unsigned, unsigned),
      void (*)(const unsigned*, unsigned, unsigned*), unsigned (*)(unsigned*),
      void (*)(void*, const void*, unsigned, bool), void (*)(int));
  const auto watch = reinterpret_cast<Watch>(dlsym(handle, "svod_watch"));
  SVOD_CHECK(watch != nullptr) << "no runtime beside the kernels";
  watch(on_access, on_wait, on_shuffle, on_exchange, on_arrival, on_copy, on_copies);
  state_->thread = static_cast<unsigned*>(dlsym(handle, "svod_now_thread"));
  state_->block = static_cast<unsigned*>(dlsym(handle, "svod_now_block"));
}

Simt::~Simt() = default;

const std::vector<std::string>& Simt::faults() const { return state_->faults; }

int32_t Simt::launch(const SimtKernel& kernel, int64_t blocks, int threads,
                     std::span<const SimtBuffer> buffers, SimtBuffer room,
                     std::span<uint32_t> counters) {
  State& s = *state_;
  std::vector<void*> pointers;
  s.regions.clear();
  auto add = [&](const std::byte* data, size_t bytes, std::string name, bool written) {
    std::vector<Marks>& marks = s.marks[data];
    if (marks.size() < bytes) marks.resize(bytes);
    s.regions.push_back({data, bytes, std::move(name), written, false, &marks});
  };
  for (const SimtBuffer& b : buffers) {
    pointers.push_back(b.data);
    // Two arguments may be one buffer, or parts of it.
    add(b.data, b.bytes, "a" + std::to_string(pointers.size() - 1), b.written);
  }
  if (room.bytes != 0) add(room.data, room.bytes, "scratch memory", true);
  const size_t given = s.regions.size();
  unsigned long bytes = 0;
  unsigned shared = 0;
  for (; const void* at = kernel.shared(shared, &bytes); ++shared)
    add(static_cast<const std::byte*>(at), bytes,
        "shared memory " + std::to_string(shared), true);
  s.regions.push_back({reinterpret_cast<const std::byte*>(&s.fault), sizeof s.fault,
                       "the fault", true, true, nullptr});
  s.regions.push_back({reinterpret_cast<const std::byte*>(pointers.data()),
                       pointers.size() * sizeof(void*), "the arguments", false, true,
                       nullptr});
  s.regions.push_back({reinterpret_cast<const std::byte*>(counters.data()),
                       counters.size_bytes(), "the counters", true, true, nullptr});
  const size_t shared_end = given + shared;
  const bool waits = shared != 0;
  current = &s;
  s.kernel = &kernel, s.pointers = pointers.data(), s.room = room.data, s.fault = 0;
  s.counters = counters.data();
  ++s.launch, s.waits = 0, s.last_region = 0;
  s.arrived.clear();
  for (int64_t b = 0; b < blocks; ++b) {
    *s.block = static_cast<unsigned>(b);
    s.seen.clear();
    // Another block has shared memory of its own, with anything in it.
    for (size_t i = given; i < shared_end; ++i) {
      std::fill_n(const_cast<std::byte*>(s.regions[i].begin), s.regions[i].bytes,
                  std::byte(0xdb));
      std::fill(s.regions[i].marks->begin(), s.regions[i].marks->end(), Marks());
    }
    if (waits) {
      s.run_block(threads);
      continue;
    }
    for (int t = 0; t < threads; ++t) {
      *s.thread = static_cast<unsigned>(t);
      kernel.thread(pointers.data(), room.data, s.counters, &s.fault);
    }
  }
  current = nullptr;
  return s.fault;
}

} // namespace svod::test
