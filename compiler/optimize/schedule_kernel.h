// The choices of one CPU level for a kernel whose loops, lanes and chunks are settled.
#pragma once

#include "compiler/kernel/schedule_file.h"
#include "compiler/support/target.h"

#include <set>

namespace svod::optimize {

// `joined`: the kernel is a part of a sequence, whose text has vectors of one length.
LevelSchedule schedule_kernel(const ScheduledKernel& kernel, const Level& level,
                              bool joined = false);

// Likewise with vectors of `lanes` elements. Not for calls and sequences.
LevelSchedule schedule_lanes(const ScheduledKernel& kernel, const Level& level,
                             int lanes);

// With vectors of `lanes` elements and this tile, which fit the kernel (kernel/fit.h),
// what the rules make of the rest. Not for calls and sequences.
LevelSchedule schedule_tile(const ScheduledKernel& kernel, const Level& level, int lanes,
                            std::vector<TileAxis> tile);

// One schedule for each level of the target, of the kernel and of the parts of a
// sequence.
void schedule_levels(ScheduledKernel& kernel, const Target& target);

// A schedule of a file that does not fit its kernel.
struct Misfit {
  Digest kernel;
  std::string level; // empty: its loops
  std::string why;
  std::string text() const {
    return kernel.hex() + (level.empty() ? "" : ", level " + level) + ": " + why;
  }
};

// What became of the schedules of a file.
struct AppliedSchedules {
  std::set<Digest> used;
  std::vector<Misfit> misfits;
};

// Before the plan counts chunks: loops that the file gives to this kernel.
void apply_loops(ScheduledKernel& kernel, const ScheduleFile& file,
                 AppliedSchedules& applied);
// Afterwards, and after schedule_levels for this target: what it says of single levels.
void apply_levels(ScheduledKernel& kernel, const Target& target, const ScheduleFile& file,
                  AppliedSchedules& applied);

} // namespace svod::optimize
