// The table of bounded tensors, and what rules need to work with them.
#include "importer/bounded/bounded.h"

#include "importer/formula/deciding_inputs.h"
#include "importer/formula/value_range.h"

#include <algorithm>
#include <cmath>

namespace svod::importer {

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

Expr mean_of_meant(Expr x, const Counts& counts, const std::vector<int64_t>& axes) {
  const auto is_open = [&](int64_t axis) {
    return !counts.empty() && counts[static_cast<size_t>(axis)] != kNoNode;
  };
  if (std::ranges::none_of(axes, is_open)) return mean(x, axes);
  Expr there = number(*x.g, x.dtype(), 1);
  for (int64_t axis : axes) {
    if (!is_open(axis))
      there = there * static_cast<double>(extent(x, axis));
    else
      there =
          there * convert(Expr{x.g, counts[static_cast<size_t>(axis)]}, there.dtype());
  }
  return sum(masked(x, counts, axes, like(there, 0)), axes) / there;
}

Expr neutral(Graph& g, Op reduction, DType dtype) {
  const Expr none{&g, constant(g, dtype, {0}, 0)};
  return reshape(reduce(reduction, none, {0}), {});
}

// Sizes of the run that are compared are often one and the same.
static bool always_holds(Expr condition) {
  const Node& node = (*condition.g)[condition.id];
  return node.op == Op::Equal && node.inputs[0] == node.inputs[1] &&
         is_integer((*condition.g)[node.inputs[0]].dtype);
}

Expr checked(Expr count, Expr condition) {
  if (always_holds(condition)) return count;
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
  const std::string why =
      "the size of input " + std::to_string(input) + " along axis " +
      std::to_string(axis) + maker +
      " depends on data, which is not supported for this operator and axis";
  if (count != kNoNode && decided_by_numbers(node.g, count))
    node.needs_value_of(count, why);
  node.unsupported(why);
}

// The arithmetic of a range does not round as the run's floats do.
static int64_t with_rounding(double high) {
  return static_cast<int64_t>(std::floor(high + 1e-5 * std::max(1.0, std::fabs(high))));
}

Size bounded_size(NodeImport& node, Expr size) {
  const Expr same{&node.g, simplest(node.g, size.id)};
  if (const auto value = known_ints(node.g, same.id); value && value->front() >= 0)
    return known_size(node.g, value->front());
  constexpr auto kMost = static_cast<double>(kMostExtent);
  const auto exact = range_of(node, size);
  if (exact && exact->low >= 0 && exact->high <= kMost) {
    const auto most = static_cast<int64_t>(exact->high);
    return exact->low == exact->high ? known_size(node.g, most) : Size{size, most};
  }
  const auto range = range_of(node, size, Trust::Floats);
  const bool free = !range || range->high > kMost;
  if (free && node.size_limit <= 0)
    node.needs_value_of(size.id, "a size depends on the model's inputs and has no bound "
                                 "(--limit-size N gives it one)");
  const int64_t bound =
      free ? node.size_limit : std::max<int64_t>(with_rounding(range->high), 0);
  const Expr most = like(size, static_cast<double>(bound));
  return {checked(size, both(less_equal(like(size, 0), size), less_equal(size, most))),
          bound};
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

namespace {

// One of the axes, with its extent and count.
struct Aligned {
  size_t input;
  int64_t axis, extent;
  NodeId count;
};

// Cuts an input to other elements along an axis; its other counts stay.
void cut_input(NodeImport& node, const Aligned& at, Expr x, NodeId count) {
  Counts counts = node.counts(at.input);
  counts[static_cast<size_t>(at.axis)] = count;
  node.replace_input(at.input, x.id);
  node.input_counts[at.input] = tidy(std::move(counts));
}

// All to one known extent.
void cut_to(NodeImport& node, const std::vector<Aligned>& bounded, int64_t extent) {
  for (const Aligned& at : bounded) {
    const Expr kept = equal(Expr{&node.g, at.count}, static_cast<double>(extent));
    const Expr places = if_kept(kept, count_along(node.g, DType::I64, extent, 0, 1));
    cut_input(node, at, take(operand(node, at.input), at.axis, places), kNoNode);
  }
}

} // namespace

NodeId agreed_count(NodeImport& node, const std::vector<InputAxis>& axes,
                    bool broadcasts) {
  std::vector<Aligned> bounded;
  std::optional<int64_t> fixed;
  int64_t least = INT64_MAX, most = 0;
  for (const auto& [input, axis] : axes) {
    const int64_t extent = node.shape(input)[static_cast<size_t>(axis)];
    const NodeId count = count_along(node, input, axis);
    if (count == kNoNode) {
      if (!broadcasts || extent != 1) fixed = extent;
      continue;
    }
    bounded.push_back({input, axis, extent, count});
    least = std::min(least, extent);
    most = std::max(most, extent);
  }
  if (bounded.empty()) return kNoNode;
  if ((fixed && least < *fixed) || (broadcasts && least == 1 && most != 1))
    refuse_bounded(node, bounded[0].input, bounded[0].axis);
  if (fixed) { // which says how many
    cut_to(node, bounded, *fixed);
    return kNoNode;
  }
  Expr count{&node.g, bounded[0].count};
  for (const Aligned& at : bounded)
    if (at.count != bounded[0].count)
      count = checked(count, equal(count, Expr{&node.g, at.count}));
  // From here on the inputs have the count that was looked at: what masks them looks too.
  for (const Aligned& at : bounded)
    cut_input(node, at, cut(operand(node, at.input), at.axis, 0, least), count.id);
  return count.id;
}

void agree_on_groups(NodeImport& node,
                     const std::vector<std::vector<InputAxis>>& groups) {
  const auto has = [&](const InputAxis& of) {
    return node.has_input(of.input) && of.axis < node.rank(of.input);
  };
  for (size_t i = 0; i < node.input_count(); ++i)
    for (int64_t axis = 0; node.has_input(i) && axis < node.rank(i); ++axis) {
      const auto is_this = [&](const InputAxis& of) {
        return of.input == i && of.axis == axis;
      };
      if (count_along(node, i, axis) != kNoNode &&
          std::ranges::none_of(
              groups, [&](const auto& of) { return std::ranges::any_of(of, is_this); }))
        refuse_bounded(node, i, axis);
    }
  for (const std::vector<InputAxis>& group : groups) {
    std::vector<InputAxis> given;
    std::ranges::copy_if(group, std::back_inserter(given), has);
    agreed_count(node, given, false);
  }
}

std::optional<Expr> written_behind(NodeImport& node, size_t input, int64_t axis,
                                   Expr rows, Expr offset, int64_t bound) {
  const RoomBehind* room =
      node.has_input(input) ? node.bounds->room_behind(node.input(input)) : nullptr;
  if (!room || room->axis != axis) return std::nullopt;
  const int64_t added = extent(rows, axis);
  node.bounds->note_added(added);
  if (added > room->room) return std::nullopt; // imported again with more
  const Expr all = convert(Expr{&node.g, room->all}, rows.dtype());
  return cut(written_at(all, rows, offset, axis), axis, 0, bound);
}

void zero_beyond(NodeImport& node, size_t input) {
  if (!node.has_input(input) || node.counts(input).empty()) return;
  Counts counts = node.counts(input);
  node.replace_input(input, masked(operand(node, input), counts, 0).id);
  node.input_counts[input] = std::move(counts);
}

Shape bounds_of(const std::vector<Size>& sizes) {
  Shape shape;
  for (const Size& size : sizes) shape.push_back(size.bound);
  return shape;
}

Size known_size(Graph& g, int64_t extent) {
  return {number(g, DType::I64, static_cast<double>(extent)), extent};
}

namespace {

struct Element {
  NodeId node;
  int64_t at; // row-major
};

std::vector<int64_t> coordinates(const Shape& shape, int64_t at) {
  std::vector<int64_t> out(shape.size());
  for (size_t axis = shape.size(); axis-- > 0; at /= shape[axis])
    out[axis] = at % shape[axis];
  return out;
}

int64_t position(const Shape& shape, const std::vector<int64_t>& place) {
  int64_t at = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) at = at * shape[axis] + place[axis];
  return at;
}

// Where a joined or cut list has an element from; none at any other node.
std::optional<Element> source_of(const Graph& g, Element element) {
  const Node& node = g[element.node];
  if (node.op == Op::Reshape) return Element{node.inputs[0], element.at};
  std::vector<int64_t> place = coordinates(node.shape, element.at);
  if (node.op == Op::Slice) {
    const size_t rank = place.size();
    for (size_t i = 0; i < rank; ++i)
      place[i] = node.payload[i] + place[i] * node.payload[rank + i];
    return Element{node.inputs[0], position(g[node.inputs[0]].shape, place)};
  }
  if (node.op == Op::Gather && place.size() == 1 && g[node.inputs[0]].shape.size() == 1) {
    const auto from = known_ints(g, node.inputs[1]);
    const int64_t at = from ? (*from)[static_cast<size_t>(element.at)] : -1;
    if (at < 0 || at >= g[node.inputs[0]].shape[0]) return std::nullopt;
    return Element{node.inputs[0], at};
  }
  if (node.op == Op::Select) {
    const auto test = range_of(g, node.inputs[0], element.at);
    if (!test || test->low != test->high) return std::nullopt;
    return Element{node.inputs[test->low != 0 ? 1 : 2], element.at};
  }
  if (node.op == Op::Cast && is_integer(node.dtype) &&
      is_integer(g[node.inputs[0]].dtype)) {
    const auto range = range_of(g, node.inputs[0], element.at);
    constexpr double kNarrow = 1 << 24; // every type of sizes holds these
    if (!range || range->low < 0 || range->high > kNarrow || byte_size(node.dtype) < 4)
      return std::nullopt;
    return Element{node.inputs[0], element.at};
  }
  if (node.op != Op::Concat) return std::nullopt;
  const auto axis = static_cast<size_t>(node.payload[0]);
  for (NodeId part : node.inputs) {
    const Shape& shape = g[part].shape;
    if (place[axis] < shape[axis]) return Element{part, position(shape, place)};
    place[axis] -= shape[axis];
  }
  return std::nullopt;
}

// Of a sum or a product of two, the one that is not this size; kNoNode: none is.
NodeId other_operand(Graph& g, NodeId of, NodeId one) {
  const Node at = g[of];
  for (int i : {0, 1})
    if (simplest(g, at.inputs[i]) == one) return at.inputs[1 - i];
  return kNoNode;
}

// The operand that max(n, 0) of what is never less, n - 0 and n / 1 are equal to, or the
// n of n * m / m and of n + m - m; kNoNode: none is.
NodeId equal_operand(Graph& g, NodeId size) {
  const Node at = g[size];
  if (at.inputs.size() != 2) return kNoNode;
  const NodeId left = at.inputs[0], right = at.inputs[1];
  const auto is = [&](NodeId id, int64_t value) {
    const auto known = known_ints(g, id);
    return known && known->front() == value;
  };
  const bool minus = at.op == Op::Sub, over = at.op == Op::Div;
  if ((at.op == Op::Add || minus) && is(right, 0)) return left;
  if ((at.op == Op::Mul || over) && is(right, 1)) return left;
  if ((at.op == Op::Add && is(left, 0)) || (at.op == Op::Mul && is(left, 1)))
    return right;
  if (over || minus) {
    const NodeId whole = simplest(g, left), part = simplest(g, right);
    // A product may not wrap; a sum may.
    if (minus && whole == part) return number(g, DType::I64, 0).id;
    if (minus && g[whole].op == Op::Add) return other_operand(g, whole, part);
    const auto divisor = range_of(g, part);
    if (over && g[whole].op == Op::Mul && divisor && divisor->low >= 1 &&
        range_of(g, whole))
      return other_operand(g, whole, part);
    return kNoNode;
  }
  if (at.op != Op::Max && at.op != Op::Min) return kNoNode;
  const NodeId first = simplest(g, left), second = simplest(g, right);
  const auto a = range_of(g, first);
  const auto b = range_of(g, second);
  if (!a || !b) return kNoNode;
  const bool is_max = at.op == Op::Max;
  if (is_max ? a->low >= b->high : a->high <= b->low) return first;
  return (is_max ? b->low >= a->high : b->high <= a->low) ? second : kNoNode;
}

// The size itself, where it was put into a list and taken out again; else kNoNode.
NodeId listed_size(Graph& g, NodeId size) {
  Element element{size, 0};
  while (const auto source = source_of(g, element)) element = *source;
  const Node& found = g[element.node];
  if (found.dtype != DType::I64 || element_count(found.shape) != 1) return kNoNode;
  const NodeId one = reshape(g, element.node, {});
  return one != size ? one : kNoNode;
}

} // namespace

NodeId simplest(Graph& g, NodeId size) {
  for (NodeId id = size; id != kNoNode;) {
    size = id;
    id = equal_operand(g, size);
    if (id == kNoNode) id = listed_size(g, size);
  }
  return size;
}

NodeId BoundTable::add(Graph& g, NodeId x, Counts counts) {
  if (tidy(counts).empty()) return x;
  const Expr tensor{&g, x};
  for (size_t axis = 0; axis < counts.size(); ++axis) {
    if (counts[axis] == kNoNode) continue;
    counts[axis] = simplest(g, counts[axis]);
    const auto known = known_ints(g, counts[axis]);
    if (known && known->front() == extent(tensor, static_cast<int64_t>(axis)))
      counts[axis] = kNoNode;
  }
  if (tidy(counts).empty()) return x;
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

int64_t listed_axes(NodeImport& node, size_t input) {
  constexpr int64_t kMostAxes = 64; // as many as NumPy takes
  const int64_t count = element_count(node.shape(input));
  if (count > kMostAxes)
    node.unsupported("the list of sizes has " + std::to_string(count) +
                     " entries, more than the " + std::to_string(kMostAxes) +
                     " axes that a tensor may have");
  return count;
}

Expr entry_of(Expr list, int64_t i) {
  Graph& g = *list.g;
  Element element{list.id, i};
  while (const auto source = source_of(g, element)) element = *source;
  const Expr all{&g, element.node};
  const Expr flat = reshape(all, {element_count(all.shape())});
  // A size that was put into the list comes out as the node that it was.
  const Expr one = all.rank() == 0 ? all : reshape(cut(flat, 0, element.at, 1), {});
  const Expr entry = convert(one, DType::I64);
  const auto value = known_ints(g, entry.id);
  return value ? number(g, DType::I64, static_cast<double>(value->front())) : entry;
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
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    const auto size = known_ints(node.g, sizes[axis].size.id);
    counts.push_back(size ? kNoNode : sizes[axis].size.id);
    // Counted in constants: what lies beyond is not part of it.
    const auto at = static_cast<int64_t>(axis);
    if (size && size->front() < extent(x, at)) x = cut(x, at, 0, size->front());
  }
  give(node, out, x);
  node.set_counts(out, tidy(counts));
}

} // namespace svod::importer
