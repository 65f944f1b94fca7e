// Schedules that were edited by hand take the place of those that were chosen.
#include "compiler/kernel/fit.h"
#include "compiler/optimize/schedule_kernel.h"

#include <algorithm>

namespace svod::optimize {

static const KernelSchedule* find(const ScheduleFile& file, const Digest& digest) {
  const auto found = file.find(digest);
  return found == file.end() ? nullptr : &found->second;
}

void apply_loops(ScheduledKernel& k, const ScheduleFile& file,
                 AppliedSchedules& applied) {
  // Whether it will be a part of a sequence is not decided yet.
  Digest digest = digest_of(k);
  if (file.count(digest) == 0) digest = digest_of(k, true);
  const KernelSchedule* given = find(file, digest);
  if (given == nullptr) return;
  applied.used.insert(digest);
  Loops loops = given->loops;
  loops.inner.resize(std::max(loops.inner.size(), k.stages.size()));
  if (loops == k.loops) return;
  if (const std::string why = misfit(k, loops, k.loops); !why.empty())
    applied.misfits.push_back(digest.hex() + ": " + why);
  else
    k.loops = std::move(loops);
}

static void apply_levels(ScheduledKernel& k, bool joined, const ScheduleFile& file,
                         AppliedSchedules& applied) {
  const Digest digest = digest_of(k, joined);
  if (const KernelSchedule* given = find(file, digest)) {
    applied.used.insert(digest);
    for (LevelSchedule& chosen : k.levels) {
      const auto level =
          std::ranges::find(given->levels, chosen.level, &LevelSchedule::level);
      if (level == given->levels.end()) continue;
      const std::string why = misfit(k, *level, chosen);
      if (!why.empty()) {
        applied.misfits.push_back(digest.hex() + ", level " + chosen.level + ": " + why);
        continue;
      }
      const size_t stages = chosen.stages.size();
      chosen = *level;
      chosen.stages.resize(stages);
    }
  }
  for (ScheduledKernel& part : k.parts) apply_levels(part, true, file, applied);
}

void apply_levels(ScheduledKernel& k, const ScheduleFile& file,
                  AppliedSchedules& applied) {
  apply_levels(k, false, file, applied);
}

} // namespace svod::optimize
