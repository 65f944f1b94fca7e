// Operators that cut, join, pad or reorder along axes. All become views, concats, or a
// gather by positions known when packing (importer/formula/movement.h).
#include "importer/bounded/bounded_rules.h"
#include "importer/bounded/run_time_movement.h"
#include "importer/formula/rule.h"

#include <algorithm>
#include <numeric>

namespace svod::importer {
namespace {

std::vector<int64_t> all_axes(int64_t rank) {
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

struct SliceSpec {
  std::vector<int64_t> starts, ends, axes, steps;
};

// Negative bounds count from the end, then both are clamped into the axis.
void slice_by(NodeImport& node, SliceSpec spec) {
  Shape start(node.shape(0).size(), 0), step(node.shape(0).size(), 1);
  Shape extent = node.shape(0);
  size_t count = spec.starts.size();
  if (spec.axes.empty()) {
    spec.axes = all_axes(node.rank(0));
    if (count <= spec.axes.size()) spec.axes.resize(count);
  }
  if (spec.steps.empty()) spec.steps.assign(count, 1);
  if (spec.ends.size() != count || spec.axes.size() != count ||
      spec.steps.size() != count)
    node.invalid("starts, ends, axes and steps must have equal lengths");
  for (size_t i = 0; i < count; ++i) {
    auto axis = static_cast<size_t>(node.axis(spec.axes[i], node.rank(0)));
    int64_t n = node.shape(0)[axis], by = spec.steps[i];
    if (by == 0) node.invalid("a step is 0");
    if (by == INT64_MIN) by = -INT64_MAX;
    // The specification's bounds; numpy would take nothing from a start before the axis.
    int64_t high = by > 0 ? n : n - 1;
    auto bound = [&](int64_t at, int64_t low) {
      return std::clamp(at < 0 ? at + n : at, std::min(low, high), high);
    };
    int64_t from = bound(spec.starts[i], 0), to = bound(spec.ends[i], by > 0 ? 0 : -1);
    int64_t length = by > 0 ? to - from : from - to;
    uint64_t pace = by > 0 ? uint64_t(by) : uint64_t(-by);
    extent[axis] = length <= 0 ? 0 : int64_t((uint64_t(length) - 1) / pace) + 1;
    start[axis] = extent[axis] == 0 ? 0 : from;
    step[axis] = extent[axis] <= 1 ? 1 : by;
  }
  node.output(0, slice(node.g, node.input(0), start, step, extent));
}

// The source position of every padded position of an axis of extent n, for the modes that
// repeat the input. Amounts may exceed the extent, then the pattern goes on as in numpy.
std::vector<int64_t> padded_positions(NodeImport& node, const std::string& mode,
                                      int64_t n, int64_t low, int64_t high) {
  std::vector<int64_t> positions;
  if (n == 0 && low + high > 0) node.invalid("cannot repeat an empty axis");
  for (int64_t i = -low; i < n + high; ++i) {
    if (mode == "edge") {
      positions.push_back(std::clamp<int64_t>(i, 0, n - 1));
    } else if (mode == "wrap") {
      positions.push_back((i % n + n) % n);
    } else if (mode == "reflect") {
      int64_t period = n == 1 ? 1 : 2 * (n - 1), at = (i % period + period) % period;
      positions.push_back(at < n ? at : period - at);
    } else {
      node.invalid("mode '" + mode + "' is not one of constant, reflect, edge, wrap");
    }
  }
  return positions;
}

// Constant padding with a value only known at run time: an in-range mask chooses.
Expr pad_with(Expr x, const Shape& low, const Shape& high, Expr fill) {
  Expr inside = with(x, constant_int(*x.g, DType::Bool, x.shape(), 1));
  Expr mask = pad(inside, low, high, 0);
  Expr wide = pad(x, low, high, 0);
  return select(mask, wide, reshape(fill, {}));
}

// More padding than this on one side is an attack, not a model.
constexpr int64_t kMaxPadding = 1 << 24;

struct PadSpec {
  std::vector<int64_t> axes, amounts; // amounts: before each axis, then after each
  std::string mode;
  std::optional<Expr> fill; // 0 without
};

void pad_by(NodeImport& node, PadSpec spec) {
  Expr x = operand(node, 0);
  size_t count = spec.axes.size();
  if (spec.amounts.size() != 2 * count)
    node.invalid("pads must have two entries per axis");
  for (int64_t amount : spec.amounts)
    if (amount < -kMaxPadding || amount > kMaxPadding)
      node.invalid("pads are out of range");
  Shape low(x.shape().size(), 0), high = low;
  for (size_t i = 0; i < count; ++i) {
    auto axis = static_cast<size_t>(node.axis(spec.axes[i], x.rank()));
    low[axis] = spec.amounts[i];
    high[axis] = spec.amounts[count + i];
  }
  // Negative amounts remove elements; that comes first, as the rest then is ordinary.
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    int64_t& before = low[static_cast<size_t>(axis)];
    int64_t& after = high[static_cast<size_t>(axis)];
    int64_t cut_low = std::max<int64_t>(0, -before),
            cut_high = std::max<int64_t>(0, -after);
    int64_t left = extent(x, axis) - cut_low - cut_high;
    if (left < 0) node.invalid("negative pads remove more than an axis has");
    if (left != extent(x, axis)) x = cut(x, axis, cut_low, left);
    before += cut_low;
    after += cut_high;
  }
  if (spec.mode == "constant") {
    std::optional<uint64_t> bits = spec.fill ? splat_bits(node.g, spec.fill->id) : 0;
    if (!bits) return give(node, 0, pad_with(x, low, high, *spec.fill));
    double value = spec.fill ? scalar_value(x.dtype(), *bits) : 0;
    return give(node, 0, pad(x, low, high, value));
  }
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    int64_t before = low[static_cast<size_t>(axis)],
            after = high[static_cast<size_t>(axis)];
    if (before || after)
      x = take(x, axis,
               padded_positions(node, spec.mode, extent(x, axis), before, after));
  }
  give(node, 0, x);
}

void split_by(NodeImport& node, std::vector<int64_t> parts, int64_t count, int64_t axis) {
  axis = node.axis(axis, node.rank(0));
  int64_t extent = node.shape(0)[static_cast<size_t>(axis)];
  if (parts.empty()) {
    if (count != static_cast<int64_t>(node.output_count()))
      node.invalid("num_outputs differs from the number of outputs");
    int64_t size = (extent + count - 1) / count;
    for (int64_t i = 0, left = extent; i < count; ++i) {
      parts.push_back(std::min(size, left));
      left -= parts.back();
    }
  }
  if (parts.size() < node.output_count()) node.invalid("fewer parts than outputs");
  int64_t at = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] < 0 || parts[i] > extent - at)
      node.invalid("the parts do not add up to the axis's extent " +
                   std::to_string(extent));
    if (i < node.output_count())
      node.output(i, slice_axis(node.g, node.input(0), axis, at, parts[i]));
    at += parts[i];
  }
  if (at != extent)
    node.invalid("the parts do not add up to the axis's extent " +
                 std::to_string(extent));
}

} // namespace

void import_slice_attributes(NodeImport& node) {
  slice_by(node,
           {node.get_ints("starts"), node.get_ints("ends"), node.get_ints("axes"), {}});
}

void import_slice(NodeImport& node) {
  for (size_t i = 1; i < node.input_count(); ++i)
    if (node.has_input(i) && !ints_if_known(node, i))
      return node.declared_shape(0) ? slice_at_run_time(node)
                                    : bounded_slice(node, nullptr);
  SliceSpec spec{node.known_ints(1), node.known_ints(2), {}, {}};
  if (node.has_input(3)) spec.axes = node.known_ints(3);
  if (node.has_input(4)) spec.steps = node.known_ints(4);
  slice_by(node, spec);
}

void import_pad_attributes(NodeImport& node) {
  Expr fill = number(node.g, node.dtype(0), node.get_float("value"));
  const char* amounts = node.opset == 1 ? "paddings" : "pads";
  pad_by(node,
         {all_axes(node.rank(0)), node.get_ints(amounts), node.get_string("mode"), fill});
}

void import_pad(NodeImport& node) {
  if (!ints_if_known(node, 1) || (node.has_input(3) && !ints_if_known(node, 3)))
    return pad_at_run_time(node, node.get_string("mode"));
  PadSpec spec{all_axes(node.rank(0)), node.known_ints(1), node.get_string("mode"), {}};
  if (node.has_input(2)) {
    spec.fill = operand(node, 2);
    if (element_count(spec.fill->shape()) != 1)
      node.invalid("constant_value must have one element");
  }
  if (node.has_input(3)) spec.axes = node.known_ints(3);
  pad_by(node, spec);
}

void import_concat(NodeImport& node) {
  if (node.input_count() == 0) node.invalid("needs an input");
  int64_t axis = node.opset < 4 && !node.has("axis") ? 1 : node.get_int("axis");
  axis = node.axis(axis, node.rank(0));
  std::vector<NodeId> parts;
  for (size_t i = 0; i < node.input_count(); ++i) {
    Shape expected = node.shape(0);
    if (node.rank(i) == node.rank(0))
      expected[static_cast<size_t>(axis)] = node.shape(i)[static_cast<size_t>(axis)];
    if (node.shape(i) != expected || node.dtype(i) != node.dtype(0))
      node.invalid("input " + std::to_string(i) + " " + shape_text(node.shape(i)) +
                   " does not fit input 0 " + shape_text(node.shape(0)));
    parts.push_back(node.input(i));
  }
  node.output(0, concat(node.g, parts, axis));
}

void import_split_attribute(NodeImport& node) {
  if (node.has_input(1)) node.unsupported("split as an input in opset 1");
  auto count = static_cast<int64_t>(node.output_count());
  int64_t axis = node.has("axis") || node.opset >= 2 ? node.get_int("axis") : 0;
  split_by(node, node.get_ints("split"), count, axis);
}

void import_split(NodeImport& node) {
  auto count = static_cast<int64_t>(node.output_count());
  if (node.opset >= 18 && node.has("num_outputs")) count = node.get_int("num_outputs");
  std::vector<int64_t> parts;
  if (node.has_input(1)) {
    auto wanted = ints_if_known(node, 1);
    int64_t axis = node.axis(node.get_int("axis"), node.rank(0));
    for (size_t i = 0; !wanted && i < node.output_count(); ++i)
      parts.push_back(
          declared_instead(node, 1, i, node.rank(0))[static_cast<size_t>(axis)]);
    wanted ? void(parts = *wanted) : promise_values(node, 1, parts);
  }
  split_by(node, parts, count, node.get_int("axis"));
}

// The first sequence_lens[b] elements of batch b are reversed, the others stay.
void import_reverse_sequence(NodeImport& node) {
  Expr x = operand(node, 0), lengths = operand(node, 1);
  int64_t batch = node.axis(node.get_int("batch_axis"), x.rank());
  int64_t time = node.axis(node.get_int("time_axis"), x.rank());
  if (batch == time) node.invalid("batch_axis and time_axis are the same");
  if (lengths.shape() != Shape{extent(x, batch)})
    node.invalid("sequence_lens must have one entry per batch");
  Expr steps = count_along(node.g, lengths.dtype(), extent(x, time), time, x.rank());
  Expr length = along(lengths, batch, x.rank());
  Expr from = select(less(steps, length), length - 1.0 - steps, steps);
  give(node, 0, gather(x, broadcast(from, x.shape()), time));
}

// Crops or pads around the middle; of an odd difference the smaller half comes first.
void import_center_crop_pad(NodeImport& node) {
  Expr x = operand(node, 0);
  std::vector<int64_t> wanted, axes = node.get_ints("axes");
  if (!node.has("axes")) axes = all_axes(x.rank());
  if (auto shape = ints_if_known(node, 1)) {
    wanted = *shape;
  } else {
    Shape declared = declared_instead(node, 1, 0, x.rank());
    for (int64_t axis : axes)
      wanted.push_back(declared[static_cast<size_t>(node.axis(axis, x.rank()))]);
  }
  if (wanted.size() != axes.size()) node.invalid("shape must have one entry per axis");
  Shape low(x.shape().size(), 0), high = low;
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t axis = node.axis(axes[i], x.rank()), have = extent(x, axis), want = wanted[i];
    if (want < 0) node.invalid("shape has a negative extent");
    if (want < have) x = cut(x, axis, (have - want) / 2, want);
    if (want > have) {
      low[static_cast<size_t>(axis)] = (want - have) / 2;
      high[static_cast<size_t>(axis)] = want - have - (want - have) / 2;
    }
  }
  give(node, 0, pad(x, low, high, 0));
}

void import_trilu(NodeImport& node) {
  Expr x = operand(node, 0);
  int64_t rank = x.rank();
  if (rank < 2) node.invalid("the input needs two axes");
  if (node.has_input(1) && element_count(node.shape(1)) != 1)
    node.invalid("k must be one number");
  Expr row = count_along(node.g, DType::I64, extent(x, rank - 2), 0, 2);
  Expr column = count_along(node.g, DType::I64, extent(x, rank - 1), 1, 2);
  Expr diagonal =
      node.has_input(1) ? row + reshape(convert(operand(node, 1), DType::I64), {}) : row;
  Expr keep =
      node.get_int("upper") ? less_equal(diagonal, column) : less_equal(column, diagonal);
  give(node, 0, select(keep, x, like(x, 0)));
}

// Adds every block back to where it was cut from: one scatter-add per image plane.
// Positions in the padding are dropped by scattering into the padded image.
void import_col2im(NodeImport& node) {
  Expr x = operand(node, 0);
  std::vector<int64_t> image = node.known_ints(1), block = node.known_ints(2);
  size_t n = image.size();
  auto ints_or = [&](std::string_view name, size_t count, int64_t value) {
    std::vector<int64_t> ints = node.get_ints(name);
    if (ints.empty()) ints.assign(count, value);
    if (ints.size() != count) node.invalid(std::string(name) + " has a wrong length");
    for (int64_t entry : ints) within_reach(node, entry, "an attribute's entry");
    return ints;
  };
  std::vector<int64_t> dilations = ints_or("dilations", n, 1),
                       pads = ints_or("pads", 2 * n, 0),
                       strides = ints_or("strides", n, 1);
  if (x.rank() != 3 || block.size() != n || n == 0)
    node.invalid("input ranks do not fit");
  for (size_t i = 0; i < n; ++i) {
    within_reach(node, image[i], "an extent of image_shape");
    within_reach(node, block[i], "an extent of block_shape");
  }
  Expr index = reshape(number(node.g, DType::I64, 0), Shape(2 * n, 1));
  Shape padded;
  int64_t blocks = 1, positions = 1;
  for (size_t i = 0; i < n; ++i) {
    int64_t extent = image[i] + pads[i] + pads[n + i];
    int64_t span = dilations[i] * (block[i] - 1) + 1;
    if (strides[i] == 0 || dilations[i] == 0 || block[i] == 0 || extent < span)
      node.invalid("the blocks do not fit into the image");
    int64_t count = (extent - span) / strides[i] + 1;
    auto rank = static_cast<int64_t>(2 * n), at = static_cast<int64_t>(i);
    Expr inner = count_along(node.g, DType::I64, block[i], at, rank);
    Expr outer = count_along(node.g, DType::I64, count, rank / 2 + at, rank);
    index = index * double(extent) + inner * double(dilations[i]) +
            outer * double(strides[i]);
    blocks *= block[i];
    positions *= count;
    padded.push_back(extent);
  }
  if (extent(x, 1) % blocks != 0 || extent(x, 2) != positions)
    node.invalid("input extents do not fit");
  int64_t planes = extent(x, 0) * (extent(x, 1) / blocks), size = element_count(padded);
  x = reshape(x, {planes, blocks * positions});
  Expr zero = with(x, constant(node.g, x.dtype(), {planes, size}, 0));
  Expr where = broadcast(reshape(index, {1, blocks * positions}), x.shape());
  Expr y = scatter(zero, where, x, 1, Combiner::Add);
  Shape to{node.shape(0)[0], node.shape(0)[1] / blocks};
  to.insert(to.end(), padded.begin(), padded.end());
  y = reshape(y, to);
  for (size_t i = 0; i < n; ++i)
    y = cut(y, static_cast<int64_t>(i) + 2, pads[i], image[i]);
  give(node, 0, y);
}

} // namespace svod::importer
