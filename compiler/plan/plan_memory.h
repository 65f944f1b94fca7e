// Offsets in one arena.
#pragma once

#include <cstdint>
#include <vector>

namespace svod::plan {

// A block of memory needed from step `first` to step `last`, both included.
struct Lifetime {
  uint64_t bytes = 0;
  uint32_t first = 0, last = 0;
};

// Two lifetimes that may share bytes although they meet, both numbers of lifetimes:
// `second` begins at least `below` before `first`, or at least `above` behind it, or,
// where both have one `place`, with it.
struct MemoryPair {
  uint32_t first = 0, second = 0;
  uint64_t below = 0, above = 0;
  bool place = false;
};

struct MemoryPlan {
  std::vector<uint64_t> offsets; // per lifetime
  uint64_t bytes = 0;
  uint64_t lower_bound = 0;      // largest sum of bytes alive at one step
  std::vector<uint32_t> at_peak; // lifetimes alive there
};

// By step: bytes that are alive, less what pairs share.
std::vector<uint64_t> bytes_alive(const std::vector<Lifetime>& lifetimes, uint64_t align,
                                  const std::vector<MemoryPair>& pairs);

// Sizes are rounded up to `align`, a power of two. Not `thorough`: the first placement,
// which others would improve.
MemoryPlan plan_memory(const std::vector<Lifetime>& lifetimes, uint64_t align,
                       const std::vector<MemoryPair>& pairs = {}, bool thorough = true);

} // namespace svod::plan
