// What the accesses of a kernel's stages touch below each of its loops.
#pragma once

#include "compiler/kernel/schedule.h"

#include <algorithm>
#include <vector>

namespace svod::cost {

// What one term of an index adds to it.
struct Step {
  const Term* term = nullptr;
  double stride = 0;        // bytes
  std::vector<AxisId> axes; // that it depends on
};

struct Access {
  uint32_t argument = 0;
  const Index* index = nullptr;
  double bytes = 0; // of an element
  bool written = false;
  std::vector<Step> steps;
  std::vector<AxisId> axes;
};

// A loop: its trips, and how many positions of the axis a step covers.
struct Loop {
  AxisId axis = 0;
  double trips = 1;
  int64_t covered = 1;
};

// Lines that an access touches below a loop.
struct Footprint {
  double bytes = 0, run = 0; // all of them; side by side
  bool whole = false;        // of its lines no byte is left for later
};

// A stage's loops, and what its accesses touch: outside of all loops, then in each.
struct Nest {
  std::vector<Access> accesses;
  std::vector<Loop> loops;
  std::vector<std::vector<Footprint>> touched; // by depth, by access

  const std::vector<Footprint>& at(size_t depth) const {
    return touched[std::min(depth, touched.size() - 1)];
  }
  double bytes(size_t depth) const {
    double sum = 0;
    for (const Footprint& f : at(depth)) sum += f.bytes;
    return sum;
  }
};

// Of each stage. `line`: bytes of a cache's line.
std::vector<Nest> nests_of(const ScheduledKernel& kernel, const LevelSchedule& how,
                           double line);

} // namespace svod::cost
