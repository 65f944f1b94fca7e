// Operators that act element by element or move whole axes, on bounded tensors.
#include "importer/bounded/bounded_rules.h"

#include <algorithm>
#include <numeric>

namespace svod::importer {

void bounded_elementwise(NodeImport& node, Rule rule) {
  int64_t rank = 0;
  for (size_t i = 0; i < node.input_count(); ++i)
    if (node.has_input(i)) rank = std::max(rank, node.rank(i));
  Counts counts(static_cast<size_t>(rank), kNoNode);
  for (int64_t back = 1; back <= rank; ++back) {
    std::vector<InputAxis> aligned; // counted from the last
    for (size_t i = 0; i < node.input_count(); ++i)
      if (node.has_input(i) && node.rank(i) >= back)
        aligned.push_back({i, node.rank(i) - back});
    counts[static_cast<size_t>(rank - back)] = agreed_count(node, aligned, true);
  }
  rule(node);
  counts = tidy(std::move(counts));
  if (!counts.empty()) node.set_counts(0, counts);
}

void bounded_cast_like(NodeImport& node, Rule rule) {
  rule(node);
  node.set_counts(0, node.counts(0));
}

// Sizes are those of input 0; other inputs are parameters.
void bounded_same_sizes(NodeImport& node, Rule rule) {
  for (size_t i = 1; i < node.input_count(); ++i)
    for (int64_t axis = 0; node.has_input(i) && axis < node.rank(i); ++axis)
      if (count_along(node, i, axis) != kNoNode) refuse_bounded(node, i, axis);
  rule(node);
  for (size_t out = 0; out < node.results().size(); ++out)
    if (node.results()[out] != kNoNode) node.set_counts(out, node.counts(0));
}

// As a batch: every entry of the first axis is worked on alone.
void bounded_keeps_first(NodeImport& node, Rule rule) {
  // A single axis may be that of one entry's numbers.
  if (node.rank(0) < 2) refuse_bounded(node, 0, 0);
  for (size_t i = 0; i < node.input_count(); ++i)
    for (int64_t axis = 0; node.has_input(i) && axis < node.rank(i); ++axis)
      if (count_along(node, i, axis) != kNoNode && (i > 0 || axis > 0))
        refuse_bounded(node, i, axis);
  rule(node);
  for (size_t out = 0; out < node.results().size(); ++out) {
    if (node.results()[out] == kNoNode) continue;
    const Shape& shape = node.g[node.results()[out]].shape;
    if (shape.empty() || shape[0] != node.shape(0)[0]) refuse_bounded(node, 0, 0);
    Counts counts(shape.size(), kNoNode);
    counts[0] = count_along(node, 0, 0);
    node.set_counts(out, counts);
  }
}

void bounded_along_axis(NodeImport& node, Rule rule) {
  const int64_t axis = node.axis(node.get_int("axis"), node.rank(0));
  if (count_along(node, 0, axis) != kNoNode) refuse_bounded(node, 0, axis);
  rule(node);
  for (size_t out = 0; out < node.results().size(); ++out)
    node.set_counts(out, node.counts(0));
}

void bounded_shape(NodeImport& node, Rule) {
  const int64_t rank = node.rank(0);
  int64_t start = 0, end = rank;
  if (node.opset >= 15) {
    start = node.get_int("start");
    if (node.has("end")) end = node.get_int("end");
  }
  const auto place = [&](int64_t i) {
    return std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank);
  };
  start = place(start);
  end = std::max(start, place(end));
  std::vector<Expr> sizes;
  for (int64_t axis = start; axis < end; ++axis)
    sizes.push_back(reshape(size_along(node, 0, axis), {1}));
  if (sizes.empty()) return node.output(0, tensor_i64(node.g, {0}, {}));
  give(node, 0, join(sizes, 0));
}

void bounded_size(NodeImport& node, Rule) {
  Expr size = number(node.g, DType::I64, 1);
  for (int64_t axis = 0; axis < node.rank(0); ++axis)
    size = size * size_along(node, 0, axis);
  give(node, 0, size);
}

void bounded_transpose(NodeImport& node, Rule rule) {
  std::vector<int64_t> perm = node.get_ints("perm");
  if (!node.has("perm")) {
    perm.resize(static_cast<size_t>(node.rank(0)));
    std::iota(perm.rbegin(), perm.rend(), 0);
  }
  rule(node); // which checks the permutation
  Counts counts;
  for (int64_t axis : perm)
    counts.push_back(count_along(node, 0, node.axis(axis, node.rank(0))));
  node.set_counts(0, counts);
}

namespace {

// Axes from the attribute of old opsets, or the input of new ones; none when left out.
std::optional<std::vector<int64_t>> axes_of(NodeImport& node) {
  if (node.opset >= 13)
    return node.has_input(1) ? std::optional(node.known_ints(1)) : std::nullopt;
  if (!node.has("axes")) return std::nullopt;
  return node.get_ints("axes");
}

} // namespace

void bounded_squeeze(NodeImport& node, Rule) {
  Expr x = operand(node, 0);
  const auto given = axes_of(node);
  std::vector<bool> drop(static_cast<size_t>(x.rank()), false);
  for (int64_t axis = 0; axis < x.rank() && !given; ++axis)
    drop[static_cast<size_t>(axis)] =
        extent(x, axis) == 1 && count_along(node, 0, axis) == kNoNode;
  if (given)
    for (int64_t axis : *given)
      drop[static_cast<size_t>(node.axis(axis, x.rank()))] = true;
  std::vector<Size> sizes;
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    const NodeId count = count_along(node, 0, axis);
    if (!drop[static_cast<size_t>(axis)]) {
      sizes.push_back({size_along(node, 0, axis), extent(x, axis)});
    } else if (count != kNoNode) {
      const Expr first = reshape(number(node.g, DType::I64, 0), {1});
      x = take(x, axis, if_kept(equal(Expr{&node.g, count}, 1.0), first));
    } else {
      require(node, extent(x, axis) == 1, "only axes of extent 1 can be squeezed");
    }
  }
  give_bounded(node, 0, reshape(x, bounds_of(sizes)), sizes);
}

void bounded_unsqueeze(NodeImport& node, Rule) {
  const std::vector<int64_t> axes = axes_of(node).value_or(std::vector<int64_t>{});
  const int64_t rank = node.rank(0) + static_cast<int64_t>(axes.size());
  std::vector<bool> added(static_cast<size_t>(rank), false);
  for (int64_t axis : axes) {
    const auto at = static_cast<size_t>(node.axis(axis, rank));
    require(node, !added[at], "axes names an axis twice");
    added[at] = true;
  }
  const std::vector<Size> from = sizes_of(node, 0);
  std::vector<Size> sizes;
  size_t next = 0;
  for (bool is_new : added)
    sizes.push_back(is_new ? known_size(node.g, 1) : from[next++]);
  give_bounded(node, 0, reshape(operand(node, 0), bounds_of(sizes)), sizes);
}

namespace {

Expr product_of(NodeImport& node, const std::vector<Size>& sizes) {
  Expr product = number(node.g, DType::I64, 1);
  for (const Size& size : sizes) product = product * size.size;
  return product;
}

// What a reshape does between the axes that it leaves alone, in front and behind: x seen
// as [outer, have, inner] and the sizes in the middle, before and after.
struct Middle {
  Expr x;
  std::vector<Size> from, to;

  int64_t want() const { return element_count(bounds_of(to)); }
  bool moves() const {
    const auto open = [](const Size& size) { return !known(size.size); };
    return std::ranges::any_of(from, open) || std::ranges::any_of(to, open);
  }
};

Middle middle_of(Expr x, std::vector<Size> from, std::vector<Size> to) {
  const auto same = [](const Size& a, const Size& b) {
    return a.size.id == b.size.id && a.bound == b.bound;
  };
  int64_t outer = 1, inner = 1;
  while (!from.empty() && !to.empty() && same(from.front(), to.front())) {
    outer *= from.front().bound;
    from.erase(from.begin());
    to.erase(to.begin());
  }
  while (!from.empty() && !to.empty() && same(from.back(), to.back())) {
    inner *= from.back().bound;
    from.pop_back();
    to.pop_back();
  }
  const int64_t have = element_count(bounds_of(from));
  return {reshape(x, {outer, have, inner}), std::move(from), std::move(to)};
}

// Elements keep their row-major order among those that are meant: every place of the
// result has a number in that order, and that number a place in x. One gather.
Expr reordered(const Middle& middle) {
  Graph& g = *middle.x.g;
  const Shape bounds = bounds_of(middle.to), have = bounds_of(middle.from);
  const auto rank = static_cast<int64_t>(middle.to.size());
  Expr order = number(g, DType::I64, 0), valid = number(g, DType::Bool, 1);
  for (int64_t axis = 0; axis < rank; ++axis) {
    const Size& size = middle.to[static_cast<size_t>(axis)];
    const Expr at = count_along(g, DType::I64, size.bound, axis, rank);
    order = order * size.size + at;
    if (!known(size.size)) valid = both(valid, less(at, size.size));
  }
  const Shape strides = row_major_strides(have);
  Expr place = number(g, DType::I64, 0);
  for (size_t axis = have.size(); axis-- > 0;) {
    const Expr at = apply(Op::Mod, order, middle.from[axis].size);
    place = place + at * static_cast<double>(strides[axis]);
    order = order / middle.from[axis].size;
  }
  place = select(valid, place, like(place, 0));
  const Expr index = reshape(broadcast(place, bounds), {middle.want()});
  return take(middle.x, 1, index);
}

// Where everything before the one bounded axis stays, its elements and those after it lie
// together in every row: the extents change, nothing moves.
std::optional<Expr> unmoved(const Middle& middle) {
  if (!middle.moves()) return middle.x;
  const auto open = [](const std::vector<Size>& sizes) {
    return std::ranges::find_if(sizes, [](const Size& s) { return !known(s.size); }) -
           sizes.begin();
  };
  const auto rows = [](const std::vector<Size>& sizes, std::ptrdiff_t until) {
    int64_t count = 1;
    for (std::ptrdiff_t i = 0; i < until; ++i)
      count *= sizes[static_cast<size_t>(i)].bound;
    return count;
  };
  const std::vector<Size>&from = middle.from, &to = middle.to;
  const std::ptrdiff_t a = open(from), b = open(to);
  if (a == std::ssize(from) || b == std::ssize(to) || rows(from, a) != rows(to, b))
    return std::nullopt;
  for (const auto* sizes : {&from, &to})
    if (std::ranges::count_if(*sizes, [](const Size& s) { return !known(s.size); }) != 1)
      return std::nullopt;
  const int64_t outer = middle.x.shape()[0], inner = middle.x.shape()[2];
  const int64_t row = rows(from, a), have = middle.x.shape()[1] / row,
                want = middle.want() / row;
  Expr flat = reshape(middle.x, {outer * row, have, inner});
  if (want > have) flat = pad(flat, {0, 0, 0}, {0, want - have, 0}, 0);
  if (want < have) flat = cut(flat, 1, 0, want);
  return flat;
}

// x with the sizes `to`, of which the run has as many elements.
Expr reshaped(NodeImport& node, Expr x, const std::vector<Size>& from,
              const std::vector<Size>& to) {
  const Shape bounds = bounds_of(to);
  if (element_count(bounds) == 0 || element_count(x.shape()) == 0)
    return with(x, constant(*x.g, x.dtype(), bounds, 0));
  const Middle middle = middle_of(x, from, to);
  require(node, middle.moves() || middle.want() == middle.x.shape()[1],
          "the shapes before and after have different numbers of elements");
  const std::optional<Expr> same = unmoved(middle);
  return reshape(same ? *same : reordered(middle), bounds);
}

} // namespace

void give_reshaped(NodeImport& node, const std::vector<Size>& to) {
  const Expr x = operand(node, 0);
  const std::vector<Size> from = sizes_of(node, 0);
  // All sizes of the result known: the run must have as many elements.
  if (std::ranges::all_of(to, [](const Size& size) { return known(size.size); })) {
    const int64_t count = element_count(bounds_of(to));
    const Expr all = reshaped(node, x, from, {known_size(node.g, count)});
    const Expr kept = equal(product_of(node, from), static_cast<double>(count));
    const Expr places = if_kept(kept, count_along(node.g, DType::I64, count, 0, 1));
    return give(node, 0, reshape(take(all, 0, places), bounds_of(to)));
  }
  give_bounded(node, 0, reshaped(node, x, from, to), to);
}

void bounded_flatten(NodeImport& node, Rule) {
  int64_t axis = node.get_int("axis");
  const int64_t rank = node.rank(0);
  if (axis < 0 && node.opset >= 11) axis += rank;
  require(node, axis >= 0 && axis <= rank, "axis is outside the input's rank");
  const std::vector<Size> from = sizes_of(node, 0);
  std::vector<Size> to;
  for (const auto& [first, last] : {std::pair{int64_t{0}, axis}, std::pair{axis, rank}}) {
    const std::vector<Size> part(from.begin() + first, from.begin() + last);
    to.push_back({product_of(node, part), element_count(bounds_of(part))});
  }
  give_reshaped(node, to);
}

// Sizes that both have cancel out: of the run, whatever they are, and known ones.
static void cancel_equal(std::vector<Size>& a, std::vector<Size>& b) {
  std::erase_if(a, [&](const Size& size) {
    if (known(size.size) && size.bound == 0) return false;
    const auto same =
        std::ranges::find(b, size.size.id, [](const Size& s) { return s.size.id; });
    if (same == b.end()) return false;
    b.erase(same);
    return true;
  });
}

// Also with sizes of the run in the shape itself. 0 copies a size, one -1 is what is
// left.
void bounded_reshape(NodeImport& node, Rule) {
  if (node.opset < 5) refuse_bounded(node, 0, 0);
  const bool zero_is_zero = node.opset >= 14 && node.get_int("allowzero") != 0;
  const std::vector<Size> from = sizes_of(node, 0);
  const int64_t rank = listed_axes(node, 1);
  std::vector<Size> to;
  std::optional<size_t> open;
  for (int64_t i = 0; i < rank; ++i) {
    const Expr entry = entry_of(operand(node, 1), i);
    const auto value = known_ints(node.g, entry.id);
    if (!value) {
      to.push_back(bounded_size(node, entry));
    } else if (value->front() == 0 && !zero_is_zero) {
      require(node, static_cast<size_t>(i) < from.size(),
              "shape copies an axis that the input does not have");
      to.push_back(from[static_cast<size_t>(i)]);
    } else if (value->front() == -1) {
      require(node, !open, "shape has more than one -1");
      open = to.size();
      to.push_back(known_size(node.g, 1));
    } else {
      require(node, value->front() >= 0, "shape has an extent below -1");
      to.push_back(known_size(node.g, value->front()));
    }
  }
  if (open) {
    std::vector<Size> all = from, others = to;
    cancel_equal(all, others);
    const Expr rest = product_of(node, others);
    int64_t least = 1; // of the other sizes: those of the run may be small
    for (const Size& size : others)
      if (known(size.size)) least *= size.bound;
    require(node, least > 0, "the extent of -1 cannot be inferred");
    const Expr left = product_of(node, all) / rest;
    const int64_t bound = (element_count(bounds_of(all)) + least - 1) / least;
    const auto exact = known_ints(node.g, left.id);
    to[*open] = exact ? known_size(node.g, exact->front()) : Size{left, bound};
  }
  give_reshaped(node, to);
}

} // namespace svod::importer
