// Schedules that were edited by hand take the place of those that were chosen.
#include "compiler/kernel/fit.h"
#include "compiler/optimize/schedule_kernel.h"

#include <algorithm>

namespace svod::optimize {

void apply_loops(ScheduledKernel& k, const ScheduleFile& file,
                 AppliedSchedules& applied) {
  // Whether it will be a part of a sequence is not decided yet.
  auto given = file.find(digest_of(k));
  if (given == file.end()) given = file.find(digest_of(k, true));
  if (given == file.end()) return;
  const auto& [digest, schedule] = *given;
  applied.used.insert(digest);
  Loops loops = schedule.loops;
  loops.inner.resize(std::max(loops.inner.size(), k.stages.size()));
  if (loops == k.loops) return;
  if (const std::string why = misfit(k, loops, k.loops); !why.empty())
    applied.misfits.push_back({digest, "", why});
  else
    k.loops = std::move(loops);
}

static void apply_levels(ScheduledKernel& k, bool joined, const ScheduleFile& file,
                         AppliedSchedules& applied) {
  const Digest digest = digest_of(k, joined);
  if (const auto given = file.find(digest); given != file.end()) {
    applied.used.insert(digest);
    const std::vector<LevelSchedule>& levels = given->second.levels;
    for (LevelSchedule& chosen : k.levels) {
      const auto level = std::ranges::find(levels, chosen.level, &LevelSchedule::level);
      if (level == levels.end()) continue;
      const std::string why = misfit(k, *level, chosen);
      if (!why.empty()) {
        applied.misfits.push_back({digest, chosen.level, why});
        continue;
      }
      const size_t stages = chosen.stages.size();
      chosen = *level;
      chosen.stages.resize(stages);
    }
  }
  for (ScheduledKernel& part : k.parts()) apply_levels(part, true, file, applied);
}

void apply_levels(ScheduledKernel& k, const ScheduleFile& file,
                  AppliedSchedules& applied) {
  apply_levels(k, false, file, applied);
}

} // namespace svod::optimize
