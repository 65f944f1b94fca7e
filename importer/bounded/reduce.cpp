// Operators that combine elements along a bounded axis: what is not meant becomes what
// the combination leaves as it is.
#include "importer/bounded/bounded.h"
#include "importer/formula/formula.h"
#include "importer/formula/reduction.h"

#include <algorithm>
#include <limits>

namespace svod::importer {

namespace {

// Booleans have no identity of their own: 0 and 1 are those of maximum and minimum.
Expr fill_for(NodeImport& node, Op how) {
  const DType dtype = node.dtype(0);
  if (dtype == DType::Bool) return number(node.g, dtype, how == Op::ReduceMin ? 1 : 0);
  return neutral(node.g, how, dtype);
}

Counts after_reduction(const Counts& counts, const std::vector<int64_t>& axes,
                       bool keep) {
  Counts out;
  for (size_t i = 0; i < counts.size(); ++i) {
    const bool gone = std::ranges::count(axes, static_cast<int64_t>(i)) > 0;
    if (!gone || keep) out.push_back(gone ? kNoNode : counts[i]);
  }
  return tidy(std::move(out));
}

void mask_input(NodeImport& node, size_t i, const std::vector<int64_t>& axes, Expr fill) {
  const Counts counts = node.counts(i);
  node.replace_input(i, masked(operand(node, i), counts, axes, fill).id);
}

// `how`: the combination that the operator is made of.
void reduce_with(NodeImport& node, Rule rule, Op how) {
  const std::vector<int64_t> axes = reduction_axes(node);
  const Counts counts = node.counts(0);
  mask_input(node, 0, axes, fill_for(node, how));
  rule(node);
  node.set_counts(0, after_reduction(counts, axes, node.get_int("keepdims") != 0));
}

void arg_with(NodeImport& node, Rule rule, Op how) {
  const int64_t axis = node.axis(node.get_int("axis"), node.rank(0));
  const Counts counts = node.counts(0);
  mask_input(node, 0, {axis}, fill_for(node, how));
  rule(node);
  node.set_counts(0, after_reduction(counts, {axis}, node.get_int("keepdims") != 0));
}

} // namespace

// Sums of elements, or of something of them that is 0 of 0.
void bounded_reduce(NodeImport& node, Rule rule) {
  reduce_with(node, rule, Op::ReduceSum);
}
// Also where the largest of exponents is taken out: exp(-inf) adds nothing.
void bounded_reduce_max(NodeImport& node, Rule rule) {
  reduce_with(node, rule, Op::ReduceMax);
}
void bounded_reduce_min(NodeImport& node, Rule rule) {
  reduce_with(node, rule, Op::ReduceMin);
}
void bounded_reduce_prod(NodeImport& node, Rule rule) {
  reduce_with(node, rule, Op::ReduceProd);
}

void bounded_reduce_mean(NodeImport& node, Rule rule) {
  const std::vector<int64_t> axes = reduction_axes(node);
  const Counts counts = node.counts(0);
  const Shape shape = node.shape(0);
  reduce_with(node, rule, Op::ReduceSum); // and the rule divided by the bounds
  Expr most = number(node.g, DType::F64, 1), there = most;
  for (int64_t axis : axes) {
    const NodeId count = counts[static_cast<size_t>(axis)];
    if (count == kNoNode) continue;
    most = most * static_cast<double>(shape[static_cast<size_t>(axis)]);
    there = there * convert(Expr{&node.g, count}, DType::F64);
  }
  const Expr y{&node.g, node.results()[0]};
  if (!is_float(y.dtype())) refuse_bounded(node, 0, axes.empty() ? 0 : axes[0]);
  give(node, 0, convert(convert(y, DType::F64) * (most / there), y.dtype()));
}

void bounded_arg_max(NodeImport& node, Rule rule) { arg_with(node, rule, Op::ReduceMax); }
void bounded_arg_min(NodeImport& node, Rule rule) { arg_with(node, rule, Op::ReduceMin); }

static void filled_with(NodeImport& node, Rule rule, double neutral) {
  const Counts counts = node.counts(0);
  mask_input(node, 0, axes_from(0, node.rank(0)), number(node.g, node.dtype(0), neutral));
  rule(node);
  node.set_counts(0, counts);
}

// Zeros behind what is meant change no norm and no sum, ones no product, whichever way it
// runs.
void bounded_zeros(NodeImport& node, Rule rule) { filled_with(node, rule, 0); }
void bounded_ones(NodeImport& node, Rule rule) { filled_with(node, rule, 1); }

void bounded_softmax(NodeImport& node, Rule rule) {
  const Counts counts = node.counts(0);
  const int64_t axis = node.axis(node.get_int("axis"), node.rank(0));
  std::vector<int64_t> axes{axis};
  if (node.opset < 13) axes = axes_from(axis, node.rank(0));
  // The lowest number, not infinity: a row without any element then is no NaN.
  const double lowest = node.dtype(0) == DType::F16 ? -65504 : -3e38;
  mask_input(node, 0, axes, number(node.g, node.dtype(0), lowest));
  rule(node);
  node.set_counts(0, counts);
}

namespace {

// What is not meant along the summed axis counts nothing: 0 on both sides.
void mask_product(NodeImport& node, int64_t of_a, int64_t of_b) {
  agreed_count(node, {{0, of_a}, {1, of_b}}, false);
  for (const auto& [input, axis] : {std::pair{size_t{0}, of_a}, {size_t{1}, of_b}}) {
    const Counts counts = node.counts(input);
    if (counts.empty() || counts[static_cast<size_t>(axis)] == kNoNode) continue;
    const Expr zero = number(node.g, node.dtype(input), 0);
    node.replace_input(input, masked(operand(node, input), counts, {axis}, zero).id);
    node.input_counts[input] = counts;
  }
}

// Of the fused forms alone.
bool is_set(const NodeImport& node, const char* attribute) {
  return node.has(attribute) && node.get_int(attribute) != 0;
}

} // namespace

void bounded_matmul(NodeImport& node, Rule rule) {
  const int64_t a = node.rank(0), b = node.rank(1);
  if (a < 2 || b < 2) refuse_bounded(node, node.counts(0).empty() ? 1 : 0, 0);
  const int64_t of_a = is_set(node, "transA") ? a - 2 : a - 1;
  const int64_t of_b = is_set(node, "transB") ? b - 1 : b - 2;
  for (const char* moved : {"transBatchA", "transBatchB"})
    if (is_set(node, moved)) refuse_bounded(node, node.counts(0).empty() ? 1 : 0, 0);
  mask_product(node, of_a, of_b);
  const int64_t rank = std::max(a, b);
  Counts counts(static_cast<size_t>(rank), kNoNode);
  counts[static_cast<size_t>(rank - 2)] = count_along(node, 0, 2 * a - 3 - of_a);
  counts[static_cast<size_t>(rank - 1)] = count_along(node, 1, 2 * b - 3 - of_b);
  for (int64_t back = 3; back <= rank; ++back) {
    std::vector<InputAxis> batch;
    if (back <= a) batch.push_back({0, a - back});
    if (back <= b) batch.push_back({1, b - back});
    counts[static_cast<size_t>(rank - back)] = agreed_count(node, batch, true);
  }
  rule(node);
  node.set_counts(0, tidy(counts));
}

// Rows of the run by a matrix that is known, of bytes as a rule: what is not meant is 0,
// which no range of values grows by.
void bounded_left_rows(NodeImport& node, Rule rule) {
  const int64_t last = node.rank(0) - 1;
  for (size_t i = 0; i < node.input_count(); ++i)
    for (int64_t axis = 0; node.has_input(i) && axis < node.rank(i); ++axis)
      if (count_along(node, i, axis) != kNoNode && (i > 0 || axis == last))
        refuse_bounded(node, i, axis);
  const Counts counts = node.counts(0);
  mask_input(node, 0, axes_from(0, last), number(node.g, node.dtype(0), 0));
  rule(node);
  const Shape& result = node.g[node.results()[0]].shape;
  if (std::ssize(result) != last + 1) refuse_bounded(node, 0, 0);
  node.set_counts(0, counts);
}

void bounded_gemm(NodeImport& node, Rule rule) {
  const int64_t a = node.get_int("transA") ? 0 : 1, b = node.get_int("transB") ? 1 : 0;
  require(node, node.rank(0) == 2 && node.rank(1) == 2, "A and B must be matrices");
  mask_product(node, a, b);
  Counts counts{count_along(node, 0, 1 - a), count_along(node, 1, 1 - b)};
  // C has one row, or the rows of the result.
  for (int64_t axis = 0; node.has_input(2) && axis < node.rank(2); ++axis) {
    const int64_t of_result = axis + 2 - node.rank(2);
    const auto side = static_cast<size_t>(of_result);
    if (of_result >= 0)
      counts[side] =
          agreed_count(node, {{side, side == 0 ? 1 - a : 1 - b}, {2, axis}}, true);
  }
  rule(node);
  node.set_counts(0, tidy(counts));
}

} // namespace svod::importer
