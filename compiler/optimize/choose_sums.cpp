// How a reduction keeps its sums: how many at once, as long as what, and whether a long
// sum is made of sums, which decides how it rounds.
#include "compiler/kernel/shared_elements.h"
#include "compiler/kernel/sum_blocks.h"
#include "compiler/optimize/choose.h"

#include <algorithm>

namespace svod::optimize {

namespace {

class SumChoice {
public:
  SumChoice(const ScheduledKernel& k, const Dependence& dependence, size_t number)
      : k_(k), dependence_(dependence), number_(number), s_(k.stages[number]),
        loops_(k.inner(s_)) {}
  std::optional<SumBlocks> blocks(const Level& level) const;
  int shortest_sum() const;
  std::optional<ExprId> begins_with(bool across) const;
  int64_t sums(const Level& level) const;

private:
  std::optional<SumBlocks> held_factors() const;
  std::vector<ExprId> factors() const;
  std::optional<ExprId> only_reader(ExprId read) const;
  bool on_lanes(ExprId id) const {
    return k_.has_lane_axis() && dependence_[id][*k_.loops.lane];
  }
  bool sums_lanes() const {
    return k_.has_lane_axis() && contains(loops_, *k_.loops.lane);
  }

  const ScheduledKernel& k_;
  const Dependence& dependence_;
  size_t number_;
  const Stage& s_;
  const std::vector<AxisId>& loops_;
};

// One after the other, the numbers of an 800 x 800 picture lose half the digits of their
// mean. So a long sum is made of blocks, each with its own accumulators. Totals are met
// once in a block: they lie in the stack frame while registers hold the block's, which
// costs vectors less than a hundredth, and one to two of short blocks. Cores without them
// have that addition as a call, or a loop that is twice as long.
std::optional<SumBlocks> SumChoice::blocks(const Level& level) const {
  constexpr int64_t kLongOfScalars = 32 * kSumBlock, kManyNumbers = 64;
  int64_t numbers = 1;
  for (AxisId a : loops_)
    if (k_.is_loop(a)) numbers *= k_.indices.extent(a);
  // Adding numbers as they come takes memory's time rather than the adders'. Of very many
  // the blocks' sums are what there would be too many of.
  const bool is_plain = factors().size() == 1 && numbers > kManyNumbers &&
                        numbers <= kManyNumbers * kSumBlock;
  const bool is_short = s_.amplified || is_plain;
  const int64_t block = is_short ? short_sum_block(numbers) : kSumBlock;
  const int64_t long_sum = is_short ? block : 2 * block;
  const int64_t longest = level.has_vectors() && !level.small ? long_sum : kLongOfScalars;
  if (s_.op != Op::ReduceSum || !is_float(s_.dtype)) return std::nullopt;
  if (std::optional<SumBlocks> held = held_factors()) return held;
  std::optional<SumBlocks> found;
  int64_t steps = 1;
  for (size_t d = loops_.size(); d-- > 0;) {
    if (!k_.is_loop(loops_[d])) continue;
    const int64_t below = steps;
    steps *= k_.indices.extent(loops_[d]);
    if (found || steps <= block) continue;
    found.emplace();
    found->loop = loops_[d];
    found->steps = std::max<int64_t>(1, block / below);
  }
  return steps > longest ? found : std::nullopt;
}

// What the product that is summed consists of.
std::vector<ExprId> SumChoice::factors() const {
  std::vector<ExprId> factors = {s_.value};
  for (size_t i = 0; i < factors.size();) {
    const Expr& e = k_.exprs[factors[i]];
    if (e.kind != Expr::Kind::Map || e.op != Op::Mul || e.dtype != s_.dtype) {
      ++i;
      continue;
    }
    factors[i] = e.inputs[0];
    factors.push_back(e.inputs[1]);
  }
  return factors;
}

// A factor that is the same for many steps, as the scale of a block of weights is, is
// multiplied with their sum: sum(x (y - z) s) = s (sum(x y) - z sum(x)) where z is such a
// number, too.
std::optional<SumBlocks> SumChoice::held_factors() const {
  constexpr int64_t kManySteps = 8;
  if (is_narrow_float(s_.dtype) || k_.has_dot_axis() || s_.keeps || !s_.domain.empty())
    return std::nullopt;
  int64_t steps = 1;
  std::vector<AxisId> below;
  std::optional<SumBlocks> found;
  for (size_t d = loops_.size(); d-- > 0; below.push_back(loops_[d])) {
    if (!k_.is_loop(loops_[d])) continue;
    if (steps >= kManySteps) {
      SumBlocks b;
      b.loop = loops_[d];
      auto held = [&](ExprId f) {
        return on_lanes(f) &&
               std::ranges::none_of(below, [&](AxisId a) { return dependence_[f][a]; });
      };
      for (ExprId f : factors()) (held(f) ? b.held : b.summed).push_back(f);
      for (ExprId& f : b.summed) {
        const Expr& e = k_.exprs[f];
        if (b.offset || b.summed.size() < 2 || e.kind != Expr::Kind::Map ||
            e.op != Op::Sub || !held(e.inputs[1]))
          continue;
        b.offset = e.inputs[1];
        std::swap(f = e.inputs[0], b.summed.back());
      }
      if (!b.held.empty() && !b.summed.empty()) found = std::move(b);
    }
    steps *= k_.indices.extent(loops_[d]);
  }
  return found;
}

// One accumulator waits for itself: 3 to 4 cycles per addition, three times that per
// least or greatest. When the register tile has few, neighbouring steps of the innermost
// loop have their own (a maximum of 200 000 floats: 31 us with one, 5 with eight).
int64_t SumChoice::sums(const Level& level) const {
  if (level.bytes_across() != 0 && sums_lanes() && !is_float(s_.dtype)) return 1;
  // Integers of a core without vectors are added in a clock.
  if (!level.has_vectors() && !is_float(s_.dtype)) return 1;
  const bool sum = s_.op == Op::ReduceSum || s_.op == Op::ReduceProd;
  const bool vector = sums_lanes() || on_lanes(s_.value);
  const int64_t bits = vector ? int64_t{8} * k_.loops.lanes * byte_size(s_.dtype) : 1;
  const int64_t registers = std::max<int64_t>(1, bits / level.register_bits);
  return std::max<int64_t>(1, level.registers / (sum ? 8 : 4) / registers);
}

// Sums may be as short as the lanes that all later stages store. A register of 128 bits
// stays whole.
int SumChoice::shortest_sum() const {
  constexpr int kBits = 128;
  const int bits = 8 * byte_size(s_.dtype);
  const bool stored = std::all_of(
      k_.stages.begin() + static_cast<std::ptrdiff_t>(number_) + 1, k_.stages.end(),
      [](const Stage& s) { return s.kind == StageKind::Store; });
  if (s_.op != Op::ReduceSum || s_.keeps || s_.nested || bits != 32 || !stored ||
      !on_lanes(s_.value) || sums_lanes())
    return 0;
  return kBits / bits;
}

// The only expression that reads an expression; none where there are others.
std::optional<ExprId> SumChoice::only_reader(ExprId read) const {
  std::optional<ExprId> reader;
  std::vector<ExprId> dynamic;
  for (ExprId id = 0; id < k_.exprs.size(); ++id) {
    const Expr& e = k_.exprs[id];
    k_.indices.collect_dynamic(e.index, dynamic);
    for (const Bound& b : e.bounds) k_.indices.collect_dynamic(b.index, dynamic);
    const auto times = std::ranges::count(e.inputs, read);
    if (times > 1 || (times == 1 && reader)) return std::nullopt;
    if (times == 1) reader = id;
  }
  for (const Stage& s : k_.stages) {
    k_.indices.collect_dynamic(s.index, dynamic);
    if (s.value == read) return std::nullopt;
  }
  return dynamic.empty() ? reader : std::nullopt;
}

// Known whole numbers that are added to a sum, as what zero points make of weights, are
// where its accumulators begin: an addition less for every result.
std::optional<ExprId> SumChoice::begins_with(bool across) const {
  if (s_.kind != StageKind::Reduce || s_.op != Op::ReduceSum || s_.dtype != DType::I32 ||
      s_.nested || !on_lanes(s_.value) || (sums_lanes() && !across))
    return std::nullopt;
  std::optional<ExprId> local;
  for (ExprId id = 0; id < k_.exprs.size(); ++id)
    if (k_.exprs[id].kind == Expr::Kind::Local && k_.exprs[id].stage == number_) {
      if (local) return std::nullopt;
      local = id;
    }
  const std::optional<ExprId> sum = local ? only_reader(*local) : std::nullopt;
  if (!sum || k_.exprs[*sum].kind != Expr::Kind::Map || k_.exprs[*sum].op != Op::Add)
    return std::nullopt;
  const std::vector<ExprId>& terms = k_.exprs[*sum].inputs;
  const ExprId start = terms[terms[0] == *local ? 1 : 0];
  const Expr& load = k_.exprs[start];
  const bool known = load.kind == Expr::Kind::Load && load.bounds.empty() &&
                     k_.arguments[load.argument].kind == Argument::Kind::Packed;
  const bool constant = known && std::ranges::none_of(loops_, [&](AxisId a) {
                          return dependence_[start][a];
                        });
  return constant ? sum : std::nullopt;
}

} // namespace

bool takes_shared_elements(const ScheduledKernel& k, const Level& level, size_t stage) {
  return level.multiply_add == MultiplyAdd::ByElement && !level.small &&
         shared_elements(k, k.stages[stage]).has_value();
}

void choose_sums(const ScheduledKernel& k, const Dependence& dependence, size_t stage,
                 const Level& level, StageSchedule& schedule) {
  // A loop of fewer rounds than this ends before several sums pay.
  constexpr int64_t kRounds = 8;
  const SumChoice choice(k, dependence, stage);
  schedule.blocks = choice.blocks(level);
  const bool held = schedule.blocks && !schedule.blocks->held.empty();
  schedule.grouped = stage == 0 && sums_groups(k, level);
  schedule.matrices = schedule.grouped && level.dots == ByteProducts::Matrices;
  schedule.sums = held || schedule.grouped ? 1 : choice.sums(level);
  schedule.rounds = kRounds;
  schedule.halves = level.dots == ByteProducts::Halves && k.has_dot_axis() &&
                    contains(k.inner(k.stages[stage]), *k.loops.dot);
  if (schedule.halves) schedule.together = k.stages[stage].short_sums;
  if (!schedule.together.empty()) schedule.sums = 1;
  schedule.shortest_sum = held || schedule.halves || schedule.paired || schedule.grouped
                              ? 0
                              : choice.shortest_sum();
  if (takes_shared_elements(k, level, stage) && !held) schedule.elements = kElements;
  schedule.begins_with = choice.begins_with(schedule.across);
}

} // namespace svod::optimize
