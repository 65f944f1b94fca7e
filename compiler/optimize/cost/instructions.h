// The instructions of a kernel under a schedule, by the part of a core that executes
// them.
#pragma once

#include "compiler/kernel/dependence.h"
#include "compiler/kernel/stage_work.h"
#include "compiler/support/target.h"

namespace svod::cost {

// Counts, of registers as wide as the level's unless the name says otherwise.
struct Instructions {
  double products = 0;   // multiplications, multiply-adds
  double operations = 0; // other arithmetic, conversions, shuffles
  double quotients = 0;  // elements that are divided, or of which a root is taken
  double loads = 0;      // whole registers
  double elements = 0;   // loads of one element: for all lanes, or one by one
  double stored = 0;     // bytes
  double stores = 0;     // instructions that store
  double plain = 0;      // addresses, loops, branches
  double waited = 0;     // clocks that sums wait for themselves
  double nests = 0;      // loops below a tile that are entered
  double spills = 0;     // roots of how many registers a step has too few, for each step

  Instructions& operator+=(const Instructions& other);
  friend Instructions operator*(Instructions a, double times);
  // All that are issued, but for what a division is made of.
  double issued() const {
    return products + operations + loads + elements + stores + plain;
  }
};

// Products, operations and quotients of a scalar function on a register; ops.def's maps.
Instructions work_of(Op op);

// Of all positions of the kernel, on one thread, with the tile's remainders and the ends
// of axes that are emitted apart. `kernel` has lanes as `how` does (cut_lanes).
Instructions instructions_of(const ScheduledKernel& kernel, const LevelSchedule& how,
                             const Level& level);

} // namespace svod::cost
