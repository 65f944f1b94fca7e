// Poolings: pad, window, and a reduction of the window's axes. With ceil_mode a last
// window may reach beyond the padding; what lies there counts in no average.
#include "importer/bounded/bounded.h"
#include "importer/formula/formula.h"
#include "importer/formula/quantization.h"
#include "importer/formula/spatial.h"

#include <algorithm>
#include <limits>

namespace svod::importer {

namespace {

constexpr int64_t kMostCounts = int64_t{1} << 24; // of windows, listed one by one

struct Pooling {
  Windows windows;
  Shape extents; // of the input's spatial axes
  Shape counts;  // of windows, per axis
  Shape beyond;  // elements behind the padding that the last windows reach
};

// How many windows there are; with ceil_mode one more when elements are left over, unless
// it would start behind the input.
int64_t window_count(NodeImport& node, const Windows& windows, const Shape& extents,
                     size_t i, bool ceil_mode) {
  const int64_t room = extents[i] + windows.low[i] + windows.high[i] - windows.reach(i);
  const int64_t stride = windows.stride[i];
  if (room < 0 && (!ceil_mode || room + stride <= 0))
    node.invalid("the kernel is larger than the padded input on spatial axis " +
                 std::to_string(i));
  if (!ceil_mode) return room / stride + 1;
  int64_t count = (room + stride - 1) / stride + 1;
  if ((count - 1) * stride >= extents[i] + windows.low[i]) --count;
  return count;
}

Pooling read_pooling(NodeImport& node, const Shape& shape) {
  require(node, shape.size() >= 3,
          "input 0 must have a batch, a channel and spatial axes");
  Pooling result;
  result.extents.assign(shape.begin() + 2, shape.end());
  result.windows = read_windows(node, result.extents, node.get_ints("kernel_shape"));
  const Windows& windows = result.windows;
  const bool same = node.get_string("auto_pad").starts_with("SAME");
  const bool ceil_mode = node.has("ceil_mode") && node.get_int("ceil_mode") && !same;
  for (size_t i = 0; i < windows.axes(); ++i) {
    const int64_t count = window_count(node, windows, result.extents, i, ceil_mode);
    const int64_t needed = (count - 1) * windows.stride[i] + windows.reach(i);
    const int64_t have = result.extents[i] + windows.low[i] + windows.high[i];
    result.counts.push_back(count);
    result.beyond.push_back(std::max<int64_t>(needed - have, 0));
  }
  return result;
}

// [N, C, s..] -> [N, C, o.., k..], `outside` where a window leaves the input.
Expr windows_of(Expr x, const Pooling& pooling, double outside) {
  const Windows& windows = pooling.windows;
  Shape low{0, 0}, high{0, 0};
  for (size_t i = 0; i < windows.axes(); ++i) {
    low.push_back(windows.low[i]);
    high.push_back(windows.high[i] + pooling.beyond[i]);
  }
  x = pad(x, low, high, outside);
  for (size_t i = 0; i < windows.axes(); ++i)
    x = with(x, window(*x.g, x.id, static_cast<int64_t>(2 + i), windows.kernel[i],
                       windows.stride[i], windows.dilation[i]));
  return x;
}

// Reduces the window axes away.
Expr pooled(Op op, Expr x, const Pooling& pooling) {
  const Shape shape = x.shape();
  const int64_t first = static_cast<int64_t>(2 + pooling.windows.axes());
  return reshape(reduce(op, x, axes_from(first, x.rank())),
                 Shape(shape.begin(), shape.begin() + first));
}

// Below every value of the type.
double lowest(DType dtype) {
  if (is_float(dtype)) return -std::numeric_limits<double>::infinity();
  if (info(dtype).kind == DTypeKind::Uint) return 0;
  return -static_cast<double>(uint64_t{1} << (8 * byte_size(dtype) - 1));
}

// How many elements of a window lie less than `room` behind its first.
int64_t taps_below(int64_t room, const Windows& windows, size_t i) {
  const int64_t dilation = windows.dilation[i];
  return std::clamp<int64_t>((room + dilation - 1) / dilation, 0, windows.kernel[i]);
}

// The elements of each window that count, as a tensor [o1..ok] or one number.
Expr divisors(NodeImport& node, Expr x, const Pooling& pooling, bool with_padding) {
  const Windows& windows = pooling.windows;
  if (element_count(pooling.counts) > kMostCounts)
    node.unsupported("averages of more windows than can be counted when packing");
  std::vector<float> counts{1};
  for (size_t i = 0; i < windows.axes(); ++i) {
    const int64_t first = with_padding ? -windows.low[i] : 0;
    const int64_t last = pooling.extents[i] + (with_padding ? windows.high[i] : 0);
    std::vector<float> longer;
    for (float outer : counts)
      for (int64_t o = 0; o < pooling.counts[i]; ++o) {
        const int64_t start = o * windows.stride[i] - windows.low[i];
        const int64_t inside =
            taps_below(last - start, windows, i) - taps_below(first - start, windows, i);
        longer.push_back(outer * static_cast<float>(inside));
      }
    counts = std::move(longer);
  }
  if (std::ranges::count(counts, counts[0]) == std::ssize(counts))
    return number(*x.g, x.dtype(), counts[0]);
  return convert(with(x, tensor_f32(*x.g, pooling.counts, counts)), x.dtype());
}

// The flat index in the input of each window's first maximum: its place in the window
// gives the place on every axis.
Expr flat_indices(NodeImport& node, Expr values, const Pooling& pooling) {
  Graph& g = node.g;
  const Windows& windows = pooling.windows;
  const size_t axes = windows.axes();
  Shape shape(values.shape().begin(), values.shape().begin() + 2 + axes);
  const int64_t rank = static_cast<int64_t>(shape.size());
  Shape flat = shape;
  flat.push_back(element_count(windows.kernel));
  const Expr best =
      with(values, arg_reduce(g, Op::ArgMax, reshape(values, flat).id, rank, false));
  Expr place = reshape(best, shape);

  int64_t plane = element_count(pooling.extents), scale = plane;
  const bool column_major = node.get_int("storage_order") != 0;
  Expr index = counter(g, DType::I64, shape, 0) * static_cast<double>(shape[1]) +
               counter(g, DType::I64, shape, 1);
  index = index * static_cast<double>(plane);
  if (column_major) scale = 1;
  int64_t inner = element_count(windows.kernel);
  for (size_t i = 0; i < axes; ++i) {
    inner /= windows.kernel[i];
    if (!column_major) scale /= pooling.extents[i];
    const Expr step = place / static_cast<double>(inner);
    place = place - step * static_cast<double>(inner);
    const int64_t axis = static_cast<int64_t>(2 + i);
    const Expr at = counter(g, DType::I64, shape, axis) * double(windows.stride[i]) +
                    step * double(windows.dilation[i]) - double(windows.low[i]);
    index = index + at * static_cast<double>(scale);
    if (column_major) scale *= pooling.extents[i];
  }
  return index;
}

// |x|^p, its sum's root.
Expr to_power(Expr x, double p) {
  if (p == 1) return absolute(x);
  return p == 2 ? x * x : power(absolute(x), p);
}
Expr to_root(Expr x, double p) {
  if (p == 1) return x;
  return p == 2 ? sqrt(x) : power(x, 1 / p);
}

// p is a float in opset 1.
double norm_order(NodeImport& node) {
  const double p = node.opset < 2 ? node.get_float("p") : double(node.get_int("p"));
  require(node, p > 0, "p must be positive");
  return p;
}

std::vector<int64_t> spatial_axes(NodeImport& node) {
  require(node, node.rank(0) >= 2, "input 0 must have a batch and a channel axis");
  return axes_from(2, node.rank(0));
}

} // namespace

void import_max_pool(NodeImport& node) {
  const Pooling pooling = read_pooling(node, node.shape(0));
  const Expr x = wide(node, 0);
  const Expr values = windows_of(x, pooling, lowest(x.dtype()));
  finish(node, pooled(Op::ReduceMax, values, pooling));
  if (node.wants_output(1)) give(node, 1, flat_indices(node, values, pooling));
}

void import_average_pool(NodeImport& node) {
  const Pooling pooling = read_pooling(node, node.shape(0));
  const bool with_padding =
      node.has("count_include_pad") && node.get_int("count_include_pad") != 0;
  const Expr x = wide(node, 0);
  const Expr total = pooled(Op::ReduceSum, windows_of(x, pooling, 0), pooling);
  if (with_padding || node.counts(0).empty())
    return finish(node, total / divisors(node, x, pooling, with_padding));
  Shape image = x.shape();
  image[0] = image[1] = 1;
  const Expr there = masked(broadcast(like(x, 1), image), node.counts(0),
                            axes_from(2, x.rank()), like(x, 0));
  finish(node, total / pooled(Op::ReduceSum, windows_of(there, pooling, 0), pooling));
}

// com.microsoft: dequantise, pool, quantise.
void import_qlinear_average_pool(NodeImport& node) {
  const bool last = node.get_int("channels_last") != 0;
  Expr x = dequantized_input(node, 0);
  if (last) x = channels_second(node, x);
  const Pooling pooling = read_pooling(node, x.shape());
  const Expr total = pooled(Op::ReduceSum, windows_of(x, pooling, 0), pooling);
  const bool with_padding = node.get_int("count_include_pad") != 0;
  const Expr y = total / divisors(node, x, pooling, with_padding);
  give_quantized(node, last ? channels_last(y) : y, 3, node.dtype(0));
}

void import_nhwc_max_pool(NodeImport& node) {
  const Expr x = channels_second(node, wide(node, 0));
  const Pooling pooling = read_pooling(node, x.shape());
  const Expr values = windows_of(x, pooling, lowest(x.dtype()));
  finish(node, channels_last(pooled(Op::ReduceMax, values, pooling)));
}

// com.microsoft: a window ends at the mask's first zero, which hides what lies behind it.
void import_max_pool_with_mask(NodeImport& node) {
  const Expr x = wide(node, 0), mask = operand(node, 1);
  require_broadcast(node, mask.shape(), x.shape());
  const Pooling pooling = read_pooling(node, x.shape());
  const double hidden = lowest(x.dtype());
  const Expr seen = select(equal(mask, 0), like(x, hidden), x);
  finish(node, pooled(Op::ReduceMax, windows_of(seen, pooling, hidden), pooling));
}

void import_lp_pool(NodeImport& node) {
  const double p = norm_order(node);
  const Pooling pooling = read_pooling(node, node.shape(0));
  const Expr values = windows_of(to_power(wide(node, 0), p), pooling, 0);
  finish(node, to_root(pooled(Op::ReduceSum, values, pooling), p));
}

void import_global_average_pool(NodeImport& node) {
  const std::vector<int64_t> axes = spatial_axes(node);
  finish(node, mean_of_meant(wide(node, 0), node.counts(0), axes));
}

void import_global_max_pool(NodeImport& node) {
  const std::vector<int64_t> axes = spatial_axes(node);
  const Expr x = wide(node, 0);
  const Expr least = neutral(node.g, Op::ReduceMax, x.dtype());
  finish(node, reduce(Op::ReduceMax, masked(x, node.counts(0), axes, least), axes));
}

void import_global_lp_pool(NodeImport& node) {
  const double p = norm_order(node);
  const std::vector<int64_t> axes = spatial_axes(node);
  const Expr x = wide(node, 0), there = masked(x, node.counts(0), axes, like(x, 0));
  finish(node, to_root(sum(to_power(there, p), axes), p));
}

// Each value goes back to the flat index it came from; the rest is zero. The indices
// refer to the shape that the attributes give; an explicit shape extends that at the end
// of each axis.
void import_max_unpool(NodeImport& node) {
  const Expr x = operand(node, 0), index = operand(node, 1);
  require(node, x.rank() >= 3, "input 0 must have a batch, a channel and spatial axes");
  require(node, index.shape() == x.shape(),
          "the indices have another shape than input 0");
  const size_t axes = x.shape().size() - 2;
  const Shape kernel = ints_or(node, "kernel_shape", axes, 1);
  const Shape stride = ints_or(node, "strides", axes, 1);
  const Shape pads = ints_or(node, "pads", 2 * axes, 0);
  Shape shape{x.shape()[0], x.shape()[1]};
  for (size_t i = 0; i < axes; ++i)
    shape.push_back((x.shape()[2 + i] - 1) * stride[i] - pads[i] - pads[axes + i] +
                    kernel[i]);
  require(node, std::ranges::min(shape) > 0 && std::ranges::max(shape) < (1 << 24),
          "the result's shape is out of range");
  const Shape one{element_count(shape)}, flat{element_count(x.shape())};
  const Expr zeros = with(x, constant(node.g, x.dtype(), one, 0));
  Expr y = reshape(
      scatter(zeros, reshape(index, flat), reshape(x, flat), 0, Combiner::Set), shape);
  if (node.has_input(2)) {
    const std::vector<int64_t> wanted = node.known_ints(2);
    require(node, wanted.size() == shape.size(), "output_shape has another rank");
    Shape high;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (wanted[i] < shape[i])
        node.unsupported("output_shape is smaller than what the kernel gives");
      high.push_back(wanted[i] - shape[i]);
    }
    y = pad(y, Shape(shape.size(), 0), high, 0);
  }
  give(node, 0, y);
}

} // namespace svod::importer
