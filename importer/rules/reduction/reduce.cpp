// Reductions, running sums and products, and what is built on a maximum over axes. Axes
// come from an attribute in older opsets and from an input in newer ones; none of them
// means all axes. Integers keep their type through sums; roots and logarithms of them go
// through f64.
#include "importer/formula/formula.h"
#include "importer/formula/reduction.h"

#include <algorithm>
#include <limits>

namespace svod::importer {

namespace {

// Drops the reduced axes unless they are to be kept, and converts to the input's type.
void finish_reduction(NodeImport& node, Expr result, const std::vector<int64_t>& axes) {
  if (!node.get_int("keepdims"))
    result = with(result, squeeze_axes(node.g, result.id, axes));
  finish(node, result);
}

Expr through_float(Expr x) { return is_float(x.dtype()) ? x : convert(x, DType::F64); }

// The largest finite element is taken out, so that the exponentials stay in range.
Expr log_sum_exp(Expr x, const std::vector<int64_t>& axes) {
  const Expr top = reduce(Op::ReduceMax, x, axes);
  const Expr finite = less(absolute(top), std::numeric_limits<double>::infinity());
  const Expr shift = select(finite, top, like(top, 0));
  return log(sum(exp(x - shift), axes)) + shift;
}

// Before opset 13 the input counts as a matrix whose columns are the axes from `axis` on.
std::vector<int64_t> softmax_axes(NodeImport& node) {
  const int64_t rank = node.rank(0);
  int64_t given = node.get_int("axis");
  if (node.opset < 13 && given == rank) return {};
  const int64_t axis = node.axis(given, rank);
  if (node.opset >= 13) return {axis};
  return axes_from(axis, rank);
}

void import_arg(NodeImport& node, Op op) {
  const Expr x = operand(node, 0);
  require(node, x.rank() > 0, "the input has no axis");
  const int64_t axis = node.axis(node.get_int("axis"), x.rank());
  require(node, extent(x, axis) > 0, "the axis is empty");
  const bool last = node.has("select_last_index") && node.get_int("select_last_index");
  Expr index = with(x, arg_reduce(node.g, op, x.id, axis, last));
  if (!node.get_int("keepdims")) index = squeeze(index, axis);
  give(node, 0, index);
}

Expr reversed(Expr x, int64_t axis) {
  if (extent(x, axis) == 0) return x;
  const Shape shape = x.shape();
  Shape start(shape.size(), 0), step(shape.size(), 1);
  start[axis] = shape[axis] - 1;
  step[axis] = -1;
  return slice(x, start, step, shape);
}

// Exclusive: the elements move one on and `identity` comes in.
Expr running(Op op, Expr x, int64_t axis, double identity, bool exclusive, bool reverse) {
  if (reverse) x = reversed(x, axis);
  const int64_t count = extent(x, axis);
  if (exclusive && count > 0) {
    const Shape none(x.shape().size(), 0);
    Shape low = none;
    low[axis] = 1;
    x = pad(cut(x, axis, 0, count - 1), low, none, identity);
  }
  x = with(x, scan(*x.g, op, x.id, axis));
  return reverse ? reversed(x, axis) : x;
}

// An axis of run time chooses among the results along every axis.
void import_running(NodeImport& node, Op op, double identity) {
  require(node, element_count(node.shape(1)) == 1, "input 1 must be one axis");
  const Expr x = wide(node, 0);
  require(node, x.rank() > 0, "the input has no axis");
  const auto along_axis = [&](int64_t axis) {
    return running(op, x, axis, identity, node.get_int("exclusive") != 0,
                   node.get_int("reverse") != 0);
  };
  if (const auto axis = ints_if_known(node, 1))
    return finish(node, along_axis(node.axis(axis->front(), x.rank())));
  const Expr axis = reshape(operand(node, 1), {});
  Expr y = along_axis(0);
  for (int64_t i = 1; i < x.rank(); ++i) {
    const Expr chosen = either(equal(axis, static_cast<double>(i)),
                               equal(axis, static_cast<double>(i - x.rank())));
    y = select(chosen, along_axis(i), y);
  }
  finish(node, y);
}

using Axes = std::vector<int64_t>;

void import_reduce(NodeImport& node, Expr (*result)(Expr x, const Axes& axes)) {
  const Axes axes = reduction_axes(node);
  const Expr x = wide(node, 0);
  require(node, x.dtype() != DType::Bool, "input 0 must hold numbers");
  finish_reduction(node, result(x, axes), axes);
}

} // namespace

void import_reduce_sum(NodeImport& node) {
  import_reduce(node, [](Expr x, const Axes& axes) { return sum(x, axes); });
}
void import_reduce_mean(NodeImport& node) {
  import_reduce(node, [](Expr x, const Axes& axes) { return mean(x, axes); });
}
void import_reduce_prod(NodeImport& node) {
  import_reduce(node,
                [](Expr x, const Axes& axes) { return reduce(Op::ReduceProd, x, axes); });
}
void import_reduce_l1(NodeImport& node) {
  import_reduce(node, [](Expr x, const Axes& axes) { return sum(absolute(x), axes); });
}
void import_reduce_l2(NodeImport& node) {
  import_reduce(node, [](Expr x, const Axes& axes) {
    return sqrt(through_float(sum(x * x, axes)));
  });
}
void import_reduce_log_sum(NodeImport& node) {
  import_reduce(
      node, [](Expr x, const Axes& axes) { return log(through_float(sum(x, axes))); });
}
void import_reduce_log_sum_exp(NodeImport& node) {
  import_reduce(
      node, [](Expr x, const Axes& axes) { return log_sum_exp(through_float(x), axes); });
}
void import_reduce_sum_square(NodeImport& node) {
  import_reduce(node, [](Expr x, const Axes& axes) { return sum(x * x, axes); });
}

// Of booleans, false is below true.
void import_reduce_extreme(NodeImport& node, Op op) {
  const std::vector<int64_t> axes = reduction_axes(node);
  Expr x = wide(node, 0);
  if (x.dtype() == DType::Bool) x = convert(x, DType::U8);
  finish_reduction(node, reduce(op, x, axes), axes);
}

void import_arg_max(NodeImport& node) { import_arg(node, Op::ArgMax); }
void import_arg_min(NodeImport& node) { import_arg(node, Op::ArgMin); }
void import_cum_sum(NodeImport& node) { import_running(node, Op::ScanSum, 0); }
void import_cum_prod(NodeImport& node) { import_running(node, Op::ScanProd, 1); }

void import_softmax(NodeImport& node) {
  finish(node, softmax(wide(node, 0), softmax_axes(node)));
}

void import_log_softmax(NodeImport& node) {
  const std::vector<int64_t> axes = softmax_axes(node);
  const Expr x = wide(node, 0);
  const Expr shifted = x - reduce(Op::ReduceMax, x, axes);
  finish(node, shifted - log(sum(exp(shifted), axes)));
}

// One at the first maximum, zero elsewhere. Several axes count as one.
void import_hardmax(NodeImport& node) {
  const std::vector<int64_t> axes = softmax_axes(node);
  const Shape shape = node.shape(0);
  Expr x = operand(node, 0);
  if (element_count(shape) == 0) return node.output(0, x.id);
  int64_t axis = axes.empty() ? x.rank() : axes[0];
  if (axes.size() != 1) {
    Shape flat(shape.begin(), shape.begin() + axis);
    flat.push_back(element_count(Shape(shape.begin() + axis, shape.end())));
    x = reshape(x, flat);
  }
  const Expr top = with(x, arg_reduce(node.g, Op::ArgMax, x.id, axis, false));
  const Expr hit = equal(counter(node.g, DType::I64, Shape(x.shape()), axis), top);
  finish(node, reshape(hit, shape));
}

} // namespace svod::importer
