#include "compiler/optimize/search/loop_space.h"

#include "compiler/optimize/choose.h"
#include "compiler/optimize/schedule_kernel.h"

#include <algorithm>

namespace svod::optimize {

namespace {

// So many loops are tried in all orders; of more, one moves.
constexpr size_t kAllOrders = 4;
// So many of the best loops are tried with other tiles, and so many tiles of each.
constexpr size_t kBestLoops = 3, kTilesOfLoops = 3;

// What a run writes does not depend on which position comes first.
bool is_free(const ScheduledKernel& k) {
  if (k.call() || k.sequence() || k.loops.in_parts) return false;
  return std::ranges::none_of(k.arguments,
                              [](const Argument& a) { return a.read && a.written; }) &&
         std::ranges::none_of(
             k.stages, [](const Stage& s) { return s.kind == StageKind::Scatter; });
}

// The axes in other orders; those that are no loops stay where they are.
std::vector<std::vector<AxisId>> orders_of(const ScheduledKernel& k,
                                           const std::vector<AxisId>& axes) {
  std::vector<size_t> places;
  std::vector<AxisId> loops;
  for (size_t i = 0; i < axes.size(); ++i)
    if (k.is_loop(axes[i])) places.push_back(i), loops.push_back(axes[i]);
  std::vector<std::vector<AxisId>> out;
  auto add = [&](const std::vector<AxisId>& order) {
    std::vector<AxisId> all = axes;
    for (size_t i = 0; i < order.size(); ++i) all[places[i]] = order[i];
    if (all != axes && std::ranges::count(out, all) == 0) out.push_back(std::move(all));
  };
  if (loops.size() <= kAllOrders) {
    std::vector<size_t> order(loops.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    do {
      std::vector<AxisId> permuted;
      for (size_t i : order) permuted.push_back(loops[i]);
      add(permuted);
    } while (std::ranges::next_permutation(order).found);
    return out;
  }
  for (size_t from = 0; from < loops.size(); ++from)
    for (size_t to = 0; to < loops.size(); ++to) {
      std::vector<AxisId> moved = loops;
      moved.erase(moved.begin() + static_cast<int64_t>(from));
      moved.insert(moved.begin() + static_cast<int64_t>(to), loops[from]);
      add(moved);
    }
  return out;
}

// Chunks that are half and twice as large, and as many as now along one axis alone. One
// chunk is none: short kernels of one chunk are joined, and what a launch is stays.
std::vector<std::vector<ChunkAxis>> chunks_of(const ScheduledKernel& k) {
  std::vector<std::vector<ChunkAxis>> out;
  if (k.chunk_count() == 1) return out;
  auto add = [&](const std::vector<ChunkAxis>& chunks) {
    ScheduledKernel changed = k;
    changed.loops.chunks = chunks;
    if (changed.chunk_count() > 1 && chunks != k.loops.chunks &&
        std::ranges::count(out, chunks) == 0)
      out.push_back(chunks);
  };
  for (size_t i = 0; i < k.loops.chunks.size(); ++i) {
    std::vector<ChunkAxis> larger = k.loops.chunks;
    std::vector<ChunkAxis> smaller = k.loops.chunks;
    larger[i].block = std::min(2 * larger[i].block, k.indices.extent(larger[i].axis));
    smaller[i].block = (smaller[i].block + 1) / 2;
    add(larger);
    add(smaller);
  }
  const int64_t parts = k.chunk_count();
  for (AxisId axis : k.loops.outer)
    if (const int64_t extent = k.indices.extent(axis); k.is_loop(axis))
      add({{axis, (extent + parts - 1) / parts}});
  return out;
}

// Which of equal positions an argmax takes is the first one it meets.
bool is_sum(const Stage& s) { return s.kind == StageKind::Reduce && !is_arg_reduce(s); }

class KernelSpace {
public:
  KernelSpace(const ScheduledKernel& kernel, const LevelSchedule& chosen,
              const Level& level, const cost::Surroundings& around, bool joined,
              SearchBudget& budget)
      : kernel_(kernel), chosen_(chosen), level_(level), around_(around), joined_(joined),
        budget_(budget) {}

  std::vector<ScheduleCandidate> best(size_t most) {
    add_lanes(kernel_);
    for (Loops& loops : other_loops(kernel_, around_.threads)) {
      ScheduledKernel changed = kernel_;
      changed.loops = std::move(loops);
      add_lanes(changed);
    }
    rank();
    const std::vector<ScheduleCandidate> starts(
        found_.begin(), found_.begin() + int64_t(std::min(kBestLoops, found_.size())));
    for (const ScheduleCandidate& start : starts) add_tiles(start);
    rank();
    if (found_.size() > most) found_.resize(most);
    return std::move(found_);
  }

private:
  void add_lanes(const ScheduledKernel& k) {
    const bool same_loops = k.loops == kernel_.loops;
    const std::vector<int> counts =
        joined_ ? std::vector{k.loops.lanes} : lane_counts(k, level_);
    for (int lanes : counts) {
      if (budget_.left == 0) return;
      if (same_loops && (!k.has_lane_axis() || lanes == chosen_.lanes)) continue;
      add(k, schedule_lanes(k, level_, lanes));
    }
  }

  void add(const ScheduledKernel& k, LevelSchedule schedule) {
    --budget_.left;
    const double seconds = cost::cost_of(k, schedule, level_, around_).total;
    found_.push_back({std::move(schedule), seconds,
                      k.loops == kernel_.loops ? std::nullopt : std::optional(k.loops)});
  }

  void add_tiles(const ScheduleCandidate& start) {
    ScheduledKernel changed = kernel_;
    if (start.loops) changed.loops = *start.loops;
    for (ScheduleCandidate& tiled : level_candidates(changed, start.schedule, level_,
                                                     around_, kTilesOfLoops, budget_)) {
      tiled.loops = start.loops;
      found_.push_back(std::move(tiled));
    }
  }

  // Stable, so that schedules of equal cost stay in the order in which they were made.
  void rank() { std::ranges::stable_sort(found_, {}, &ScheduleCandidate::seconds); }

  const ScheduledKernel& kernel_;
  const LevelSchedule& chosen_;
  const Level& level_;
  const cost::Surroundings& around_;
  bool joined_;
  SearchBudget& budget_;
  std::vector<ScheduleCandidate> found_;
};

} // namespace

std::vector<Loops> other_loops(const ScheduledKernel& k, int threads) {
  std::vector<Loops> out;
  if (!is_free(k)) return out;
  auto with = [&](auto change) {
    out.push_back(k.loops);
    change(out.back());
  };
  for (std::vector<AxisId>& order : orders_of(k, k.loops.outer))
    with([&](Loops& loops) { loops.outer = std::move(order); });
  for (size_t i = 0; i < k.stages.size(); ++i)
    if (is_sum(k.stages[i]) && !k.has_dot_axis())
      for (std::vector<AxisId>& order : orders_of(k, k.loops.inner[i]))
        with([&](Loops& loops) { loops.inner[i] = std::move(order); });
  if (threads > 1)
    for (std::vector<ChunkAxis>& chunks : chunks_of(k))
      with([&](Loops& loops) { loops.chunks = std::move(chunks); });
  return out;
}

std::vector<ScheduleCandidate>
kernel_candidates(const ScheduledKernel& kernel, const LevelSchedule& chosen,
                  const Level& level, const cost::Surroundings& around, bool joined,
                  size_t most, SearchBudget& budget) {
  if (kernel.call() || kernel.sequence()) return {};
  return KernelSpace(kernel, chosen, level, around, joined, budget).best(most);
}

} // namespace svod::optimize
