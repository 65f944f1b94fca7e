// The table of bounded tensors, and what rules need to work with them.
#include "importer/bounded.h"

#include "importer/fixed_inputs.h"
#include "importer/value_range.h"

#include <algorithm>
#include <cmath>

namespace svod {

NodeId BoundTable::add(Graph& g, NodeId x, const Counts& counts) {
  if (tidy(counts).empty()) return x;
  const Expr tensor{&g, x};
  Expr mask = number(g, DType::Bool, 1);
  for (int64_t axis = 0; axis < tensor.rank(); ++axis) {
    const NodeId count = counts[static_cast<size_t>(axis)];
    if (count == kNoNode) continue;
    mask =
        both(mask, along(meant({&g, count}, extent(tensor, axis)), axis, tensor.rank()));
  }
  mask = broadcast(mask, tensor.shape());
  // Interned as it stands: the builder would see that both choices are equal.
  const NodeId id =
      g.intern({Op::Select, tensor.dtype(), tensor.shape(), {}, {mask.id, x, x}});
  bounded_.insert_or_assign(id, Bounded{x, counts});
  return id;
}

Counts tidy(Counts counts) {
  if (std::ranges::all_of(counts, [](NodeId id) { return id == kNoNode; })) return {};
  return counts;
}

Expr size_along(NodeImport& node, size_t input, int64_t axis) {
  const NodeId count = count_along(node, input, axis);
  if (count != kNoNode) return {&node.g, count};
  return number(node.g, DType::I64,
                static_cast<double>(node.shape(input)[static_cast<size_t>(axis)]));
}

Expr meant(Expr count, int64_t extent) {
  return less(count_along(*count.g, DType::I64, extent, 0, 1), count);
}

Expr masked(Expr x, const Counts& counts, const std::vector<int64_t>& axes, Expr fill) {
  if (counts.empty()) return x;
  for (int64_t axis : axes) {
    const NodeId count = counts[static_cast<size_t>(axis)];
    if (count == kNoNode) continue;
    const Expr mask = along(meant({x.g, count}, extent(x, axis)), axis, x.rank());
    x = select(mask, x, fill);
  }
  return x;
}

Expr masked(Expr x, const Counts& counts, double fill) {
  return masked(x, counts, axes_from(0, x.rank()), number(*x.g, x.dtype(), fill));
}

Expr neutral(Graph& g, Op reduction, DType dtype) {
  const Expr none{&g, constant(g, dtype, {0}, 0)};
  return reshape(reduce(reduction, none, {0}), {});
}

Expr checked(Expr count, Expr condition) {
  const Expr place = if_kept(condition, number(*count.g, DType::I64, 0));
  return reshape(gather(reshape(count, {1}), reshape(place, {1}), 0), {});
}

// Whether a size comes from bounds and counts that are inputs, not from what a mask or a
// comparison found in data.
static bool decided_by_numbers(const Graph& g, NodeId count) {
  const std::set<std::string> names = deciding_inputs(g, count);
  for (const GraphInput& input : g.inputs())
    if (names.contains(input.name) &&
        (!is_integer(g[input.node].dtype) || g[input.node].shape.size() > 1))
      return false;
  return !names.empty();
}

void refuse_bounded(const NodeImport& node, size_t input, int64_t axis) {
  const NodeId count = count_along(node, input, axis);
  std::string maker;
  if (count != kNoNode && !node.g.sources(count).empty())
    maker =
        ", as '" +
        escaped(
            node.g.source_names()[static_cast<size_t>(node.g.sources(count).front())]) +
        "' finds it,";
  if (count != kNoNode && decided_by_numbers(node.g, count))
    node.unknown.push_back(count);
  node.unsupported("the size of input " + std::to_string(input) + " along axis " +
                   std::to_string(axis) + maker +
                   " depends on data, which is not supported for this operator and axis");
}

int64_t upper_bound(NodeImport& node, Expr number) {
  const std::optional<ValueRange> range = range_of(node.g, number.id);
  constexpr double kMostExtent = 1 << 24;
  if (!range || range->high > kMostExtent)
    node.needs_value_of(number.id,
                        "a size depends on the model's inputs and has no bound");
  return static_cast<int64_t>(std::max(std::floor(range->high), 0.0));
}

// The place of the i-th true element is where the running sum reaches i + 1: every true
// element writes its own place there, the others write into one more slot.
Places true_places(Expr condition) {
  Graph& g = *condition.g;
  const int64_t n = extent(condition, 0);
  const Expr ones = convert(condition, DType::I64);
  const Expr count = reshape(sum(ones, {0}), {});
  if (n == 0) return {with(condition, constant(g, DType::I64, {0}, 0)), count};
  const Expr running{&g, scan(g, Op::ScanSum, ones.id, 0)};
  const Expr slot = select(condition, running - 1.0, like(running, double(n)));
  const Expr zeros{&g, constant(g, DType::I64, {n + 1}, 0)};
  const Expr places =
      scatter(zeros, slot, count_along(g, DType::I64, n, 0, 1), 0, Combiner::Set);
  return {cut(places, 0, 0, n), count};
}

Size known_size(Graph& g, int64_t extent) {
  return {number(g, DType::I64, static_cast<double>(extent)), extent};
}

std::vector<Size> sizes_of(NodeImport& node, size_t input) {
  std::vector<Size> sizes;
  for (int64_t axis = 0; axis < node.rank(input); ++axis)
    sizes.push_back(
        {size_along(node, input, axis), node.shape(input)[static_cast<size_t>(axis)]});
  return sizes;
}

void give_bounded(NodeImport& node, size_t out, Expr x, const std::vector<Size>& sizes) {
  Counts counts;
  for (const Size& size : sizes)
    counts.push_back(known(size.size) ? kNoNode : size.size.id);
  give(node, out, x);
  node.set_counts(out, tidy(counts));
}

} // namespace svod
