// Operators that only rename or repeat elements: reshapes, transposes, broadcasts, and
// those that answer a question about a shape. Shapes are static, so the answers are known
// values and the usual chain Shape -> Gather -> Concat -> Reshape leaves no node behind.
#include "importer/bounded/bounded_rules.h"
#include "importer/formula/movement.h"
#include "importer/formula/rule.h"

#include <algorithm>
#include <numeric>

namespace svod::importer {
namespace {

// The target of a Reshape: 0 copies the input's extent unless `zero_is_zero`, one -1 is
// inferred.
Shape reshaped(NodeImport& node, const Shape& from, Shape to, bool zero_is_zero) {
  std::optional<size_t> inferred;
  Shape others;
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i] == 0 && !zero_is_zero) {
      if (i >= from.size())
        node.invalid("shape copies an axis that the input does not have");
      to[i] = from[i];
    }
    if (to[i] < -1) node.invalid("shape has an extent below -1");
    if (to[i] == -1) {
      if (inferred) node.invalid("shape has more than one -1");
      inferred = i;
    } else {
      others.push_back(to[i]);
    }
  }
  int64_t count = element_count(from), rest = element_count(others);
  if (inferred) {
    if (rest == 0 || count % rest != 0)
      node.invalid("the extent of -1 cannot be inferred");
    to[*inferred] = count / rest;
    rest *= to[*inferred];
  }
  if (rest != count)
    node.invalid("cannot reshape " + shape_text(from) + " to " + shape_text(to));
  return to;
}

// To the shape that the model declares, where the axes or extents depend on its inputs.
void reshape_as_declared(NodeImport& node) {
  Shape to = declared_instead(node, 1, 0, -1);
  if (element_count(to) != element_count(node.shape(0)))
    node.invalid("the declared shape " + shape_text(to) +
                 " does not hold the elements of " + shape_text(node.shape(0)));
  node.output(0, reshape(node.g, node.input(0), to));
}

// Whether each entry of the run's shape is the declared extent, or stands for it: -1 for
// what is left, 0 for the input's.
void promise_shape(NodeImport& node, const Shape& to, bool zero_is_zero) {
  const auto count = static_cast<int64_t>(to.size());
  require(node, element_count(node.shape(1)) == count,
          "the declared shape has another rank than the run's");
  if (count == 0) return;
  const Shape& from = node.shape(0);
  std::vector<int64_t> zeros = to; // what stands for the extent, besides the extent
  for (size_t i = 0; i < to.size() && !zero_is_zero; ++i)
    if (i < from.size() && from[i] == to[i]) zeros[i] = 0;
  const Expr given = reshape(convert(operand(node, 1), DType::I64), {count});
  const Expr wanted{&node.g, tensor_i64(node.g, {count}, to)};
  const Expr zero{&node.g, tensor_i64(node.g, {count}, zeros)};
  const Expr stands = either(equal(given, zero), equal(given, -1));
  promise(node, all_true(either(equal(given, wanted), stands)));
}

void squeeze_to(NodeImport& node, std::vector<int64_t> axes) {
  const Shape& from = node.shape(0);
  std::vector<bool> drop(from.size(), false);
  if (axes.empty())
    for (size_t i = 0; i < from.size(); ++i) drop[i] = from[i] == 1;
  for (int64_t given : axes) {
    auto axis = static_cast<size_t>(node.axis(given, node.rank(0)));
    if (from[axis] != 1)
      node.invalid("axis " + std::to_string(axis) + " has extent " +
                   std::to_string(from[axis]) + ", only 1 can be squeezed");
    drop[axis] = true;
  }
  Shape to;
  for (size_t i = 0; i < from.size(); ++i)
    if (!drop[i]) to.push_back(from[i]);
  node.output(0, reshape(node.g, node.input(0), to));
}

void unsqueeze_to(NodeImport& node, const std::vector<int64_t>& axes) {
  const Shape& from = node.shape(0);
  auto rank = static_cast<int64_t>(from.size() + axes.size());
  std::vector<bool> added(static_cast<size_t>(rank), false);
  for (int64_t given : axes) {
    auto axis = static_cast<size_t>(node.axis(given, rank));
    if (added[axis]) node.invalid("axes names an axis twice");
    added[axis] = true;
  }
  Shape to;
  size_t next = 0;
  for (bool is_new : added) to.push_back(is_new ? 1 : from[next++]);
  node.output(0, reshape(node.g, node.input(0), to));
}

// How many axes of extent 1 stand in front of the first other axis, between it and the
// second, and so on.
std::vector<int64_t> runs_of_ones(const Shape& shape) {
  std::vector<int64_t> runs(1);
  for (int64_t extent : shape) {
    if (extent == 1)
      ++runs.back();
    else
      runs.push_back(0);
  }
  return runs;
}

// Whether the run's axes, input 1, lead from `longer` to `shorter` by leaving them out:
// which of several neighbours of extent 1 they name makes no difference.
void promise_axes(NodeImport& node, const Shape& longer, const Shape& shorter) {
  const int64_t count = element_count(node.shape(1)), rank = std::ssize(longer);
  require(node, count + std::ssize(shorter) == rank,
          "the declared shape has another rank than the run's");
  if (count == 0) return;
  std::vector<int64_t> left_out = runs_of_ones(longer), kept = runs_of_ones(shorter);
  require(node, left_out.size() == kept.size(), "the declared shape keeps other axes");
  for (size_t i = 0; i < kept.size(); ++i) left_out[i] -= kept[i];
  const int64_t runs = std::ssize(kept);
  std::vector<int64_t> member(static_cast<size_t>(runs * rank));
  for (int64_t axis = 0, run = 0; axis < rank; ++axis)
    if (longer[static_cast<size_t>(axis)] == 1)
      member[static_cast<size_t>(run * rank + axis)] = 1;
    else
      ++run;
  const Expr given = reshape(convert(operand(node, 1), DType::I64), {count, 1});
  const Expr from_front =
      broadcast(select(less(given, like(given, 0)), given + like(given, rank), given),
                {count, rank});
  const Expr places = count_along(node.g, DType::I64, rank, 1, 2);
  const Expr named = reduce(
      Op::ReduceMax,
      convert(equal(from_front, broadcast(places, {count, rank})), DType::I64), {0});
  const Expr members{&node.g, tensor_i64(node.g, {runs, rank}, member)};
  const Expr found = sum(broadcast(named, {runs, rank}) * members, {1});
  promise(node, all_true(equal(reshape(found, {runs}),
                               {&node.g, tensor_i64(node.g, {runs}, left_out)})));
}

// Repeats whole axes: [a, b] repeated [r, s] times is [1, a, 1, b] expanded to [r, a, s,
// b].
void tile_by(NodeImport& node, const std::vector<int64_t>& repeats) {
  const Shape& from = node.shape(0);
  if (repeats.size() != from.size()) node.invalid("repeats must have one entry per axis");
  Shape split, wide, to;
  for (size_t i = 0; i < from.size(); ++i) {
    within_reach(node, repeats[i], "an entry of repeats");
    split.insert(split.end(), {1, from[i]});
    wide.insert(wide.end(), {repeats[i], from[i]});
    to.push_back(repeats[i] * from[i]);
  }
  NodeId x = reshape(node.g, node.input(0), split);
  node.output(0, reshape(node.g, expand(node.g, x, wide), to));
}

} // namespace

void import_reshape_attribute(NodeImport& node) {
  Shape to = reshaped(node, node.shape(0), node.get_ints("shape"), false);
  node.output(0, reshape(node.g, node.input(0), to));
}

void import_reshape(NodeImport& node) {
  bool zero_is_zero = node.opset >= 14 && node.get_int("allowzero") != 0;
  auto wanted = ints_if_known(node, 1);
  if (!wanted && !node.declared_shape(0)) return bounded_reshape(node, nullptr);
  if (!wanted) {
    promise_shape(node, declared_instead(node, 1, 0, -1), zero_is_zero);
    return reshape_as_declared(node);
  }
  Shape to = reshaped(node, node.shape(0), *wanted, zero_is_zero);
  node.output(0, reshape(node.g, node.input(0), to));
}

void import_flatten(NodeImport& node) {
  const Shape& from = node.shape(0);
  int64_t axis = node.get_int("axis");
  int64_t rank = node.rank(0);
  if (axis < 0 && node.opset >= 11) axis += rank;
  if (axis < 0 || axis > rank) node.invalid("axis is outside the input's rank");
  Shape outer(from.begin(), from.begin() + axis), inner(from.begin() + axis, from.end());
  node.output(
      0, reshape(node.g, node.input(0), {element_count(outer), element_count(inner)}));
}

void import_squeeze_attribute(NodeImport& node) {
  squeeze_to(node, node.get_ints("axes"));
}

void import_squeeze(NodeImport& node) {
  if (!node.has_input(1)) return squeeze_to(node, {});
  if (auto axes = ints_if_known(node, 1)) return squeeze_to(node, *axes);
  promise_axes(node, node.shape(0), declared_instead(node, 1, 0, -1));
  reshape_as_declared(node);
}

void import_unsqueeze_attribute(NodeImport& node) {
  unsqueeze_to(node, node.get_ints("axes"));
}

void import_unsqueeze(NodeImport& node) {
  if (auto axes = ints_if_known(node, 1)) return unsqueeze_to(node, *axes);
  promise_axes(node, declared_instead(node, 1, 0, -1), node.shape(0));
  reshape_as_declared(node);
}

void import_transpose(NodeImport& node) {
  std::vector<int64_t> perm = node.get_ints("perm");
  auto rank = static_cast<size_t>(node.rank(0));
  if (!node.has("perm")) {
    perm.resize(rank);
    std::iota(perm.rbegin(), perm.rend(), 0);
  }
  for (int64_t& axis : perm) axis = node.axis(axis, node.rank(0));
  std::vector<int64_t> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  bool valid = sorted.size() == rank;
  for (size_t i = 0; i < sorted.size(); ++i)
    valid = valid && sorted[i] == static_cast<int64_t>(i);
  if (!valid) node.invalid("perm is not a permutation of the input's axes");
  node.output(0, permute(node.g, node.input(0), perm));
}

namespace {

// Entry i of the run's shape is the extent, or 1 where the input has the extent already.
void promise_expansion(NodeImport& node, const Shape& to) {
  const int64_t count = element_count(node.shape(1));
  require(node, count <= static_cast<int64_t>(to.size()),
          "the declared shape has another rank than the run's");
  const Shape& from = node.shape(0);
  Shape last(to.end() - count, to.end()), ones = last;
  for (size_t back = 1; back <= last.size(); ++back)
    if (back <= from.size() && from[from.size() - back] == last[last.size() - back])
      ones[last.size() - back] = 1;
  if (count == 0) return;
  const Expr given = reshape(convert(operand(node, 1), DType::I64), {count});
  promise(node,
          all_true(either(equal(given, {&node.g, tensor_i64(node.g, {count}, last)}),
                          equal(given, {&node.g, tensor_i64(node.g, {count}, ones)}))));
}

} // namespace

void import_expand(NodeImport& node) {
  auto known_shape = ints_if_known(node, 1);
  if (!known_shape && !node.declared_shape(0)) return bounded_expand(node, nullptr);
  Shape wanted = known_shape ? *known_shape : declared_instead(node, 1, 0, -1);
  const Shape& from = node.shape(0);
  Shape to(std::max(wanted.size(), from.size()), 1);
  for (size_t i = 0; i < to.size(); ++i) {
    size_t back = to.size() - i;
    int64_t have = back <= from.size() ? from[from.size() - back] : 1;
    int64_t want = back <= wanted.size() ? wanted[wanted.size() - back] : 1;
    if (want < 0 || (have != want && have != 1 && want != 1))
      node.invalid("cannot expand " + shape_text(from) + " to " + shape_text(wanted));
    to[i] = have == 1 ? want : have;
  }
  if (!known_shape) promise_expansion(node, to);
  node.output(0, broadcast_to(node.g, node.input(0), to));
}

void import_tile_one_axis(NodeImport& node) {
  std::vector<int64_t> tiles = node.known_ints(1), axis = node.known_ints(2);
  if (tiles.size() != 1 || axis.size() != 1)
    node.invalid("tiles and axis must be scalars");
  std::vector<int64_t> repeats(static_cast<size_t>(node.rank(0)), 1);
  repeats[static_cast<size_t>(node.axis(axis[0], node.rank(0)))] = tiles[0];
  tile_by(node, repeats);
}

void import_tile(NodeImport& node) {
  auto repeats = ints_if_known(node, 1);
  if (repeats) return tile_by(node, *repeats);
  if (!node.declared_shape(0)) return bounded_tile(node, nullptr);
  Shape to = declared_instead(node, 1, 0, node.rank(0));
  for (size_t i = 0; i < to.size(); ++i) {
    int64_t have = node.shape(0)[i];
    require(node, have > 0 && to[i] % have == 0,
            "the declared shape is not a repetition");
    to[i] /= have;
  }
  promise_values(node, 1, to);
  tile_by(node, to);
}

void import_shape(NodeImport& node) {
  const Shape& shape = node.shape(0);
  int64_t rank = node.rank(0), start = 0, end = rank;
  if (node.opset >= 15) {
    start = node.get_int("start");
    if (node.has("end")) end = node.get_int("end");
  }
  auto clamp = [&](int64_t i) {
    return std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank);
  };
  start = clamp(start);
  end = std::max(start, clamp(end));
  std::vector<int64_t> part(shape.begin() + start, shape.begin() + end);
  node.output(0, tensor_i64(node.g, {end - start}, part));
}

void import_size(NodeImport& node) {
  int64_t count = element_count(node.shape(0));
  node.output(0, constant_int(node.g, DType::I64, {}, count));
}

// Blocks of channels become space. DCR: the block index is the slow part of the channel,
// CRD: the fast one.
void import_depth_to_space(NodeImport& node) {
  Expr x = operand(node, 0);
  if (x.rank() != 4) node.invalid("the input must have rank 4");
  int64_t block = node.get_int("blocksize");
  int64_t n = extent(x, 0), c = extent(x, 1), h = extent(x, 2), w = extent(x, 3);
  if (block <= 0 || block > c || c % (block * block) != 0)
    node.invalid("channels must be a multiple of blocksize squared");
  std::string mode = node.opset >= 11 ? node.get_string("mode") : "DCR";
  int64_t rest = c / (block * block);
  if (mode == "DCR")
    x = permute(reshape(x, {n, block, block, rest, h, w}), {0, 3, 4, 1, 5, 2});
  else if (mode == "CRD")
    x = permute(reshape(x, {n, rest, block, block, h, w}), {0, 1, 4, 2, 5, 3});
  else
    node.invalid("mode '" + mode + "' is not one of DCR, CRD");
  give(node, 0, reshape(x, {n, rest, h * block, w * block}));
}

void import_space_to_depth(NodeImport& node) {
  Expr x = operand(node, 0);
  if (x.rank() != 4) node.invalid("the input must have rank 4");
  int64_t block = node.get_int("blocksize");
  int64_t n = extent(x, 0), c = extent(x, 1), h = extent(x, 2), w = extent(x, 3);
  if (block <= 0 || block > 65536 || h % block != 0 || w % block != 0)
    node.invalid("height and width must be multiples of blocksize");
  std::string mode = node.opset >= 28 ? node.get_string("mode") : "DCR";
  x = reshape(x, {n, c, h / block, block, w / block, block});
  if (mode == "DCR")
    x = permute(x, {0, 3, 5, 1, 2, 4});
  else if (mode == "CRD")
    x = permute(x, {0, 1, 3, 5, 2, 4});
  else
    node.invalid("mode '" + mode + "' is not one of DCR, CRD");
  give(node, 0, reshape(x, {n, c * block * block, h / block, w / block}));
}

} // namespace svod::importer
