// Schedules that were edited by hand take the place of those that were chosen.
#include "compiler/kernel/fit.h"
#include "compiler/optimize/choose.h"
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

// What the rules prove of single expressions they prove for a tile, and for vectors of
// one length; parts of a sequence have one.
static std::string misfit_of(const ScheduledKernel& k, bool joined,
                             const LevelSchedule& given, const LevelSchedule& chosen,
                             const Level& level) {
  if (k.call() || k.sequence()) return misfit(k, given, chosen);
  LevelSchedule vectors = chosen;
  if (!joined && std::ranges::count(lane_counts(k, level), given.lanes) != 0)
    vectors.lanes = given.lanes;
  if (std::string why = tile_misfit(k, given, vectors); !why.empty()) return why;
  return misfit(k, given, schedule_tile(k, level, given.lanes, given.tile));
}

static void apply_levels(ScheduledKernel& k, bool joined, const Target& target,
                         const ScheduleFile& file, AppliedSchedules& applied) {
  const Digest digest = digest_of(k, joined);
  if (const auto given = file.find(digest); given != file.end()) {
    applied.used.insert(digest);
    const std::vector<LevelSchedule>& levels = given->second.levels;
    for (size_t i = 0; i < k.levels.size(); ++i) {
      LevelSchedule& chosen = k.levels[i];
      const auto level = std::ranges::find(levels, chosen.level, &LevelSchedule::level);
      if (level == levels.end()) continue;
      const std::string why = misfit_of(k, joined, *level, chosen, target.levels[i]);
      if (!why.empty()) {
        applied.misfits.push_back({digest, chosen.level, why});
        continue;
      }
      const size_t stages = chosen.stages.size();
      chosen = *level;
      chosen.stages.resize(stages);
    }
  }
  for (ScheduledKernel& part : k.parts()) apply_levels(part, true, target, file, applied);
}

void apply_levels(ScheduledKernel& k, const Target& target, const ScheduleFile& file,
                  AppliedSchedules& applied) {
  apply_levels(k, false, target, file, applied);
}

} // namespace svod::optimize
