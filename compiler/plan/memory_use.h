// What lies in the arena of a finished plan, and when: read off its steps, for people.
#pragma once

#include "compiler/plan/plan.h"

namespace svod::plan {

// A step as a run meets it, those of a sequence one by one.
struct Moment {
  const Step* step = nullptr;
  // The launch that it is or belongs to, counted from the plan's first; none of a copy or
  // of a border of a region.
  std::optional<uint32_t> launch;
  uint64_t live = 0; // bytes of the arena that hold what is still needed
};

// A temporary from the first moment that needs its bytes to the last, both included.
struct LiveRange {
  SlotId slot = kNoSlot;
  uint32_t first = 0, last = 0;
  std::vector<int32_t> sources; // of what writes it first, into graph.source_names()
};

// The moments point into the plan.
struct MemoryUse {
  std::vector<Moment> moments;
  std::vector<LiveRange> ranges; // in the order of their first moments
};

MemoryUse memory_use(const Plan& plan);

} // namespace svod::plan
