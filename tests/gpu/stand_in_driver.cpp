// A libcuda.so.1 for tests: the functions of NVIDIA's driver that a packed program calls,
// over the executor of tests/support/simt.h. Device memory is this process's, a module is
// known by the names of the entries in its PTX, and the kernel of such a name is taken
// from the shared object that SVOD_STAND_IN_KERNELS names (tests/tools/gpu_kernels.cpp).
// Machine code is what the ptxas of tests/gpu/program.py makes: a line with the
// architecture that it is for, then PTX. What is captured runs when its graph is
// launched.
//
//   SVOD_STAND_IN_ARCH=75      the GPU's compute capability, 80 without it
//   SVOD_STAND_IN_GPUS=0       no GPU is here
//   SVOD_STAND_IN_LOST=2       the GPU is lost in the second run
//   SVOD_STAND_IN_REFUSES=k1   a module with this entry does not load
//   SVOD_STAND_IN_LOG=FILE     gets a line for each call that counts; of a graph how many
//                              works it has, and a line with what they are
#include "tests/support/simt.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

using namespace svod::test;

namespace {

constexpr int kInvalid = 1, kNoDevice = 100, kNoContext = 201, kOtherMachine = 209,
              kBadModule = 218, kNotFound = 500, kIllegalAddress = 700, kLost = 719,
              kCaptures = 900;

struct Module {
  std::map<std::string, size_t> entries; // parameters of each
};
struct Function {
  SimtKernel kernel;
  size_t parameters = 0;
};
using Work = std::function<int()>;
using Clock = std::chrono::steady_clock;
struct Event {
  std::optional<Clock::time_point> recorded;
};
struct Graph {
  std::vector<Work> works;
  std::string what; // "up 64, launch, down 16": of copies the bytes
};

std::map<std::byte*, size_t> blocks; // of device memory
std::map<std::byte*, size_t> pinned; // of memory here that a graph may copy from and to
// By this thread; each thread has its own, as contexts are.
thread_local std::optional<Graph> captured;
thread_local std::vector<void*> contexts;
std::mutex state_lock;               // of what follows and of memory
int runs = 0, primary = 0, left = 0; // left: modules, streams and graphs
int made_contexts[2];                // addresses: the device's own, and one of a caller

const char* setting(const char* name) { return std::getenv(name); }

// 80 is sm_80.
int architecture() {
  const char* text = setting("SVOD_STAND_IN_ARCH");
  return text != nullptr ? std::atoi(text) : 80;
}

// Machine code is for GPUs of one major number, its own and later ones.
bool runs_code_of(int made_for) {
  return made_for / 10 == architecture() / 10 && made_for <= architecture();
}

void note(const std::string& line) {
  if (const char* path = setting("SVOD_STAND_IN_LOG")) {
    FILE* file = std::fopen(path, "a");
    std::fprintf(file, "%s\n", line.c_str());
    std::fclose(file);
  }
}

int change_left(int by) {
  const std::lock_guard lock(state_lock);
  left += by;
  return 0;
}

void* kernels() {
  static void* handle = [] {
    const char* path = setting("SVOD_STAND_IN_KERNELS");
    return path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_LOCAL);
  }();
  return handle;
}

// Bytes from here to the end of the block; 0: it is in none of them.
size_t room_in(const std::map<std::byte*, size_t>& blocks, const std::byte* at) {
  auto next = blocks.upper_bound(const_cast<std::byte*>(at));
  if (next == blocks.begin()) return 0;
  const auto& [begin, bytes] = *std::prev(next);
  return at < begin + bytes ? static_cast<size_t>(begin + bytes - at) : 0;
}

size_t room_at(const std::byte* at) {
  const std::lock_guard lock(state_lock);
  return room_in(blocks, at);
}

int copy(void* to, const void* from, size_t bytes, bool to_device, bool from_device) {
  const auto* source = static_cast<const std::byte*>(from);
  if ((to_device && room_at(static_cast<std::byte*>(to)) < bytes) ||
      (from_device && room_at(source) < bytes))
    return kInvalid;
  std::memcpy(to, from, bytes);
  return 0;
}

int later(Work work, const std::string& what) {
  if (!captured) {
    if (what != "launch" && what != "event") note("now " + what);
    return work();
  }
  captured->works.push_back(std::move(work));
  captured->what += (captured->what.empty() ? "" : ", ") + what;
  return 0;
}

std::string with_bytes(const char* what, size_t bytes) {
  return what + (" " + std::to_string(bytes));
}

// Of memory here: a graph may run long after a pageable copy's source has changed.
bool may_copy(const void* here, size_t bytes) {
  const std::lock_guard lock(state_lock);
  return !captured || room_in(pinned, static_cast<const std::byte*>(here)) >= bytes;
}

int launch(const Function& function, unsigned blocks_wanted, unsigned threads,
           const std::vector<std::byte*>& parameters) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  static Simt simt(kernels());
  std::vector<SimtBuffer> buffers;
  for (size_t i = 0; i + 3 < parameters.size(); ++i)
    buffers.push_back({parameters[i], room_at(parameters[i]), true});
  std::byte* room = parameters[parameters.size() - 3];
  std::byte* arrived = parameters[parameters.size() - 2];
  const int32_t fault =
      simt.launch(function.kernel, blocks_wanted, static_cast<int>(threads), buffers,
                  {room, room_at(room), true},
                  {reinterpret_cast<uint32_t*>(arrived), room_at(arrived) / 4});
  if (fault != 0) std::memcpy(parameters.back(), &fault, sizeof fault);
  for (const std::string& what : simt.faults())
    std::fprintf(stderr, "stand-in driver: %s\n", what.c_str());
  return simt.faults().empty() ? 0 : kIllegalAddress;
}

} // namespace

extern "C" {

// NVIDIA's driver starts threads of its own, in a program that no C library started.
int cuInit(unsigned) {
  thread_local int mine = 1;
  std::thread([] { mine = 2; }).join();
  return setting("SVOD_STAND_IN_GPUS") || mine != 1 ? kNoDevice : 0;
}
int cuDeviceGetCount(int* count) { return *count = 1, 0; }
int cuDeviceGet(int* device, int) { return *device = 0, 0; }
int cuDeviceGetName(char* name, int room, int) {
  std::snprintf(name, static_cast<size_t>(room), "stand-in GPU");
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  constexpr int kMajor = 75, kMinor = 76;
  if (attribute != kMajor && attribute != kMinor) return kInvalid;
  *value = attribute == kMajor ? architecture() / 10 : architecture() % 10;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int) {
  const std::lock_guard lock(state_lock);
  ++primary;
  return *context = &made_contexts[0], 0;
}
int cuDevicePrimaryCtxRelease_v2(int) {
  const std::lock_guard lock(state_lock);
  note("context released");
  return --primary < 0 ? kInvalid : 0;
}
int cuCtxSetCurrent(void* context) {
  if (!contexts.empty()) contexts.pop_back();
  if (context != nullptr) contexts.push_back(context);
  return 0;
}
int cuCtxGetCurrent(void** context) {
  return *context = contexts.empty() ? nullptr : contexts.back(), 0;
}
int cuCtxGetDevice(int* device) { return *device = 0, contexts.empty() ? kNoContext : 0; }
int cuCtxPushCurrent_v2(void* context) { return contexts.push_back(context), 0; }
int cuCtxPopCurrent_v2(void** context) {
  if (contexts.empty()) return kNoContext;
  *context = contexts.back();
  return contexts.pop_back(), 0;
}
// Of a caller: a context that is not the device's own.
int cuCtxCreate_v2(void** context, unsigned, int) {
  return contexts.push_back(*context = &made_contexts[1]), 0;
}
// How much is not given back: blocks of memory, modules, streams and graphs.
int svod_stand_in_left() {
  const std::lock_guard lock(state_lock);
  return static_cast<int>(blocks.size() + pinned.size()) + left + primary;
}

int cuModuleLoadData(void** module, const void* code) {
  const std::string text = static_cast<const char*>(code), machine = "machine code sm_";
  const bool assembled = text.starts_with(machine);
  if (assembled && !runs_code_of(std::atoi(text.c_str() + machine.size())))
    return kOtherMachine;
  if (text.find(".version") == text.npos) return kBadModule;
  auto* made = new Module;
  const std::string begin = ".visible .entry ";
  for (size_t at = 0; (at = text.find(begin, at)) != text.npos;) {
    at += begin.size();
    const size_t open = text.find('(', at), close = text.find(')', open),
                 body = text.find("\n{", close);
    if (body == text.npos ||
        text.substr(close, body - close).find(".maxntid") == text.npos)
      return kBadModule;
    size_t& parameters = made->entries[text.substr(at, open - at)];
    for (size_t i = open; (i = text.find(".param", i)) < close; ++i) ++parameters;
    at = body;
  }
  const char* refused = setting("SVOD_STAND_IN_REFUSES");
  for (const auto& [name, parameters] : made->entries)
    if (refused != nullptr && name.starts_with(refused)) return kBadModule;
  if (made->entries.empty() || (!assembled && made->entries.size() != 1))
    return kBadModule;
  note((assembled ? "machine code of " + std::to_string(made->entries.size()) + " from "
                  : "module ") +
       made->entries.begin()->first);
  *module = made;
  return change_left(1);
}
int cuModuleUnload(void* module) {
  delete static_cast<Module*>(module);
  return change_left(-1);
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  const auto& entries = static_cast<Module*>(module)->entries;
  const auto entry = entries.find(name);
  if (entry == entries.end() || kernels() == nullptr) return kNotFound;
  auto* made = new Function{{}, entry->second};
  made->kernel.thread =
      reinterpret_cast<decltype(made->kernel.thread)>(dlsym(kernels(), name));
  made->kernel.shared = reinterpret_cast<decltype(made->kernel.shared)>(
      dlsym(kernels(), (std::string(name) + "_shared").c_str()));
  *function = made;
  return made->kernel.thread != nullptr && made->kernel.shared != nullptr ? 0 : kNotFound;
}

int cuFuncSetAttribute(void*, int attribute, int value) {
  constexpr int kShared = 8, kMostShared = 163 << 10; // sm_80
  return attribute == kShared && value <= kMostShared ? 0 : kInvalid;
}

int cuMemAlloc_v2(void** pointer, size_t bytes) {
  constexpr size_t kAlign = 256;
  auto* made = static_cast<std::byte*>(
      std::aligned_alloc(kAlign, (bytes + kAlign - 1) / kAlign * kAlign));
  std::memset(made, 0xdb, bytes); // what nobody wrote must not look like a result
  const std::lock_guard lock(state_lock);
  blocks[made] = bytes;
  *pointer = made;
  return 0;
}
int cuMemFree_v2(void* pointer) {
  const std::lock_guard lock(state_lock);
  if (blocks.erase(static_cast<std::byte*>(pointer)) == 0) return kInvalid;
  std::free(pointer);
  return 0;
}
int cuMemFreeHost(void* memory) {
  const std::lock_guard lock(state_lock);
  if (pinned.erase(static_cast<std::byte*>(memory)) == 0) return kInvalid;
  std::free(memory);
  return 0;
}
int cuMemHostAlloc(void** memory, size_t bytes, unsigned flags) {
  if (flags != 0) return kInvalid;
  const std::lock_guard lock(state_lock);
  pinned[static_cast<std::byte*>(*memory = std::malloc(bytes))] = bytes;
  return 0;
}
int cuMemcpyHtoDAsync_v2(void* to, const void* from, size_t bytes, void*) {
  if (bytes == 0 || !may_copy(from, bytes)) return kInvalid;
  return later([=] { return copy(to, from, bytes, true, false); },
               with_bytes("up", bytes));
}
int cuMemcpyDtoHAsync_v2(void* to, const void* from, size_t bytes, void*) {
  if (bytes == 0 || !may_copy(to, bytes)) return kInvalid;
  return later([=] { return copy(to, from, bytes, false, true); },
               with_bytes("down", bytes));
}
int cuMemcpyDtoDAsync_v2(void* to, const void* from, size_t bytes, void*) {
  if (bytes == 0) return kInvalid;
  return later([=] { return copy(to, from, bytes, true, true); },
               with_bytes("copy", bytes));
}
int cuStreamCreate(void** stream, unsigned) {
  *stream = new Event;
  return change_left(1);
}
int cuStreamDestroy_v2(void* stream) {
  delete static_cast<Event*>(stream);
  return change_left(-1);
}
// A stream that is captured cannot be waited for.
int cuStreamSynchronize(void*) { return captured ? kCaptures : 0; }
int cuStreamBeginCapture_v2(void*, int) { return captured.emplace(), 0; }
int cuStreamEndCapture(void*, void** graph) {
  *graph = new Graph(std::move(*captured));
  captured.reset();
  const auto& made = *static_cast<Graph*>(*graph);
  note("graph of " + std::to_string(made.works.size()));
  note("holds " + made.what);
  return change_left(1);
}
int cuGraphDestroy(void* graph) {
  delete static_cast<Graph*>(graph);
  return change_left(-1);
}
int cuGraphExecDestroy(void* run) { return cuGraphDestroy(run); }
int cuGraphInstantiateWithFlags(void** run, void* graph, unsigned long long) {
  *run = new Graph(*static_cast<Graph*>(graph));
  return change_left(1);
}
int cuGraphLaunch(void* run, void*) {
  const char* lost = setting("SVOD_STAND_IN_LOST");
  if (lost != nullptr && ++runs >= std::atoi(lost)) return kLost;
  note("run");
  for (const Work& work : static_cast<Graph*>(run)->works)
    if (const int status = work(); status != 0) return status;
  return 0;
}
int cuLaunchKernel(void* function, unsigned blocks_x, unsigned blocks_y,
                   unsigned blocks_z, unsigned threads_x, unsigned threads_y,
                   unsigned threads_z, unsigned, void*, void** parameters, void**) {
  const auto& made = *static_cast<Function*>(function);
  constexpr unsigned kMostBlocks = 0x7fffffff, kMostThreads = 1024;
  if (blocks_x - 1 >= kMostBlocks || threads_x - 1 >= kMostThreads || blocks_y != 1 ||
      blocks_z != 1 || threads_y != 1 || threads_z != 1)
    return kInvalid;
  std::vector<std::byte*> values;
  for (size_t i = 0; i < made.parameters; ++i)
    values.push_back(*static_cast<std::byte**>(parameters[i]));
  return later([=, &made] { return launch(made, blocks_x, threads_x, values); },
               "launch");
}
// A mark of a stream that is captured has no time of its own, nor has one in a graph
// that did not run.
int cuEventCreate(void** event, unsigned flags) {
  if (flags != 0) return kInvalid;
  *event = new Event;
  return 0;
}
int cuEventRecordWithFlags(void* event, void*, unsigned flags) {
  constexpr unsigned kExternal = 1;
  if ((flags == kExternal) != captured.has_value()) return kInvalid;
  return later(
      [=] {
        static_cast<Event*>(event)->recorded = Clock::now();
        return 0;
      },
      "event");
}
int cuEventElapsedTime(float* milliseconds, void* begin, void* end) {
  const auto from = static_cast<Event*>(begin)->recorded;
  const auto to = static_cast<Event*>(end)->recorded;
  if (!from || !to) return kInvalid;
  *milliseconds = std::chrono::duration<float, std::milli>(*to - *from).count();
  return 0;
}
int cuGetErrorString(int status, const char** text) {
  *text = status == kLost             ? "unspecified launch failure"
          : status == kCaptures       ? "operation not permitted when stream is capturing"
          : status == kBadModule      ? "a PTX JIT compilation failed"
          : status == kIllegalAddress ? "an illegal memory access was encountered"
                                      : nullptr;
  return *text == nullptr ? kInvalid : 0;
}

} // extern "C"
