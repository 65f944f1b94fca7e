// The neighbourhood of the chosen schedule: tiles of up to two outer axes, and for each
// stage how far it is written out and how many sums it keeps. One field changes at a
// time, but for the tile, whose axes share the registers.
#include "compiler/optimize/search/schedule_space.h"

#include "compiler/kernel/fit.h"

#include <algorithm>
#include <functional>

namespace svod::optimize {

namespace {

constexpr int kCounts[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16};
constexpr int64_t kSums[] = {1, 2, 4, 8};
constexpr int kSteps[] = {1, 2, 4, 8};
constexpr int64_t kNests[] = {0, 32, 128};

class Space {
public:
  Space(const ScheduledKernel& kernel, const LevelSchedule& chosen, const Level& level,
        const cost::Surroundings& around)
      : kernel_(kernel), chosen_(chosen), level_(level), around_(around) {}

  std::vector<ScheduleCandidate> candidates() {
    tiles();
    for (size_t stage = 0; stage < chosen_.stages.size(); ++stage) stage_choices(stage);
    std::ranges::stable_sort(found_, {}, &ScheduleCandidate::seconds);
    return std::move(found_);
  }

private:
  void add(LevelSchedule schedule) {
    if (schedule == chosen_ || !misfit(kernel_, schedule, chosen_).empty() ||
        std::ranges::find(found_, schedule, &ScheduleCandidate::schedule) != found_.end())
      return;
    const double seconds = cost::cost_of(kernel_, schedule, level_, around_).total;
    found_.push_back({std::move(schedule), seconds});
  }

  // The last axis is the one whose positions follow each other.
  void tiles() {
    std::vector<AxisId> axes;
    for (AxisId a : kernel_.loops.outer)
      if (kernel_.is_loop(a)) axes.push_back(a);
    // Beyond twice the registers most positions wait on the stack.
    const int most = 2 * level_.registers;
    for (size_t first = 0; first < axes.size(); ++first)
      for (size_t second = first; second < axes.size(); ++second)
        for (int rows : kCounts)
          for (int columns : kCounts)
            if ((first != second || rows == 1) && rows * columns <= most)
              add_tile({{axes[first], rows}, {axes[second], columns}});
  }

  void add_tile(std::vector<TileAxis> tile) {
    std::erase_if(tile, [](const TileAxis& t) { return t.count == 1; });
    LevelSchedule schedule = chosen_;
    schedule.tile = std::move(tile);
    add(std::move(schedule));
  }

  void change(size_t stage, const std::function<void(StageSchedule&)>& edit) {
    LevelSchedule schedule = chosen_;
    edit(schedule.stages[stage]);
    add(std::move(schedule));
  }

  void stage_choices(size_t stage) {
    for (int64_t sums : kSums) change(stage, [&](StageSchedule& s) { s.sums = sums; });
    if (chosen_.stages[stage].unroll.off) return;
    for (int by : kSteps) change(stage, [&](StageSchedule& s) { s.unroll.by = by; });
    for (int64_t nest : kNests)
      change(stage, [&](StageSchedule& s) {
        s.unroll.nest = nest;
        s.unroll.small_nest = std::min(s.unroll.small_nest, nest);
      });
    if (!chosen_.stages[stage].weights.empty())
      change(stage, [](StageSchedule& s) { s.weights.clear(); });
  }

  const ScheduledKernel& kernel_;
  const LevelSchedule& chosen_;
  const Level& level_;
  const cost::Surroundings& around_;
  std::vector<ScheduleCandidate> found_;
};

} // namespace

std::vector<ScheduleCandidate>
level_candidates(const ScheduledKernel& kernel, const LevelSchedule& chosen,
                 const Level& level, const cost::Surroundings& around, size_t most) {
  if (kernel.call() || kernel.sequence()) return {};
  std::vector<ScheduleCandidate> out = Space(kernel, chosen, level, around).candidates();
  if (out.size() > most) out.resize(most);
  return out;
}

} // namespace svod::optimize
