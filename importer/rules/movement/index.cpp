// Gathers, scatters and orderings. The graph has one gather and one scatter, along an
// axis; the N-dimensional forms flatten the indexed axes into one and turn index tuples
// into positions.
#include "importer/bounded/bounded_rules.h"
#include "importer/formula/movement.h"

#include <algorithm>
#include <numeric>

namespace svod::importer {
namespace {

int64_t product(const Shape& shape, int64_t first, int64_t last) {
  return std::accumulate(shape.begin() + first, shape.begin() + last, int64_t{1},
                         std::multiplies<>());
}

// x as if it had the extents of `like` on all axes but `axis`: the corner at the origin.
Expr corner(Expr x, const Shape& like, int64_t axis) {
  Shape extents = like;
  extents[static_cast<size_t>(axis)] = extent(x, axis);
  if (extents == x.shape()) return x;
  return slice(x, Shape(extents.size(), 0), Shape(extents.size(), 1), extents);
}

void check_index_type(NodeImport& node, Expr index) {
  require(node, index.dtype() == DType::I32 || index.dtype() == DType::I64,
          "indices must be int32 or int64");
}

// Index tuples (the last axis of `index`) as row-major positions in a tensor of shape
// `axes`. A tuple with any part outside its axis becomes a position outside the tensor,
// so that flattening hides no error from the check at run time.
Expr positions_of(NodeImport& node, Expr index, const Shape& axes) {
  int64_t last = index.rank() - 1;
  Expr position = number(node.g, DType::I64, 0), valid = number(node.g, DType::Bool, 1);
  for (size_t i = 0; i < axes.size(); ++i) {
    Expr part =
        convert(squeeze(cut(index, last, static_cast<int64_t>(i), 1), last), DType::I64);
    Expr wrapped = wrap_index(node, part, axes[i]);
    position = position * static_cast<double>(axes[i]) + wrapped;
    if (axes.size() > 1 && !known(part)) {
      Expr limit = like(wrapped, static_cast<double>(axes[i]));
      valid =
          both(valid, both(less_equal(like(wrapped, 0), wrapped), less(wrapped, limit)));
    }
  }
  Expr outside = number(node.g, DType::I64, static_cast<double>(element_count(axes)));
  Expr checked = select(valid, position, outside);
  Shape shape(index.shape().begin(), index.shape().end() - 1);
  return broadcast(checked, shape);
}

Combiner combiner_attribute(NodeImport& node) {
  if (node.opset < 16 || !node.has("reduction")) return Combiner::Set;
  std::string how = node.get_string("reduction");
  if (how == "none") return Combiner::Set;
  if (how == "add") return Combiner::Add;
  if (how == "mul") return Combiner::Mul;
  if (how == "min" && node.opset >= 18) return Combiner::Min;
  if (how == "max" && node.opset >= 18) return Combiner::Max;
  node.invalid("reduction '" + how + "' is not one the specification names");
}

void top_k(NodeImport& node, int64_t k, bool largest) {
  Expr x = operand(node, 0);
  int64_t axis = node.axis(node.get_int("axis"), x.rank());
  if (k < 0 || k > extent(x, axis)) node.invalid("k is larger than the axis");
  // A sorted result is allowed where the order is left open.
  Expr order = with(x, argsort(node.g, x.id, axis, largest, k));
  if (node.wants_output(0)) give(node, 0, gather(x, order, axis));
  if (node.output_count() > 1) give(node, 1, order);
}

} // namespace

void import_gather(NodeImport& node) {
  Expr x = operand(node, 0), index = operand(node, 1);
  check_index_type(node, index);
  int64_t axis = node.axis(node.get_int("axis"), x.rank());
  give(node, 0, take_shaped(x, axis, wrap_index(node, index, extent(x, axis))));
}

void import_gather_elements(NodeImport& node) {
  Expr x = operand(node, 0), index = operand(node, 1);
  check_index_type(node, index);
  require(node, x.rank() == index.rank(), "data and indices must have equal ranks");
  int64_t axis = node.axis(node.get_int("axis"), x.rank());
  for (int64_t i = 0; i < x.rank(); ++i)
    require(node, i == axis || extent(index, i) <= extent(x, i),
            "indices are larger than data");
  index = wrap_index(node, index, extent(x, axis));
  give(node, 0, gather(corner(x, index.shape(), axis), index, axis));
}

void import_gather_nd(NodeImport& node) {
  Expr x = operand(node, 0), index = operand(node, 1);
  int64_t batch = node.opset >= 12 ? node.get_int("batch_dims") : 0;
  require(node, index.rank() >= 1 && x.rank() >= 1, "data and indices need an axis");
  int64_t width = index.shape().back();
  require(node, batch >= 0 && batch < index.rank() && batch + width <= x.rank(),
          "batch_dims or the last extent of indices do not fit data");
  require(node,
          std::equal(x.shape().begin(), x.shape().begin() + batch, index.shape().begin()),
          "batch extents of data and indices differ");
  Shape axes(x.shape().begin() + batch, x.shape().begin() + batch + width);
  Expr position = positions_of(node, index, axes);
  int64_t batches = product(x.shape(), 0, batch), space = element_count(axes);
  int64_t rest = product(x.shape(), batch + width, x.rank());
  int64_t count = product(index.shape(), batch, index.rank() - 1);
  Expr flat = reshape(x, {batches, space, rest});
  Expr where = broadcast(reshape(position, {batches, count, 1}), {batches, count, rest});
  Shape to(index.shape().begin(), index.shape().end() - 1);
  to.insert(to.end(), x.shape().begin() + batch + width, x.shape().end());
  give(node, 0, reshape(gather(flat, where, 1), to));
}

void import_scatter_elements(NodeImport& node) {
  Expr x = operand(node, 0), index = operand(node, 1), update = operand(node, 2);
  check_index_type(node, index);
  require(node, x.rank() == index.rank() && index.shape() == update.shape(),
          "data, indices and updates must have equal ranks, the last two equal shapes");
  int64_t axis = node.axis(node.get_int("axis"), x.rank());
  index = wrap_index(node, index, extent(x, axis));
  Combiner how = combiner_attribute(node);
  Shape whole = index.shape();
  whole[static_cast<size_t>(axis)] = extent(x, axis);
  if (whole == x.shape()) return give(node, 0, scatter(x, index, update, axis, how));
  // Indices smaller than data on other axes: scatter into the flattened tensor instead.
  Expr position = number(node.g, DType::I64, 0);
  for (int64_t i = 0; i < x.rank(); ++i) {
    require(node, i == axis || extent(index, i) <= extent(x, i),
            "indices are larger than data");
    Expr at = i == axis ? convert(index, DType::I64)
                        : count_along(node.g, DType::I64, extent(index, i), i, x.rank());
    position = position * static_cast<double>(extent(x, i)) + at;
  }
  int64_t size = element_count(x.shape()), count = element_count(index.shape());
  Expr limit = like(index, static_cast<double>(extent(x, axis)));
  Expr outside = number(node.g, DType::I64, static_cast<double>(size));
  position = reshape(select(less(index, limit), position, outside), {count});
  Expr y = scatter(reshape(x, {size}), position, reshape(update, {count}), 0, how);
  give(node, 0, reshape(y, x.shape()));
}

void import_scatter_nd(NodeImport& node) {
  Expr x = operand(node, 0), index = operand(node, 1), update = operand(node, 2);
  require(node, index.rank() >= 1 && index.shape().back() <= x.rank(),
          "the last extent of indices does not fit data");
  int64_t width = index.shape().back();
  Shape axes(x.shape().begin(), x.shape().begin() + width);
  Shape expected(index.shape().begin(), index.shape().end() - 1);
  int64_t count = element_count(expected);
  expected.insert(expected.end(), x.shape().begin() + width, x.shape().end());
  require(node, update.shape() == expected, "updates do not fit data and indices");
  int64_t space = element_count(axes), rest = product(x.shape(), width, x.rank());
  Expr where = reshape(positions_of(node, index, axes), {count, 1});
  Expr y = scatter(reshape(x, {space, rest}), broadcast(where, {count, rest}),
                   reshape(update, {count, rest}), 0, combiner_attribute(node));
  give(node, 0, reshape(y, x.shape()));
}

// Writes `update` into the cache at write_indices[batch] along the axis, wrapping when
// circular.
void import_tensor_scatter(NodeImport& node) {
  Expr cache = operand(node, 0), update = operand(node, 1);
  int64_t axis = node.axis(node.get_int("axis"), cache.rank());
  std::string mode = node.get_string("mode");
  require(node, mode == "linear" || mode == "circular", "mode is not linear or circular");
  Shape expected = cache.shape();
  require(node, update.rank() == cache.rank() && axis > 0,
          "update does not fit the cache");
  expected[static_cast<size_t>(axis)] = extent(update, axis);
  require(node, update.shape() == expected && extent(update, axis) <= extent(cache, axis),
          "update does not fit the cache");
  Expr index = count_along(node.g, DType::I64, extent(update, axis), axis, cache.rank());
  if (node.has_input(2)) {
    Expr start = convert(operand(node, 2), DType::I64);
    require(node, start.shape() == Shape{extent(cache, 0)},
            "write_indices has a wrong shape");
    index = index + along(start, 0, cache.rank());
  }
  if (mode == "circular")
    index = apply(Op::Mod, index, like(index, static_cast<double>(extent(cache, axis))));
  index = broadcast(index, update.shape());
  give(node, 0, scatter(cache, index, update, axis, Combiner::Set));
}

void import_top_k_attribute(NodeImport& node) { top_k(node, node.get_int("k"), true); }

void import_top_k(NodeImport& node) {
  auto k = ints_if_known(node, 1);
  if (k && k->size() != 1) node.invalid("K must be one number");
  int64_t axis = node.axis(node.get_int("axis"), node.rank(0));
  if (!k && !node.declared_shape(0) && !node.declared_shape(1))
    return bounded_top_k(node, nullptr);
  size_t out = node.declared_shape(0) ? 0 : 1;
  if (!k) {
    k = {declared_instead(node, 1, out, node.rank(0))[static_cast<size_t>(axis)]};
    promise_values(node, 1, *k);
  }
  top_k(node, k->front(), node.opset < 11 || node.get_int("largest") != 0);
}

void import_compress(NodeImport& node) {
  Expr x = operand(node, 0), condition = operand(node, 1);
  int64_t axis = 0;
  if (node.has("axis"))
    axis = node.axis(node.get_int("axis"), x.rank());
  else
    x = reshape(x, {element_count(x.shape())});
  require(node, condition.rank() == 1 && extent(condition, 0) <= extent(x, axis),
          "condition is longer than the axis");
  if (!ints_if_known(node, 1)) {
    if (!node.declared_shape(0)) return bounded_compress(node, nullptr);
    Shape to = declared_instead(node, 1, 0, x.rank());
    return give(
        node, 0,
        take(x, axis, true_positions(node, condition, to[static_cast<size_t>(axis)])));
  }
  std::vector<int64_t> keep = node.known_ints(1), positions;
  for (size_t i = 0; i < keep.size(); ++i)
    if (keep[i]) positions.push_back(static_cast<int64_t>(i));
  give(node, 0, take(x, axis, positions));
}

// One row of coordinates per axis. How many elements are not zero is known, declared, or
// found by the run.
void import_non_zero(NodeImport& node) {
  Expr x = operand(node, 0);
  int64_t size = element_count(x.shape());
  Expr found = reshape(x, {size});
  Expr set = found.dtype() == DType::Bool ? found : apply(Op::Not, equal(found, 0.0));
  if (auto values = known_ints(node.g, set.id)) {
    std::vector<int64_t> positions;
    for (int64_t i = 0; i < size; ++i)
      if ((*values)[static_cast<size_t>(i)]) positions.push_back(i);
    Shape count{static_cast<int64_t>(positions.size())};
    found = {&node.g, tensor_i64(node.g, count, positions)};
  } else {
    if (!node.declared_shape(0)) return bounded_non_zero(node, nullptr);
    found = true_positions(node, set, declared_instead(node, 0, 0, 2)[1]);
  }
  Shape strides = row_major_strides(x.shape());
  std::vector<Expr> rows;
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    Expr at = found / static_cast<double>(strides[static_cast<size_t>(axis)]);
    at = apply(Op::Mod, at, like(at, static_cast<double>(extent(x, axis))));
    rows.push_back(unsqueeze(at, 0));
  }
  if (rows.empty()) node.unsupported("NonZero of a scalar");
  give(node, 0, join(rows, 0));
}

} // namespace svod::importer
