// Tiles of attention: of a table the one that is predicted to take the least time. Many
// queries of a block read keys and values less often, few are more blocks. Whether it is
// one kernel at all is a question of what its scores would cost in memory: one query,
// whose blocks would be few and mostly empty, is better off with three kernels.
#include "compiler/optimize/choose_attention.h"

#include "compiler/kernel/gpu_attention.h"
#include "compiler/kernel/gpu_scatter.h"
#include "compiler/kernel/stage_work.h"
#include "compiler/optimize/choose_products.h"
#include "compiler/optimize/choose_scatter.h"
#include "compiler/support/divide.h"

#include <algorithm>
#include <cmath>

namespace svod::optimize {

namespace {

struct Shape {
  int queries, keys, part_queries, part_keys;
};
constexpr Shape kWarpShapes[] = {{128, 64, 32, 64}, {128, 64, 16, 64}, {64, 64, 32, 64},
                                 {64, 64, 16, 64},  {128, 32, 32, 32}, {64, 32, 16, 32},
                                 {32, 64, 16, 64},  {16, 64, 16, 64},  {16, 32, 16, 32}};
constexpr Shape kGroupShapes[] = {{64, 64, 64, 64},    {128, 64, 64, 64},
                                  {192, 64, 64, 64},   {64, 128, 64, 128},
                                  {128, 128, 64, 128}, {64, 208, 64, 208}};
constexpr Shape kThreadShapes[] = {{128, 64, 8, 8}, {64, 64, 8, 8}, {128, 64, 8, 4},
                                   {128, 32, 8, 4}, {64, 64, 4, 8}, {64, 64, 4, 4},
                                   {64, 32, 8, 4},  {64, 32, 4, 4}, {32, 64, 4, 8},
                                   {32, 32, 4, 4},  {16, 32, 2, 4}, {16, 32, 1, 2}};

class AttentionChooser {
public:
  AttentionChooser(const ScheduledKernel& k, const Attention& a, const Machine& m)
      : k_(k), a_(a), m_(m) {}
  std::optional<GpuSchedule> choose();
  double clocks() const { return least_; }
  static double time_apart(const ScheduledKernel& k, const Level& level);

private:
  // Instructions of a score: its function, and the exponential; others as of products
  // (choose_products.cpp).
  static constexpr double kInstructionsOfQuickScore = 8, kInstructionsOfScore = 32,
                          kInstructionsOfRun = 60, kInstructionsOfCopy = 30,
                          kHidden = 0.47, kProductsReached = 0.84, kCacheReached = 0.4;
  // Of groups, fitted to 135 attentions that ran on an H100 with heads of 64 and 128: the
  // share of their products that is reached beside weights; instructions of a score, and
  // of a run with its roundings; waits for memory of a step of one group by itself,
  // beside twice what it takes among others, and of a block before its first and behind
  // its last step.
  static constexpr double kGroupsReached = 0.55, kInstructionsOfGroupScore = 7.2,
                          kInstructionsOfGroupRun = 125, kStepWaits = 0.94,
                          kBlockWaits = 2.8;
  // Registers of a group's thread for each score, of several steps or of the only one,
  // and for each result.
  static constexpr double kRegistersOfScore = 2, kRegistersOfOnlyScore = 1.25,
                          kRegistersOfResult = 1.5;
  // Registers of a thread: what there are (PTX), and those beside sums and factors; and
  // what a multiprocessor has for each of the threads that it may hold.
  static constexpr double kMostRegisters = 255, kRegistersBeside = 64,
                          kRegistersOfThread = 32, kRegisterBytes = 4, kStepsRead = 3,
                          kRegistersOfFetch = 8;

  bool has_place(ExprId value) const;
  bool follow_each_other(ExprId value, AxisId axis) const;
  void fill(FactorTile& f, ExprId value, const std::vector<AxisId>& steps) const;
  void consider(AttentionTile tile, const Shape& shape);
  double registers(const AttentionTile& t) const;
  static double bytes_read(const AttentionPlane& keys, const AttentionPlane& values,
                           const AttentionTile& t);
  double resident_blocks(const GpuSchedule& s, double rounds) const;
  double predicted_of_groups(const GpuSchedule& s) const;
  double predicted(const GpuSchedule& s) const;

  const ScheduledKernel& k_;
  const Attention& a_;
  const Machine& m_;
  const bool score_has_place_ = has_place(a_.score);
  double least_ = 0;
  std::optional<GpuSchedule> best_;
};

// Whether the value is made of more than results of stages and constants.
bool AttentionChooser::has_place(ExprId value) const {
  const Expr& e = k_.exprs[value];
  return e.kind == Expr::Kind::Load || e.kind == Expr::Kind::Position ||
         e.kind == Expr::Kind::Guard ||
         std::ranges::any_of(e.inputs, [&](ExprId in) { return has_place(in); });
}

// Whether neighbours along the axis are neighbours in a tensor that the value reads.
bool AttentionChooser::follow_each_other(ExprId value, AxisId axis) const {
  return std::ranges::any_of(loads_below(k_, value), [&](ExprId id) {
    int64_t step = 0;
    return k_.indices.affine_in(k_.exprs[id].index, axis, step) && step == 1;
  });
}

// How a factor comes to shared memory.
void AttentionChooser::fill(FactorTile& f, ExprId value,
                            const std::vector<AxisId>& steps) const {
  const int along_steps = near_elements(k_, value, steps),
            along_axes = f.axes.empty() ? 1 : near_elements(k_, value, f.axes);
  f.by_steps = along_steps != along_axes
                   ? along_steps > along_axes
                   : f.axes.empty() || (follow_each_other(value, steps.back()) &&
                                        !follow_each_other(value, f.axes.back()));
  f.near = f.by_steps ? along_steps : along_axes;
}

// What a score is made of beside the product is read, or computed from its place, for
// several scores at once; so are the factors of several steps.
double AttentionChooser::registers(const AttentionTile& t) const {
  const AttentionPlane queries = attention_plane(k_, a_, t, AttentionFactor::Queries),
                       keys = attention_plane(k_, a_, t, AttentionFactor::Keys),
                       values = attention_plane(k_, a_, t, AttentionFactor::Values);
  const double of_queries = double(queries_of_warp(t) * queries.steps) *
                            double(byte_size(queries.tile.dtype)) /
                            (kRegisterBytes * kWarpThreads);
  const double of_places = score_has_place_ ? score_sums(t) / 2.0 : 0;
  if (t.by == Multiplier::Group) {
    const bool goes_on = keys.position_extent > t.block_keys;
    return (goes_on ? kRegistersOfScore : kRegistersOfOnlyScore) * score_sums(t) +
           kRegistersOfResult * result_sums(k_, a_, t) + of_places;
  }
  double out = kRegistersBeside + score_sums(t) + result_sums(k_, a_, t) + of_places;
  for (const AttentionPlane* p : {&keys, &values})
    if (!p->copied)
      out +=
          kRegistersOfFetch + double(ceil_div(p->steps * p->positions, threads_of(t))) *
                                  double(byte_size(p->tile.dtype)) / kRegisterBytes;
  if (t.matrices()) return out + of_queries;
  const double columns = double(values.positions) * t.part_keys / t.block_keys;
  return out + kStepsRead * (t.part_queries + std::max(double(t.part_keys), columns));
}

// From shared memory, for one step of keys. Queries are in a warp's registers, keys and
// values are read by each; threads read what they multiply, of which a warp has half
// twice.
double AttentionChooser::bytes_read(const AttentionPlane& keys,
                                    const AttentionPlane& values,
                                    const AttentionTile& t) {
  const double down = double(t.block_queries) / t.part_queries,
               across = double(t.block_keys) / t.part_keys,
               width = double(keys.steps + values.positions);
  double elements = width * t.block_keys * down;
  if (!t.matrices())
    elements =
        (elements + double(keys.steps + t.block_keys) * t.block_queries * across) / 2;
  return elements * double(byte_size(keys.tile.dtype));
}

// Blocks that a multiprocessor runs at a time, of `rounds` that it runs in all.
double AttentionChooser::resident_blocks(const GpuSchedule& s, double rounds) const {
  return std::max(1.0,
                  std::min({rounds, std::floor(double(m_.resident_threads) / s.threads),
                            std::floor(double(m_.first.bytes) /
                                       double(shared_of_attention(k_, s.attention))),
                            std::floor(double(m_.resident_threads) * kRegistersOfThread /
                                       (s.threads * registers(s.attention)))}));
}

// The same of groups. One by itself waits for each of its products and for the weights
// between them; of several that run at a time some multiply while others weigh.
double AttentionChooser::predicted_of_groups(const GpuSchedule& s) const {
  const AttentionTile& t = s.attention;
  const AttentionPlane keys = attention_plane(k_, a_, t, AttentionFactor::Keys),
                       values = attention_plane(k_, a_, t, AttentionFactor::Values);
  const double rounds = std::ceil(double(block_count(k_, s)) / m_.multiprocessors),
               resident = resident_blocks(s, rounds),
               turns = std::ceil(double(keys.position_extent) / t.block_keys),
               per_instruction = m_.instructions_per_clock * m_.warp_threads,
               scores = double(t.part_queries) * t.block_keys,
               width = double(keys.steps + values.positions);
  const double of_group =
      scores * (width / (kGroupsReached * m_.group_products_per_clock) +
                kInstructionsOfGroupScore / per_instruction);
  double filled = 0;
  for (const AttentionPlane* p : {&keys, &values})
    filled += double(p->steps * p->positions) / p->how.near *
              (p->copied ? kInstructionsOfCopy : kInstructionsOfGroupRun) /
              per_instruction;
  // What is begun before and what is read at once wait for each other.
  if (keys.copied != values.copied) filled *= 2;
  // One block's groups wait for each other at each step.
  const double groups = double(s.threads) / kGroupThreads,
               alone = resident == 1 ? kStepWaits * m_.memory_clocks : 0,
               step = std::max(kStepWaits * m_.memory_clocks + 2 * of_group + filled,
                               resident * (groups * of_group + filled) + alone);
  return std::ceil(rounds / resident) * (turns * step + kBlockWaits * m_.memory_clocks);
}

// Predicted clocks of one multiprocessor.
double AttentionChooser::predicted(const GpuSchedule& s) const {
  if (s.attention.by == Multiplier::Group) return predicted_of_groups(s);
  const AttentionTile& t = s.attention;
  const AttentionPlane keys = attention_plane(k_, a_, t, AttentionFactor::Keys),
                       values = attention_plane(k_, a_, t, AttentionFactor::Values);
  const double rounds = std::ceil(double(block_count(k_, s)) / m_.multiprocessors);
  const double resident = resident_blocks(s, rounds);
  const double busy = std::min(1.0, resident * s.threads / m_.busy_threads);
  const double turns = std::ceil(double(keys.position_extent) / t.block_keys);
  const double per_instruction = m_.instructions_per_clock * m_.warp_threads;
  const double scores = double(t.block_queries) * t.block_keys,
               width = double(keys.steps + values.positions);
  const double rate = t.by == Multiplier::Group ? m_.group_products_per_clock
                      : t.matrices()            ? m_.matrix_products_per_clock
                                     : kProductsReached * m_.flops_per_clock / 2;
  const double read = bytes_read(keys, values, t);
  const double multiplied =
      std::max(scores * width / rate, read / m_.first.bytes_per_clock);
  const double weighed =
      scores * (t.matrices() ? kInstructionsOfQuickScore : kInstructionsOfScore) /
      per_instruction;
  auto filled = [&](const AttentionPlane& p) {
    return double(p.steps * p.positions) / p.how.near *
           (p.copied ? kInstructionsOfCopy : kInstructionsOfRun) / per_instruction;
  };
  const double wait = std::ceil(rounds / resident) * m_.memory_clocks;
  const double of_turn =
      std::max(rounds * (multiplied + weighed + filled(keys) + filled(values)) / busy,
               wait / (1 + kHidden * t.ahead));
  // At first queries and the first keys are waited for.
  return turns * of_turn + 2 * wait +
         rounds * filled(attention_plane(k_, a_, t, AttentionFactor::Queries)) / busy;
}

void AttentionChooser::consider(AttentionTile t, const Shape& shape) {
  t.block_queries = shape.queries, t.block_keys = shape.keys;
  t.part_queries = shape.part_queries, t.part_keys = shape.part_keys;
  for (const AttentionFactor factor :
       {AttentionFactor::Queries, AttentionFactor::Keys, AttentionFactor::Values}) {
    const AttentionPlane p = attention_plane(k_, a_, t, factor);
    FactorTile& f = factor == AttentionFactor::Queries ? t.queries
                    : factor == AttentionFactor::Keys  ? t.keys
                                                       : t.values;
    while ((f.by_steps ? p.steps : p.positions) % f.near != 0) f.near /= 2;
  }
  for (const int ahead : {0, 1, 2}) {
    if (ahead != 0 && !m_.copies_ahead) break;
    t.ahead = ahead;
    const GpuSchedule s{.mapping = GpuMapping::Attention,
                        .positions = a_.others,
                        .threads = threads_of(t),
                        .attention = t};
    if (registers(t) > kMostRegisters || !gpu_misfit(k_, s).empty() ||
        shared_of_attention(k_, t) > m_.shared_bytes)
      continue;
    const double time = predicted(s);
    if (best_ && time >= least_) continue;
    least_ = time, best_ = s;
  }
}

std::optional<GpuSchedule> AttentionChooser::choose() {
  AttentionTile tile;
  tile.queries.axes = by_distance(k_, a_.queries);
  tile.keys.axes = a_.keys;
  tile.values.axes = by_distance(k_, a_.columns);
  const std::optional<DType> type = matrix_type(k_, a_);
  if (m_.matrix_products_per_clock > 0 && type &&
      (m_.multiplies_bf16 || *type != DType::BF16))
    tile.by = Multiplier::Warp;
  fill(tile.queries, a_.query, a_.numbers);
  fill(tile.keys, a_.key, a_.numbers);
  fill(tile.values, a_.value, a_.keys);
  if (!tile.matrices()) {
    for (const Shape& shape : kThreadShapes) consider(tile, shape);
    return best_;
  }
  if (m_.group_products_per_clock > 0) {
    tile.by = Multiplier::Group;
    for (const Shape& shape : kGroupShapes) consider(tile, shape);
    if (best_) return best_;
    tile.by = Multiplier::Warp;
  }
  for (const Shape& shape : kWarpShapes) consider(tile, shape);
  return best_;
}

// What one of the kernels takes, in ns: what its tile is predicted to, or what it moves;
// what is larger than the second cache comes from memory.
double AttentionChooser::time_apart(const ScheduledKernel& k, const Level& level) {
  const Machine& m = level.machine;
  const double clocks = product_clocks(k, level).value_or(0),
               bandwidth = double(k.bytes) > double(m.second.bytes)
                               ? m.memory_bytes_per_ns
                               : kCacheReached * m.second.bytes_per_clock * m.clock_ghz;
  return m.launch_ns + std::max(clocks / m.clock_ghz,
                                double(k.bytes) / (bandwidth * m.multiprocessors));
}

} // namespace

std::optional<GpuSchedule> choose_attention(const ScheduledKernel& k,
                                            const Level& level) {
  const std::optional<Attention> a = attention_of(k);
  if (!a) return std::nullopt;
  return AttentionChooser(k, *a, level.machine).choose();
}

double gpu_launch_ns(const ScheduledKernel& k, const Level& level) {
  const Machine& m = level.machine;
  const std::optional<Attention> a = attention_of(k);
  if (a) {
    AttentionChooser chooser(k, *a, m);
    if (chooser.choose()) return m.launch_ns + chooser.clocks() / m.clock_ghz;
  }
  double ns = AttentionChooser::time_apart(k, level);
  if (whole_scatter(k) != nullptr)
    ns += scatter_clocks(k, choose_scatter(k, level), level) / m.clock_ghz;
  return ns;
}

double attention_gain(const ScheduledKernel& joined,
                      const std::vector<const ScheduledKernel*>& apart,
                      const Level& level) {
  const Machine& m = level.machine;
  const std::optional<Attention> a = attention_of(joined);
  if (!a) return 0;
  AttentionChooser chooser(joined, *a, m);
  if (!chooser.choose()) return 0;
  double before = 0;
  for (const ScheduledKernel* k : apart)
    before += AttentionChooser::time_apart(*k, level);
  return before / (m.launch_ns + chooser.clocks() / m.clock_ghz);
}

} // namespace svod::optimize
