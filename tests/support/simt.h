// A GPU on this processor: kernels that were compiled for it run block by block, the
// threads of a block in turns from one wait to the next. Every access to memory is
// watched: one outside of what a kernel was given, and two of different threads to one
// byte, of which one writes and none waits for the other, are faults. So is a shuffle
// that a thread of the warp takes no part in. A block that counts its arrival sees what
// those wrote that had counted theirs at the same place.
#pragma once

#include "compiler/kernel/gpu_schedule.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace svod::test {

struct SimtKernel {
  void (*thread)(void* const* buffers, void* room, uint32_t* arrived,
                 int32_t* fault) = nullptr;
  const void* (*shared)(unsigned number, unsigned long* bytes) = nullptr;
};

struct SimtBuffer {
  std::byte* data = nullptr;
  size_t bytes = 0;
  bool written = false;
};

class Simt {
public:
  struct State; // of the launch that runs
  // `handle`: of dlopen, of an object with the text of simt_runtime() in it.
  explicit Simt(void* handle);
  ~Simt();
  // Returns what the kernel told of its data: 0 when all is well. `counters` are zero.
  int32_t launch(const SimtKernel& kernel, int64_t blocks, int threads,
                 std::span<const SimtBuffer> buffers, SimtBuffer room,
                 std::span<uint32_t> counters);
  // The first faults, in words.
  const std::vector<std::string>& faults() const;

private:
  std::unique_ptr<State> state_;
};

// C++ that is compiled beside the kernels: what they and ThreadSanitizer's
// instrumentation call.
const char* simt_runtime();

} // namespace svod::test
