// Products of bytes four at a time, whose common factor is read as registers of four such
// groups: the instruction takes one of them as an element, so that a load serves four
// steps, or four positions, instead of one.
#pragma once

#include "compiler/kernel/stage_work.h"

#include <optional>

namespace svod {

// One position of the loops that are written out, and where in x its group begins there,
// in bytes from that of the first one.
struct WrittenStep {
  std::vector<std::pair<AxisId, int64_t>> at;
  int64_t offset = 0;
};

// The loops of a reduction from inner(stage)[depth] on as a sequence of steps. Where the
// loop at `depth` has more than `by` positions, it remains, around so many at a time.
struct WrittenSteps {
  size_t depth = 0;
  int64_t by = 0;
  std::vector<WrittenStep> steps;
};

// Of the kernel's first stage, under a tile of so many points; `nest` is the limit of
// StageSchedule::unroll.
WrittenSteps written_steps(const ScheduledKernel& kernel, int64_t points, int64_t nest);

// A register of one, two or four groups that follow each other from `at` on.
struct GroupLoad {
  int64_t at = 0;
  int groups = 1;
};
// Which of the loads a group is in, and as which element.
struct GroupUse {
  size_t load = 0;
  int element = 0;
};
struct GroupLoads {
  std::vector<GroupLoad> loads;
  std::vector<GroupUse> uses; // by the number of the offset asked for
};
// Loads that hold the groups at these offsets, and no byte that is not between the first
// and the last one: all of these belong to one array.
GroupLoads cover_groups(const std::vector<int64_t>& offsets);
// The same by loads of one or two groups, all of which are asked for.
GroupLoads cover_pairs(const std::vector<int64_t>& offsets);

// Whether x of the kernel's first stage is affine in all loops, so that the above can be
// asked for.
bool reads_groups(const ScheduledKernel& kernel);

// Registers of four lanes of the first stage's sums that later stages store.
int quads_stored(const ScheduledKernel& kernel);

} // namespace svod
