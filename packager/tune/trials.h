// What --tune measures: for each kernel of a plan other schedules of one level, the most
// promising first.
#pragma once

#include "compiler/plan/plan.h"
#include "compiler/support/target.h"
#include "packager/tune/profile.h"
#include "packager/tune/shard.h"
#include "packager/tune/tuning_file.h"

#include <vector>

namespace svod::packager {

// Another schedule for a kernel, alone or as a part of a sequence.
struct Trial {
  Digest kernel;
  KernelSchedule schedule;      // with the one level
  std::vector<size_t> programs; // of the plan, that have the kernel
};

// `level` is a number in target.levels. `best` has schedules that were faster than the
// plan's: of their kernels it is their neighbours that are tried. Kernels whose programs
// take too small a share of `profile` for it to be worth a compile have none. Those of
// one rank stand together: the first of every kernel, then the second. The shard counts
// the plan's programs, whatever the profile says of them, so that all machines count
// alike.
std::vector<Trial> trials_of(const plan::Plan& plan, const Target& target, size_t level,
                             int threads, const Profile& profile,
                             const TunedKernels& best, Shard shard);

// Takes as many as one program can hold out of `left`: no two of them in one kernel of
// the plan, for then nobody could say whose time it is.
std::vector<Trial> next_round(std::vector<Trial>& left);

// The names that a profile has for the programs of a plan.
std::string program_name(size_t program);

} // namespace svod::packager
