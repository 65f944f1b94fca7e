// Operators that make values from nothing but numbers: constants, ranges, identity
// matrices, one-hot codes, window functions. With known arguments the builder folds them
// away.
#include "importer/bounded/bounded.h"
#include "importer/formula/movement.h"
#include "importer/formula/rule.h"
#include "importer/text/strings.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace svod::importer {
namespace {

constexpr int64_t kMostValues = int64_t{1} << 24; // computed when packing

DType dtype_attribute(NodeImport& node, std::string_view name, DType otherwise) {
  if (!node.has(name)) return otherwise;
  std::optional<DType> dtype = dtype_from_onnx(static_cast<int>(node.get_int(name)));
  if (!dtype)
    node.unsupported(std::string(name) + " asks for an element type not held here");
  return *dtype;
}

// a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N), the family of cosine windows.
void cosine_window(NodeImport& node, double a0, double a1, double a2) {
  DType dtype = DType::F32;
  if (node.get_int("output_datatype") != 1)
    dtype = dtype_attribute(node, "output_datatype", dtype);
  bool known_size = ints_if_known(node, 0).has_value();
  int64_t size = known_size ? known_int(node, 0) : declared_instead(node, 0, 0, 1)[0];
  if (!known_size) promise_values(node, 0, {size});
  if (size < 0 || size > 1 << 24) node.invalid("size is out of range");
  double period = node.get_int("periodic") ? double(size) : double(size - 1);
  std::vector<float> window;
  for (int64_t n = 0; n < size; ++n) {
    double angle = 2 * std::numbers::pi * double(n) / period;
    window.push_back(float(a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle)));
  }
  Expr y{&node.g, tensor_f32(node.g, {size}, window)};
  give(node, 0, convert(y, dtype));
}

} // namespace

void import_constant(NodeImport& node) {
  Graph& g = node.g;
  for (const char* name : {"value", "sparse_value"})
    if (node.has(name)) return node.output(0, node.tensor(node.get_tensor(name)));
  if (node.has("value_float"))
    return node.output(0, constant(g, DType::F32, {}, node.get_float("value_float")));
  if (node.has("value_int"))
    return node.output(0, constant_int(g, DType::I64, {}, node.get_int("value_int")));
  if (node.has("value_floats")) {
    std::vector<float> values = node.get_floats("value_floats");
    return node.output(0, tensor_f32(g, {int64_t(values.size())}, values));
  }
  if (node.has("value_ints")) {
    std::vector<int64_t> values = node.get_ints("value_ints");
    return node.output(0, tensor_i64(g, {int64_t(values.size())}, values));
  }
  if (node.has("value_string"))
    return give(node, 0, constant_strings(node, {node.get_string("value_string")}, {}));
  if (node.has("value_strings")) {
    const std::vector<std::string> values = node.get_strings("value_strings");
    return give(node, 0, constant_strings(node, values, {std::ssize(values)}));
  }
  node.invalid("no value attribute is given");
}

namespace {

// One number, which all elements are.
Expr filling(NodeImport& node) {
  if (!node.has("value")) return number(node.g, DType::F32, 0);
  const Expr value{&node.g, node.tensor(node.get_tensor("value"))};
  if (is_compound(value.id)) node.invalid("value must not be complex");
  if (element_count(value.shape()) != 1) node.invalid("value must have one element");
  return reshape(value, {});
}

// A shape of the run: each size has a bound.
void constant_of_sizes(NodeImport& node) {
  const Expr value = filling(node);
  const Expr list = operand(node, 0);
  if (list.rank() != 1) node.invalid("the shape must have one axis");
  std::vector<Size> sizes;
  Shape bounds;
  const int64_t rank = listed_axes(node, 0);
  for (int64_t i = 0; i < rank; ++i) {
    const Expr entry = entry_of(list, i);
    const auto known_entry = known_ints(node.g, entry.id);
    sizes.push_back(known_entry ? known_size(node.g, known_entry->front())
                                : bounded_size(node, entry));
    if (sizes.back().bound < 0) node.invalid("the shape has a negative extent");
    bounds.push_back(sizes.back().bound);
  }
  give_bounded(node, 0, broadcast(value, bounds), sizes);
}

// A part of a list that its end is not far behind.
constexpr double kMostHinted = 1 << 16;

// The elements of a range that ends at run time, at most as many as its numbers allow.
Size range_size(NodeImport& node) {
  const auto one = [&](size_t i) {
    return convert(reshape(operand(node, i), {}), DType::F64);
  };
  const auto integer = [&](size_t i) {
    return convert(reshape(operand(node, i), {}), DType::I64);
  };
  const auto by = known_floats(node.g, node.input(2));
  if (!by) node.needs_value(2, "delta must be known when packing");
  if (by->front() == 0) node.invalid("delta is 0");
  const size_t begin = by->front() > 0 ? 0 : 1, end = 1 - begin; // the lower, the higher
  Expr count = number(node.g, DType::I64, 0);
  if (is_float(node.dtype(0))) {
    count = convert(apply(Op::Ceil, (one(1) - one(0)) / by->front()), DType::I64);
  } else {
    const double pace = std::abs(by->front());
    count = (integer(end) - integer(begin) + (pace - 1)) / pace;
  }
  const Expr size = maximum(count, 0);
  const auto span = most_beyond(node.g, node.input(end), node.input(begin));
  const double most = span ? std::ceil(std::max(*span, 0.0) / std::abs(by->front())) : 0;
  const auto range = range_of(node, size, Trust::Floats);
  if (!span || most > kMostHinted || (range && range->high <= most))
    return bounded_size(node, size);
  return {checked(size, less_equal(size, like(size, most))), static_cast<int64_t>(most)};
}

} // namespace

void import_constant_of_shape(NodeImport& node) {
  auto wanted = ints_if_known(node, 0);
  if (!wanted && !node.declared_shape(0)) return constant_of_sizes(node);
  Shape shape = wanted ? *wanted : declared_instead(node, 0, 0, -1);
  if (!wanted) promise_values(node, 0, shape);
  for (int64_t extent : shape)
    if (extent < 0) node.invalid("the shape has a negative extent");
  give(node, 0, broadcast(filling(node), shape));
}

namespace {

// The count-th number is before the limit, and the next one is not.
void promise_last(NodeImport& node, int64_t count) {
  const Expr from = reshape(operand(node, 0), {}), to = reshape(operand(node, 1), {}),
             by = reshape(operand(node, 2), {});
  const auto before = [&](int64_t i) {
    const Expr at = from + by * static_cast<double>(i);
    return select(less(0, by), less(at, to), less(to, at));
  };
  const Expr ends = apply(Op::Not, before(count));
  promise(node, count == 0 ? ends : apply(Op::And, before(count - 1), ends));
}

} // namespace

// start + i * delta while that is before limit. The count needs known arguments.
void import_range(NodeImport& node) {
  for (size_t i = 0; i < 3; ++i)
    if (element_count(node.shape(i)) != 1)
      node.invalid("start, limit and delta must be one number each");
  Expr start = reshape(operand(node, 0), {}), delta = reshape(operand(node, 2), {});
  int64_t count = 0;
  bool all_known = true;
  for (size_t i = 0; i < 3; ++i)
    all_known = all_known && known_floats(node.g, node.input(i));
  if (!all_known) {
    for (size_t i = 0; i < 3; ++i) node.unknown.push_back(node.input(i));
    if (!node.declared_shape(0)) {
      const Size size = range_size(node);
      count = size.bound;
      node.set_counts(0, {size.size.id});
    } else {
      count = declared_instead(node, 0, 0, 1)[0];
      promise_last(node, count);
    }
  } else if (is_float(start.dtype())) {
    double from = known_float(node, 0), to = known_float(node, 1),
           by = known_float(node, 2);
    if (by == 0) node.invalid("delta is 0");
    double steps = std::ceil((to - from) / by);
    if (!(steps < 1e9)) node.invalid("the range is not of a reasonable length");
    count = steps > 0 ? int64_t(steps) : 0;
  } else {
    int64_t from = known_int(node, 0), to = known_int(node, 1), by = known_int(node, 2);
    if (by == 0) node.invalid("delta is 0");
    if (by > 0 ? to > from : to < from) {
      __int128 span = static_cast<__int128>(to) - from;
      __int128 steps = (span + by + (by > 0 ? -1 : 1)) / by;
      if (steps > 1'000'000'000) node.invalid("the range is not of a reasonable length");
      count = static_cast<int64_t>(steps);
    }
  }
  // Half precision counts in the stash type, float before opset 27 named it.
  DType dtype = start.dtype(), stash = DType::F32;
  if (node.opset >= 27 && node.get_int("stash_type") != 1)
    stash = dtype_attribute(node, "stash_type", stash);
  DType wide = is_float(dtype) && byte_size(dtype) < 4 ? stash : dtype;
  Expr steps = convert(count_along(node.g, DType::I64, count, 0, 1), wide);
  give(node, 0, convert((convert(start, wide) + steps * convert(delta, wide)), dtype));
}

void import_eye_like(NodeImport& node) {
  if (node.rank(0) != 2) node.invalid("the input must have rank 2");
  DType dtype = dtype_attribute(node, "dtype", node.dtype(0));
  Expr row = count_along(node.g, DType::I64, node.shape(0)[0], 0, 2);
  Expr column = count_along(node.g, DType::I64, node.shape(0)[1], 1, 2);
  Expr diagonal = row + double(node.get_int("k"));
  give(node, 0, convert(equal(diagonal, column), dtype));
}

// Indices outside [-depth, depth) give a row of off values, as the specification says.
void import_one_hot(NodeImport& node) {
  Expr indices = operand(node, 0), values = operand(node, 2);
  int64_t axis = node.axis(node.get_int("axis"), indices.rank() + 1);
  auto depth = known_floats(node.g, node.input(1));
  if (!depth) {
    const Shape to = declared_instead(node, 1, 0, indices.rank() + 1);
    promise_values(node, 1, {to[static_cast<size_t>(axis)]});
    depth = {static_cast<double>(to[static_cast<size_t>(axis)])};
  }
  if (depth->size() != 1 || !(depth->front() >= 0 && depth->front() < 2e9))
    node.invalid("depth must be one positive number");
  if (values.shape() != Shape{2}) node.invalid("values must have two elements");
  auto count = static_cast<int64_t>(depth->front());
  Expr wide = convert(indices, DType::I64);
  wide = unsqueeze(select(less(wide, 0.0), wide + double(count), wide), axis);
  Expr classes =
      along(count_along(node.g, DType::I64, count, 0, 1), axis, indices.rank() + 1);
  Expr off = reshape(cut(values, 0, 0, 1), {}), on = reshape(cut(values, 0, 1, 1), {});
  give(node, 0, select(equal(wide, classes), on, off));
}

void import_hann_window(NodeImport& node) { cosine_window(node, 0.5, 0.5, 0); }

void import_hamming_window(NodeImport& node) {
  cosine_window(node, 25.0 / 46.0, 1.0 - 25.0 / 46.0, 0);
}

void import_blackman_window(NodeImport& node) { cosine_window(node, 0.42, 0.5, 0.08); }

// Triangles over the spectrum bins of a DFT, spaced evenly on the mel scale.
void import_mel_weight_matrix(NodeImport& node) {
  int64_t bands = known_int(node, 0), length = known_int(node, 1),
          rate = known_int(node, 2);
  double low = known_float(node, 3), high = known_float(node, 4);
  if (bands <= 0 || length <= 0 || rate <= 0) node.invalid("sizes must be positive");
  if (bands > 65536 || length > kMostValues || bands * length > kMostValues)
    node.unsupported("a matrix of this size");
  DType dtype = DType::F32;
  if (node.get_int("output_datatype") != 1)
    dtype = dtype_attribute(node, "output_datatype", dtype);
  int64_t bins = length / 2 + 1;
  auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  double low_mel = mel(low), step = (mel(high) - low_mel) / double(bands + 2);
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < bands + 2; ++i) {
    double hertz = 700 * (std::pow(10, (double(i) * step + low_mel) / 2595) - 1);
    edges.push_back(int64_t(std::floor(double(length + 1) * hertz / double(rate))));
  }
  std::vector<float> matrix(size_t(bins * bands), 0);
  auto set = [&](int64_t bin, int64_t band, double value) {
    if (bin >= 0 && bin < bins) matrix[size_t(bin * bands + band)] = float(value);
  };
  for (int64_t i = 0; i < bands; ++i) {
    int64_t left = edges[size_t(i)], top = edges[size_t(i) + 1],
            right = edges[size_t(i) + 2];
    if (left == top) set(top, i, 1);
    for (int64_t j = left; j <= top && left != top; ++j)
      set(j, i, double(j - left) / double(top - left));
    for (int64_t j = top; j < right && right != top; ++j)
      set(j, i, double(right - j) / double(right - top));
  }
  Expr y{&node.g, tensor_f32(node.g, {bins, bands}, matrix)};
  give(node, 0, convert(y, dtype));
}

} // namespace svod::importer
