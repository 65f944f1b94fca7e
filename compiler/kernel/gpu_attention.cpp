#include "compiler/kernel/gpu_attention.h"

#include "compiler/ir/build.h"
#include "compiler/kernel/dependence.h"
#include "compiler/kernel/stage_work.h"
#include "compiler/support/divide.h"
#include "compiler/support/round_up.h"

#include <algorithm>

namespace svod {

namespace {

bool is_plain_reduction(const Stage& s, Op op) {
  return s.kind == StageKind::Reduce && s.op == op && !s.keeps && s.domain.empty() &&
         s.dtype == DType::F32 && !s.inner.empty();
}

bool is_local(const Kernel& k, ExprId id, uint32_t stage) {
  const Expr& e = k.exprs[below_casts(k, id)];
  return e.kind == Expr::Kind::Local && e.stage == stage;
}

bool is_map(const Expr& e, Op op) { return e.kind == Expr::Kind::Map && e.op == op; }

// exp(score - maximum), whatever it is rounded to on the way.
bool is_weight(const Kernel& k, ExprId id, ExprId score) {
  const Expr& exp = k.exprs[below_casts(k, id)];
  if (!is_map(exp, Op::Exp)) return false;
  const Expr& difference = k.exprs[below_casts(k, exp.inputs[0])];
  return is_map(difference, Op::Sub) &&
         below_casts(k, difference.inputs[0]) == below_casts(k, score) &&
         is_local(k, difference.inputs[1], kMaximumStage);
}

// The weight divided by the sum of all.
bool is_share(const Kernel& k, ExprId id, ExprId weight) {
  const Expr& e = k.exprs[below_casts(k, id)];
  auto is_same = [&](ExprId x) { return below_casts(k, x) == below_casts(k, weight); };
  auto is_reciprocal = [&](ExprId x) {
    const Expr& r = k.exprs[below_casts(k, x)];
    return is_map(r, Op::Reciprocal) && is_local(k, r.inputs[0], kSumStage);
  };
  if (is_map(e, Op::Div))
    return is_same(e.inputs[0]) && is_local(k, e.inputs[1], kSumStage);
  if (!is_map(e, Op::Mul)) return false;
  return (is_same(e.inputs[0]) && is_reciprocal(e.inputs[1])) ||
         (is_same(e.inputs[1]) && is_reciprocal(e.inputs[0]));
}

bool is_zero(const Kernel& k, ExprId id) {
  const Expr& e = k.exprs[below_casts(k, id)];
  return e.kind == Expr::Kind::Constant && scalar_value(e.dtype, e.bits) == 0;
}

// What is chosen where `condition` is false, of a choice between 0 and that.
ExprId where_left(const Kernel& k, ExprId id, std::optional<ExprId>& condition) {
  const Expr& e = k.exprs[below_casts(k, id)];
  if (!is_map(e, Op::Select) || !is_zero(k, e.inputs[1])) return id;
  condition = e.inputs[0];
  return e.inputs[2];
}

// Whether the expression is made of results of stages, other than of `but`.
bool reads_others(const Kernel& k, ExprId id, std::optional<uint32_t> but = {}) {
  const Expr& e = k.exprs[id];
  if (e.kind == Expr::Kind::Local) return e.stage != but;
  return std::ranges::any_of(e.inputs,
                             [&](ExprId in) { return reads_others(k, in, but); });
}

bool depends_on_any(const std::vector<bool>& dependence,
                    const std::vector<AxisId>& axes) {
  return std::ranges::any_of(axes, [&](AxisId a) { return dependence[a]; });
}

bool has_shape(const Kernel& k) {
  if (k.stages.size() <= kResultStage + 1) return false;
  const std::vector<Stage>& s = k.stages;
  return s[kScoreStage].nested && is_plain_reduction(s[kScoreStage], Op::ReduceSum) &&
         is_plain_reduction(s[kMaximumStage], Op::ReduceMax) &&
         !s[kMaximumStage].nested && is_plain_reduction(s[kSumStage], Op::ReduceSum) &&
         !s[kSumStage].nested && is_plain_reduction(s[kResultStage], Op::ReduceSum) &&
         !s[kResultStage].nested && s[kSumStage].inner == s[kMaximumStage].inner &&
         s[kResultStage].inner == s[kMaximumStage].inner &&
         std::all_of(s.begin() + kResultStage + 1, s.end(), [&](const Stage& store) {
           return store.kind == StageKind::Store && store.inner.empty() &&
                  !reads_others(k, store.value, kResultStage);
         });
}

// Which outer axes are whose.
bool find_axes(const Kernel& k, const Dependence& depends, Attention& out) {
  for (AxisId a : k.outer) {
    const bool key = depends[out.key][a], value = depends[out.value][a],
               score = depends[out.score][a];
    if (!key && !value)
      out.queries.push_back(a);
    else if (value && !score)
      out.columns.push_back(a);
    else
      out.others.push_back(a);
  }
  if (out.empty)
    for (const std::vector<AxisId>* axes : {&out.keys, &out.numbers, &out.columns})
      if (depends_on_any(depends[*out.empty], *axes)) return false;
  return !out.columns.empty() && !depends_on_any(depends[out.query], out.keys) &&
         !depends_on_any(depends[out.value], out.numbers);
}

} // namespace

std::optional<Attention> attention_of(const Kernel& k) {
  if (!has_shape(k)) return std::nullopt;
  Attention out;
  out.numbers = k.stages[kScoreStage].inner;
  out.keys = k.stages[kMaximumStage].inner;
  const Expr &scores = k.exprs[k.stages[kScoreStage].value],
             &results = k.exprs[k.stages[kResultStage].value];
  if (!is_map(scores, Op::Mul) || !is_map(results, Op::Mul)) return std::nullopt;
  const Dependence depends = dependence_of(k);
  const bool second = depends_on_any(depends[scores.inputs[1]], out.keys);
  out.query = scores.inputs[second ? 0 : 1];
  out.key = scores.inputs[second ? 1 : 0];
  out.score = k.stages[kMaximumStage].value;
  out.weight = k.stages[kSumStage].value;
  if (reads_others(k, out.score, kScoreStage) || !is_weight(k, out.weight, out.score))
    return std::nullopt;
  std::optional<size_t> share;
  for (size_t i = 0; i < 2 && !share; ++i) {
    out.empty.reset();
    if (is_share(k, where_left(k, results.inputs[i], out.empty), out.weight)) share = i;
  }
  if (!share) return std::nullopt;
  out.value = results.inputs[1 - *share];
  if (reads_others(k, out.value) || reads_others(k, out.query) ||
      reads_others(k, out.key) || (out.empty && reads_others(k, *out.empty)) ||
      !find_axes(k, depends, out))
    return std::nullopt;
  return out;
}

std::optional<DType> matrix_type(const Kernel& k, const Attention& a) {
  const Expr& results = k.exprs[k.stages[kResultStage].value];
  const std::optional<DType> type = narrow_type(k, a.query);
  if (!type || !is_half(*type) || narrow_type(k, a.key) != type) return std::nullopt;
  for (ExprId factor : results.inputs)
    if (narrow_type(k, factor) != type) return std::nullopt;
  return type;
}

SharedTile weight_tile(const AttentionTile& t) {
  SharedTile out;
  lay_out(out, false, t.block_queries, t.block_keys);
  return out;
}

static int64_t across(const AttentionTile& t) { return t.block_keys / t.part_keys; }

static int64_t padded_columns(const Kernel& k, const Attention& a,
                              const AttentionTile& t) {
  const int64_t columns = positions_along(k, a.columns);
  if (t.matrices()) return static_cast<int64_t>(round_up(columns, kMatrixSide));
  constexpr int64_t kRun = 4; // that a thread reads at once
  const int64_t each = columns < kRun * across(t) ? 1 : kRun;
  return static_cast<int64_t>(round_up(columns, each * across(t)));
}

AttentionPlane attention_plane(const Kernel& k, const Attention& a,
                               const AttentionTile& t, AttentionFactor factor) {
  AttentionPlane out;
  const bool of_values = factor == AttentionFactor::Values;
  out.how = of_values                            ? t.values
            : factor == AttentionFactor::Queries ? t.queries
                                                 : t.keys;
  out.value = of_values ? a.value : factor == AttentionFactor::Queries ? a.query : a.key;
  out.step_axes = of_values ? a.keys : a.numbers;
  out.step_extent = positions_along(k, out.step_axes);
  out.position_extent = positions_along(k, out.how.axes);
  out.positions = of_values                            ? padded_columns(k, a, t)
                  : factor == AttentionFactor::Queries ? t.block_queries
                                                       : t.block_keys;
  out.steps = of_values ? t.block_keys
              : t.matrices()
                  ? static_cast<int64_t>(round_up(out.step_extent, kMatrixSide))
                  : out.step_extent;
  out.tile.dtype = t.matrices() ? *matrix_type(k, a) : DType::F32;
  const bool by_steps = t.matrices() && out.how.by_steps;
  if (t.by == Multiplier::Group)
    lay_out_for_groups(out.tile, by_steps, out.positions, out.steps);
  else
    lay_out(out.tile, by_steps, out.positions, out.steps);
  constexpr int kWholeCopy = 16; // shorter ones take longer than registers on the way
  if (t.ahead == 0 || factor == AttentionFactor::Queries) return out;
  const auto load = copied_value(k, out.value, out.tile.dtype);
  out.copied = load && out.tile.by_steps == out.how.by_steps &&
               out.how.near * byte_size(out.tile.dtype) == kWholeCopy;
  return out;
}

int queries_of_warp(const AttentionTile& t) {
  return t.by == Multiplier::Group ? t.part_queries * kWarpThreads / kGroupThreads
                                   : t.part_queries;
}

int score_sums(const AttentionTile& t) {
  return t.part_queries * t.part_keys / threads_of(t.by);
}

int result_sums(const Kernel& k, const Attention& a, const AttentionTile& t) {
  return static_cast<int>(t.part_queries * padded_columns(k, a, t) /
                          (t.matrices() ? threads_of(t.by) : across(t)));
}

int threads_of(const AttentionTile& t) {
  return static_cast<int>(t.block_queries / t.part_queries *
                          (t.matrices() ? threads_of(t.by) : across(t)));
}

int64_t attention_blocks(const Kernel& k, const AttentionTile& t) {
  // Of a tile that somebody has written it may be anything.
  return ceil_div(positions_along(k, t.queries.axes), std::max(t.block_queries, 1));
}

static int64_t bytes_of(const AttentionPlane& plane) {
  return plane.tile.elements * byte_size(plane.tile.dtype);
}

int64_t weights_in_shared(const Kernel& k, const Attention& a, const AttentionTile& t) {
  return bytes_of(attention_plane(k, a, t, AttentionFactor::Queries)) +
         t.buffers() * (bytes_of(attention_plane(k, a, t, AttentionFactor::Keys)) +
                        bytes_of(attention_plane(k, a, t, AttentionFactor::Values)));
}

int64_t shared_of_attention(const Kernel& k, const AttentionTile& t) {
  const std::optional<Attention> a = attention_of(k);
  if (!a) return 0;
  const int64_t weights =
      t.matrices() ? 0 : weight_tile(t).elements * byte_size(DType::F32);
  return weights_in_shared(k, *a, t) + weights;
}

static bool is_power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

static std::string part_misfit(const Kernel& k, const Attention& a,
                               const GpuSchedule& s) {
  const AttentionTile& t = s.attention;
  constexpr int kMostAhead = 7, kMostSums = 256;
  if (t.block_queries < 1 || t.block_keys < 1 || t.part_queries < 1 || t.part_keys < 1 ||
      t.ahead < 0 || t.ahead > kMostAhead || t.block_queries % t.part_queries != 0 ||
      t.block_keys % t.part_keys != 0 || threads_of(t) != s.threads ||
      s.threads % kWarpThreads != 0)
    return "a tile that its warps do not share evenly";
  if (t.part_queries > kMostSums || t.part_keys > kMostSums ||
      score_sums(t) > kMostSums || result_sums(k, a, t) > kMostSums)
    return "more sums of a thread than there are registers";
  if (t.matrices()) {
    if (!matrix_type(k, a)) return "tensor cores where its factors are no halves";
    if (t.part_queries % kMatrixSide != 0 || t.part_keys % kMatrixSide != 0 ||
        t.part_keys != t.block_keys)
      return "a warp's part that is no multiple of what tensor cores multiply";
    if (t.by == Multiplier::Group &&
        (t.part_queries != kGroupRows || t.part_keys > kGroupColumns ||
         padded_columns(k, a, t) > kGroupColumns))
      return "a group's part that is not what it multiplies at once";
  } else if (!is_power_of_two(across(t)) || across(t) > kWarpThreads) {
    return "keys of a block that no warp shares";
  }
  return "";
}

std::string attention_misfit(const ScheduledKernel& k, const GpuSchedule& s) {
  const std::optional<Attention> a = attention_of(k);
  if (!a) return "an attention's blocks where the kernel is none";
  const AttentionTile& t = s.attention;
  if (!same_axes(t.queries.axes, a->queries) || t.keys.axes != a->keys ||
      !same_axes(t.values.axes, a->columns) || !same_axes(s.positions, a->others))
    return "queries and keys that are not what the factors depend on";
  if (std::string why = part_misfit(k, *a, s); !why.empty()) return why;
  for (const AttentionFactor factor :
       {AttentionFactor::Queries, AttentionFactor::Keys, AttentionFactor::Values}) {
    const AttentionPlane p = attention_plane(k, *a, t, factor);
    const std::vector<AxisId>& along = p.how.by_steps ? p.step_axes : p.how.axes;
    if (p.how.near < 1 || (p.how.by_steps ? p.steps : p.positions) % p.how.near != 0 ||
        p.how.near > near_elements(k, p.value, along))
      return "elements read at once that are no neighbours";
  }
  if (shared_of_attention(k, t) > kMostShared)
    return "a tile that shared memory does not hold";
  return "";
}

} // namespace svod
