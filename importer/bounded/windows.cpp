// Operators that move a window along a bounded axis, as speech is made: how long a
// sentence takes is found by the network, and convolutions follow. What is not meant
// becomes what the operator pads with, so the windows at the end see padding where the
// tensor of the run would end, and a window counts where it begins within what is meant.
#include "importer/bounded/bounded_rules.h"
#include "importer/formula/convolution.h"
#include "importer/formula/spatial.h"

namespace svod::importer {

namespace {

constexpr size_t kNone = static_cast<size_t>(-1);

// Where an operator has its inputs, and what leaves its result as it is.
struct WindowOp {
  Op combination = Op::ReduceSum;
  size_t weights = 1, zero_point = kNone, addend = kNone;
};

// Weights have known sizes, and so have channels; without weights each is worked on
// alone.
void require_known_channels(NodeImport& node, const WindowOp& op) {
  if (op.weights == kNone) return;
  for (size_t i = 0; i < node.input_count(); ++i)
    for (int64_t axis = 0; node.has_input(i) && axis < node.rank(i); ++axis)
      if (count_along(node, i, axis) != kNoNode &&
          (axis == 1 || (i > 0 && i != op.addend)))
        refuse_bounded(node, i, axis);
}

bool moves_along_bounded_axis(const NodeImport& node, size_t spatial) {
  return count_along(node, 0, static_cast<int64_t>(2 + spatial)) != kNoNode;
}

// A byte stands for zero by the zero point.
Expr outside(NodeImport& node, const WindowOp& op) {
  if (op.zero_point == kNone || !node.has_input(op.zero_point))
    return neutral(node.g, op.combination, node.dtype(0));
  const Expr zero = operand(node, op.zero_point);
  require(node, element_count(zero.shape()) == 1, "a zero point of input 0 is no scalar");
  return reshape(zero, {});
}

void fill_behind(NodeImport& node, const WindowOp& op) {
  const Counts counts = node.counts(0);
  const Expr x =
      masked(operand(node, 0), counts, axes_from(2, node.rank(0)), outside(node, op));
  node.replace_input(0, x.id);
  node.input_counts[0] = counts; // averages count what is meant
}

// What is added has the result's sizes; the run stops where it has not.
void meet_addend(NodeImport& node, const WindowOp& op, Counts& counts) {
  if (op.addend == kNone || !node.has_input(op.addend)) return;
  for (int64_t axis = 0; axis < std::ssize(counts); ++axis) {
    NodeId& count = counts[static_cast<size_t>(axis)];
    if (node.rank(op.addend) != std::ssize(counts) ||
        (count == kNoNode) != (count_along(node, op.addend, axis) == kNoNode))
      refuse_bounded(node, 0, axis);
    if (count == kNoNode) continue;
    const Expr size{&node.g, count};
    count = checked(size, equal(size, size_along(node, op.addend, axis))).id;
  }
}

// Windows that begin within `room` elements beyond the first; with `beyond` also one that
// begins there and reaches behind the padding.
Expr windows_within(Expr count, const Windows& windows, size_t i, bool beyond) {
  const int64_t rest = windows.low[i] + windows.high[i] - windows.reach(i);
  const Expr room = count + static_cast<double>(rest);
  const auto stride = static_cast<double>(windows.stride[i]);
  const Expr fits = less_equal(like(room, 0), room);
  if (stride == 1) return checked(room + 1, fits);
  if (!beyond) return checked(room / stride + 1, fits);
  const Expr moves = (room + (stride - 1)) / stride; // the last begins so many further
  const Expr start = moves * stride, end = count + static_cast<double>(windows.low[i]);
  return checked(select(less(start, end), moves + 1, moves), fits);
}

void move_windows(NodeImport& node, Rule rule, const WindowOp& op) {
  require_known_channels(node, op);
  const bool pools = op.weights == kNone;
  const Shape shape = node.shape(0), extents(shape.begin() + 2, shape.end());
  const Windows windows = pools
                              ? read_windows(node, extents, node.get_ints("kernel_shape"))
                              : convolution_windows(node, shape, node.shape(op.weights));
  const bool same = node.get_string("auto_pad").starts_with("SAME");
  const bool beyond = pools && node.has("ceil_mode") && node.get_int("ceil_mode");
  // Which padding counts follows from the size, or the result tells places in the tensor.
  const bool more =
      pools && (node.wants_output(1) || (beyond && node.has("count_include_pad") &&
                                         node.get_int("count_include_pad")));
  Counts counts = node.counts(0);
  for (size_t i = 0; i < windows.axes(); ++i) {
    if (!moves_along_bounded_axis(node, i)) continue;
    // With SAME the padding follows from the size.
    if (more || (same && windows.stride[i] > 1))
      refuse_bounded(node, 0, static_cast<int64_t>(2 + i));
    NodeId& count = counts[2 + i];
    count = windows_within({&node.g, count}, windows, i, beyond && !same).id;
  }
  meet_addend(node, op, counts);
  fill_behind(node, op);
  rule(node);
  node.set_counts(0, counts);
}

} // namespace

void bounded_conv(NodeImport& node, Rule rule) { move_windows(node, rule, {}); }
void bounded_fused_conv(NodeImport& node, Rule rule) {
  move_windows(node, rule, {.addend = 3});
}
void bounded_conv_integer(NodeImport& node, Rule rule) {
  move_windows(node, rule, {.zero_point = 2});
}
void bounded_qlinear_conv(NodeImport& node, Rule rule) {
  move_windows(node, rule, {.weights = 3, .zero_point = 2});
}
void bounded_max_pool(NodeImport& node, Rule rule) {
  move_windows(node, rule, {.combination = Op::ReduceMax, .weights = kNone});
}
void bounded_sum_pool(NodeImport& node, Rule rule) {
  move_windows(node, rule, {.weights = kNone});
}

// Each element more gives `stride` more, whatever is padded or cut off.
void bounded_conv_transpose(NodeImport& node, Rule rule) {
  const WindowOp op;
  require_known_channels(node, op);
  const Shape shape = node.shape(0);
  const Windows windows = convolution_windows(node, shape, node.shape(1), kLongerResult);
  Counts counts = node.counts(0);
  for (size_t i = 0; i < windows.axes(); ++i)
    if (moves_along_bounded_axis(node, i) && node.has("output_shape"))
      refuse_bounded(node, 0, static_cast<int64_t>(2 + i));
  fill_behind(node, op);
  rule(node);
  const Shape result = node.g[node.results()[0]].shape;
  for (size_t axis = 2; axis < shape.size(); ++axis) {
    NodeId& count = counts[axis];
    if (count == kNoNode) continue;
    const auto stride = static_cast<double>(windows.stride[axis - 2]);
    const Expr moved = Expr{&node.g, count} * stride;
    const double rest =
        static_cast<double>(result[axis]) - stride * static_cast<double>(shape[axis]);
    count = checked(moved + rest, less_equal(like(moved, -rest), moved)).id;
  }
  node.set_counts(0, counts);
}

// Rows of known length, each worked on alone: axes in front of the attribute's may be
// bounded. Of inputs that are added, the sizes must agree.
void bounded_rows(NodeImport& node, Rule rule) {
  const int64_t rank = node.rank(0);
  const int64_t axis =
      node.has("axis") ? node.axis(node.get_int("axis"), rank) : rank - 1;
  for (size_t i = 0; i < node.input_count(); ++i)
    for (int64_t at = 0; node.has_input(i) && at < node.rank(i); ++at)
      if (count_along(node, i, at) != kNoNode && at + rank - node.rank(i) >= axis)
        refuse_bounded(node, i, at);
  bounded_elementwise(node, rule);
  const Counts counts = node.output_counts.empty() ? Counts{} : node.output_counts[0];
  for (size_t out = 1; out < node.results().size(); ++out)
    if (node.results()[out] != kNoNode) node.set_counts(out, counts);
}

} // namespace svod::importer
