// Backward operators of ONNX Runtime's training graphs. Each gives the gradient of its
// forward operator's input from that of its output; formulas as in any textbook, shapes
// as in com.microsoft's training schemas.
#include "importer/formula/formula.h"

#include <algorithm>
#include <numbers>

namespace svod::importer {

namespace {

struct Pair {
  Expr gradient, value;
};

// The gradient and the value of one shape that most of these operators take first.
Pair operands_of(NodeImport& node) {
  const Expr dy = wide(node, 0), x = wide(node, 1);
  require(node, dy.shape() == x.shape(), "the gradient has another shape than the value");
  return {dy, x};
}

// Before opset 13 all axes from `axis` on are one.
std::vector<int64_t> softmax_axes(NodeImport& node, int64_t rank) {
  const int64_t axis = node.axis(node.get_int("axis"), rank);
  const bool one = node.model_node.op_type.ends_with("_13");
  return axes_from(axis, one ? axis + 1 : rank);
}

Expr with_optional_bias(NodeImport& node, Expr x, size_t i) {
  if (!node.has_input(i)) return x;
  require_broadcast(node, node.shape(i), x.shape());
  return x + wide(node, i);
}

// The sum of `x` over the axes along which `shape` was broadcast to its own.
Expr summed_to(Expr x, const Shape& shape) {
  std::vector<int64_t> axes;
  const int64_t lead = x.rank() - static_cast<int64_t>(shape.size());
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    if (axis < lead || shape[static_cast<size_t>(axis - lead)] != extent(x, axis))
      axes.push_back(axis);
  return reshape(axes.empty() ? x : sum(x, axes), shape);
}

// Rows of zeros with `update` added at `index`, a flat list of rows.
Expr rows_added(Expr update, Expr index, int64_t rows) {
  Shape shape = update.shape();
  shape[0] = rows;
  const Expr zeros = with(update, constant(*update.g, update.dtype(), shape, 0));
  Shape column(update.shape().size(), 1);
  column[0] = extent(update, 0);
  const Expr at = broadcast(reshape(index, column), update.shape());
  return scatter(zeros, at, update, 0, Combiner::Add);
}

} // namespace

// Concat, and where asked the length of each input.
void import_concat_training(NodeImport& node) {
  require(node, node.input_count() > 0, "needs an input");
  const int64_t axis = node.axis(node.get_int("axis"), node.rank(0));
  std::vector<Expr> parts;
  std::vector<int64_t> lengths;
  for (size_t i = 0; i < node.input_count(); ++i) {
    const Expr part = operand(node, i);
    Shape expected = parts.empty() ? part.shape() : parts[0].shape();
    require(node, part.shape().size() == expected.size(), "ranks of the inputs differ");
    expected[static_cast<size_t>(axis)] = extent(part, axis);
    require(node, part.shape() == expected && part.dtype() == node.dtype(0),
            "the inputs do not fit");
    parts.push_back(part);
    lengths.push_back(extent(part, axis));
  }
  give(node, 0, join(parts, axis));
  if (node.wants_output(1))
    node.output(1, tensor_i64(node.g, {std::ssize(lengths)}, lengths));
}

void import_softmax_grad(NodeImport& node) {
  const auto [dy, y] = operands_of(node);
  finish(node, y * (dy - sum(dy * y, softmax_axes(node, y.rank()))));
}

void import_log_softmax_grad(NodeImport& node) {
  const auto [dy, y] = operands_of(node);
  finish(node, dy - exp(y) * sum(dy, softmax_axes(node, y.rank())));
}

void import_relu_grad(NodeImport& node) {
  const auto [dy, x] = operands_of(node);
  finish(node, select(less(like(x, 0), x), dy, like(dy, 0)));
}

void import_sigmoid_grad(NodeImport& node) {
  const auto [dy, y] = operands_of(node);
  finish(node, dy * y * (1.0 - y));
}

void import_tanh_grad(NodeImport& node) {
  const auto [dy, y] = operands_of(node);
  finish(node, dy * (1.0 - y * y));
}

// Phi(x) + x phi(x), of x or x + bias.
void import_gelu_grad(NodeImport& node) {
  const auto [dy, value] = operands_of(node);
  const Expr x = with_optional_bias(node, value, 2);
  const Expr density =
      exp(x * x * -0.5) * (std::numbers::inv_sqrtpi / std::numbers::sqrt2);
  const Expr share = (erf(x * (std::numbers::sqrt2 / 2)) + 1.0) * 0.5;
  finish(node, dy * (share + x * density));
}

// Of the form with tanh.
void import_fast_gelu_grad(NodeImport& node) {
  const auto [dy, value] = operands_of(node);
  const Expr x = with_optional_bias(node, value, 2);
  const double scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  const Expr t = tanh((x + x * x * x * 0.044715) * scale);
  const Expr inner = (x * x * (3 * 0.044715) + 1.0) * scale;
  finish(node, dy * ((t + 1.0) * 0.5 + x * 0.5 * (1.0 - t * t) * inner));
}

// Gradient, mask, ratio, training mode.
void import_dropout_grad(NodeImport& node) {
  const Expr dy = wide(node, 0), mask = operand(node, 1);
  require(node, mask.shape() == dy.shape() && mask.dtype() == DType::Bool,
          "the mask does not fit the gradient");
  const bool training = !node.has_input(3) || known_int(node, 3) != 0;
  const double ratio = !training ? 0 : node.has_input(2) ? known_float(node, 2) : 0.5;
  require(node, ratio >= 0 && ratio < 1, "the ratio is outside [0, 1)");
  if (ratio == 0) return node.output(0, node.input(0));
  finish(node, select(mask, dy / (1 - ratio), like(dy, 0)));
}

// Which axes of the common shape each of two shapes was broadcast along.
void import_broadcast_gradient_args(NodeImport& node) {
  const std::vector<int64_t> a = node.known_ints(0), b = node.known_ints(1);
  const size_t rank = std::max(a.size(), b.size());
  const auto extent_at = [&](const std::vector<int64_t>& shape, size_t axis) {
    const size_t lead = rank - shape.size();
    return axis < lead ? int64_t{1} : shape[axis - lead];
  };
  for (size_t which : {0, 1}) {
    std::vector<int64_t> axes;
    for (size_t axis = rank; axis-- > 0;) {
      const int64_t mine = extent_at(which == 0 ? a : b, axis);
      const int64_t other = extent_at(which == 0 ? b : a, axis);
      require(node, mine == other || mine == 1 || other == 1,
              "the shapes do not broadcast");
      if (mine == 1) axes.push_back(static_cast<int64_t>(axis));
    }
    if (node.wants_output(which))
      node.output(which, tensor_i64(node.g, {std::ssize(axes)}, axes));
  }
}

// Gradient, the input's shape, then starts, ends, axes and steps of the Slice.
void import_slice_grad(NodeImport& node) {
  const Expr dy = operand(node, 0);
  const Shape shape = node.known_ints(1);
  const auto rank = static_cast<int64_t>(shape.size());
  require(node, dy.rank() == rank, "the gradient has another rank than the input");
  const std::vector<int64_t> starts = node.known_ints(2);
  std::vector<int64_t> axes = axes_from(0, std::ssize(starts));
  if (node.has_input(4)) axes = node.known_ints(4);
  std::vector<int64_t> steps(starts.size(), 1);
  if (node.has_input(5)) steps = node.known_ints(5);
  require(node, axes.size() == starts.size() && steps.size() == starts.size(),
          "starts, axes and steps differ in length");
  Expr y = dy;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = node.axis(axes[i], rank), size = shape[axis];
    const int64_t count = extent(y, axis), step = steps[i];
    require(node, step != 0, "a step is 0");
    const int64_t last = step > 0 ? size : size - 1;
    int64_t at = starts[i] < 0 ? starts[i] + size : starts[i];
    at = std::clamp<int64_t>(at, 0, std::max<int64_t>(last, 0));
    Shape whole = y.shape();
    whole[static_cast<size_t>(axis)] = size;
    const Expr zeros = with(y, constant(node.g, y.dtype(), whole, 0));
    if (count == 0) {
      y = zeros;
      continue;
    }
    require(node, at + (count - 1) * step >= 0 && at + (count - 1) * step < size,
            "the gradient does not fit the slice");
    const Expr place =
        count_along(node.g, DType::I64, count, axis, rank) * static_cast<double>(step) +
        static_cast<double>(at);
    y = scatter(zeros, broadcast(place, y.shape()), y, axis, Combiner::Set);
  }
  require(node, y.shape() == shape, "the gradient does not fit the input's shape");
  give(node, 0, y);
}

// The input's shape, indices, gradient.
void import_gather_grad(NodeImport& node) {
  const Shape shape = node.known_ints(0);
  const Expr index = operand(node, 1), dy = wide(node, 2);
  const int64_t axis = node.axis(node.get_int("axis"), std::ssize(shape));
  const int64_t count = element_count(index.shape());
  Shape flat(shape.begin(), shape.begin() + axis), rows = flat;
  flat.push_back(count);
  flat.insert(flat.end(), shape.begin() + axis + 1, shape.end());
  require(node, element_count(flat) == element_count(dy.shape()),
          "the gradient does not fit the indices");
  const Expr zeros = with(dy, constant(node.g, dy.dtype(), shape, 0));
  Shape column(shape.size(), 1);
  column[static_cast<size_t>(axis)] = count;
  const Expr at = reshape(wrap_index(node, index, shape[axis]), column);
  const Expr y =
      scatter(zeros, broadcast(at, flat), reshape(dy, flat), axis, Combiner::Add);
  give(node, 0, convert(y, node.dtype(2)));
}

// Gradient, input, scale, mean and inverse deviation; gives those of input, scale, bias.
void import_layer_norm_grad(NodeImport& node) {
  const auto [dy, x] = operands_of(node);
  const int64_t axis = node.axis(node.get_int("axis"), x.rank());
  const std::vector<int64_t> axes = axes_from(axis, x.rank());
  for (size_t i : {2, 3, 4}) require_broadcast(node, node.shape(i), x.shape());
  const Expr normal = (x - wide(node, 3)) * wide(node, 4);
  const Expr scaled = dy * wide(node, 2);
  const Expr dx = (scaled - mean(scaled, axes) - normal * mean(scaled * normal, axes)) *
                  wide(node, 4);
  finish(node, dx);
  const Shape parameter = node.shape(2);
  const auto given = [&](size_t i, Expr value) {
    if (node.wants_output(i))
      give(node, i, convert(summed_to(value, parameter), node.dtype(2)));
  };
  given(1, dy * normal);
  given(2, dy);
}

// PyTorch's embedding, and its gradient: rows of the table, and the sum of the gradients
// of each row. padding_idx keeps a row from learning; scaling by frequency is rare.
void import_aten(NodeImport& node) {
  const std::string op = node.get_string("operator");
  if (op == "embedding") {
    const Expr table = operand(node, 0), index = operand(node, 1);
    require(node, table.rank() == 2, "the table must be a matrix");
    Shape shape = index.shape();
    shape.push_back(extent(table, 1));
    const Expr flat = reshape(wrap_index(node, index, extent(table, 0)),
                              {element_count(index.shape())});
    return give(node, 0, reshape(take(table, 0, flat), shape));
  }
  if (op != "embedding_backward") node.unsupported("ATen operator '" + op + "'");
  // Gradient, indices, the table, padding_idx, scale_grad_by_freq, sparse.
  if (node.has_input(4) && known_int(node, 4) != 0)
    node.unsupported("gradients scaled by frequency");
  const Expr dy = wide(node, 0), index = operand(node, 1);
  require(node,
          node.rank(2) == 2 && element_count(dy.shape()) ==
                                   element_count(index.shape()) * node.shape(2)[1],
          "gradient, indices and table do not fit");
  const int64_t count = element_count(index.shape());
  const Expr flat = reshape(wrap_index(node, index, node.shape(2)[0]), {count});
  Expr update = reshape(dy, {count, node.shape(2)[1]});
  if (node.has_input(3)) {
    const Expr hidden = equal(flat, static_cast<double>(known_int(node, 3)));
    update = select(unsqueeze(hidden, 1), like(update, 0), update);
  }
  give(node, 0, convert(rows_added(update, flat, node.shape(2)[0]), node.dtype(0)));
}

} // namespace svod::importer
