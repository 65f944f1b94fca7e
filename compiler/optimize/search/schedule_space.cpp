#include "compiler/optimize/search/schedule_space.h"

#include "compiler/kernel/fit.h"
#include "compiler/optimize/schedule_kernel.h"

#include <algorithm>

namespace svod::optimize {

namespace {

// Positions of one axis that a tile is tried with, and axes that it is made of. Longer
// rows differ less from the next longer ones, and each tile takes its time to be priced.
constexpr int kRows[] = {2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28};
constexpr size_t kTileAxes = 2;
// So many of the best tiles are tried with other choices beside them.
constexpr size_t kBestTiles = 3;

class Space {
public:
  Space(const ScheduledKernel& kernel, const LevelSchedule& chosen, const Level& level,
        const cost::Surroundings& around, SearchBudget& budget)
      : kernel_(kernel), chosen_(chosen), level_(level), around_(around),
        budget_(budget) {
    if (kernel.has_lane_axis() && chosen.lanes < kernel.loops.lanes)
      cut_ = cut_lanes(kernel, kernel.loops.lanes / chosen.lanes);
  }

  std::vector<ScheduleCandidate> best(size_t most) {
    for (const std::vector<TileAxis>& tile : tiles()) {
      const LevelSchedule tiled = ruled(tile);
      add(tiled, tiled);
    }
    rank();
    std::vector<LevelSchedule> starts{chosen_};
    for (size_t i = 0; i < std::min(kBestTiles, found_.size()); ++i)
      starts.push_back(found_[i].schedule);
    for (const LevelSchedule& start : starts) {
      const LevelSchedule proven = ruled(start.tile);
      for (LevelSchedule& varied : variations(start)) add(std::move(varied), proven);
    }
    rank();
    if (found_.size() > most) found_.resize(most);
    return std::move(found_);
  }

private:
  const ScheduledKernel& loops_kernel() const { return cut_ ? *cut_ : kernel_; }

  LevelSchedule ruled(const std::vector<TileAxis>& tile) const {
    return schedule_tile(kernel_, level_, chosen_.lanes, tile);
  }

  // `proven`: what the rules choose for its tile.
  void add(LevelSchedule schedule, const LevelSchedule& proven) {
    if (budget_.left == 0 || schedule == chosen_) return;
    if (!misfit(kernel_, schedule, proven).empty()) return;
    if (std::ranges::find(found_, schedule, &ScheduleCandidate::schedule) != found_.end())
      return;
    --budget_.left;
    const double seconds = cost::cost_of(kernel_, schedule, level_, around_).total;
    found_.push_back({std::move(schedule), seconds});
  }

  // Stable, so that schedules of equal cost stay in the order in which they were made.
  void rank() { std::ranges::stable_sort(found_, {}, &ScheduleCandidate::seconds); }

  // How many positions of an axis a tile may have: no chunk is cut by a tile.
  int64_t most_positions(AxisId axis) const {
    const ScheduledKernel& k = loops_kernel();
    int64_t most = k.indices.extent(axis);
    for (const ChunkAxis& chunk : k.loops.chunks)
      if (chunk.axis == axis) most = std::min(most, chunk.block);
    return most;
  }

  // All register tiles of up to kTileAxes axes, the outer one first, that the level's
  // registers have room for.
  std::vector<std::vector<TileAxis>> tiles() const {
    std::vector<std::vector<TileAxis>> out;
    std::vector<TileAxis> tile;
    add_tiles(tile, 0, 1, out);
    return out;
  }

  // `tile` and all that further axes, from the outer loop `from` on, make of it.
  void add_tiles(std::vector<TileAxis>& tile, size_t from, int64_t points,
                 std::vector<std::vector<TileAxis>>& out) const {
    out.push_back(tile);
    if (tile.size() == kTileAxes) return;
    const ScheduledKernel& k = loops_kernel();
    for (size_t at = from; at < k.loops.outer.size(); ++at) {
      const AxisId axis = k.loops.outer[at];
      if (!k.is_loop(axis)) continue;
      for (int n : kRows) {
        if (n > most_positions(axis) || n * points > level_.registers) break;
        tile.push_back({axis, n});
        add_tiles(tile, at + 1, n * points, out);
        tile.pop_back();
      }
    }
  }

  // The schedule with one choice made otherwise.
  static std::vector<LevelSchedule> variations(const LevelSchedule& start) {
    std::vector<LevelSchedule> out;
    auto with = [&](auto change) {
      out.push_back(start);
      change(out.back());
    };
    if (!start.peeled.empty()) with([](LevelSchedule& s) { s.peeled.clear(); });
    if (!start.looped.empty()) with([](LevelSchedule& s) { s.looped.clear(); });
    for (size_t i = 0; i < start.stages.size(); ++i)
      stage_variations(start.stages[i], [&](auto change) {
        with([&](LevelSchedule& s) { change(s.stages[i]); });
      });
    return out;
  }

  template <class With>
  static void stage_variations(const StageSchedule& start, const With& with) {
    for (int64_t sums : {1, 2, 4})
      if (start.rounds != 0) with([&](StageSchedule& s) { s.sums = sums; });
    if (!start.unroll.off && start.unroll.by > 0)
      for (int64_t nest : {0, 128})
        for (int by : {1, 4})
          with([&](StageSchedule& s) {
            s.unroll.nest = nest;
            s.unroll.small_nest = std::min(s.unroll.small_nest, nest);
            s.unroll.by = by;
          });
    if (!start.weights.empty()) with([](StageSchedule& s) { s.weights.clear(); });
    if (start.picture) with([](StageSchedule& s) { s.picture.reset(); });
    if (start.columns != 0) with([](StageSchedule& s) { s.columns = 0; });
    if (start.shortest_sum != 0) with([](StageSchedule& s) { s.shortest_sum = 0; });
    if (start.elements != 0) with([](StageSchedule& s) { s.elements = 0; });
    if (start.byte_rows) with([](StageSchedule& s) { s.byte_rows = false; });
  }

  const ScheduledKernel& kernel_;
  const LevelSchedule& chosen_;
  const Level& level_;
  const cost::Surroundings& around_;
  SearchBudget& budget_;
  std::optional<ScheduledKernel> cut_; // with vectors as short as the schedule's
  std::vector<ScheduleCandidate> found_;
};

} // namespace

std::vector<ScheduleCandidate> level_candidates(const ScheduledKernel& kernel,
                                                const LevelSchedule& chosen,
                                                const Level& level,
                                                const cost::Surroundings& around,
                                                size_t most, SearchBudget& budget) {
  if (kernel.call() || kernel.sequence()) return {};
  return Space(kernel, chosen, level, around, budget).best(most);
}

} // namespace svod::optimize
