// Operators that choose elements: those that find out how many there are (NonZero,
// Compress, TopK, Slice, NonMaxSuppression), and those that look elements up.
#include "importer/bounded/bounded_rules.h"
#include "importer/formula/formula.h"
#include "importer/formula/value_range.h"

#include <algorithm>

namespace svod::importer {

namespace {

constexpr double kOutside = 1LL << 52; // no place of any axis: the run stops there

// Indices that count from the end or lie outside what is meant, where the axis is
// bounded; those that are not meant themselves read place 0.
Expr index_into(NodeImport& node, size_t data, int64_t axis, size_t index) {
  Expr at = convert(operand(node, index), DType::I64);
  if (known(at) && count_along(node, data, axis) == kNoNode)
    return wrap_index(node, at, node.shape(data)[static_cast<size_t>(axis)]);
  const Expr size = size_along(node, data, axis);
  at = select(less(at, 0.0), at + size, at);
  at = select(less(at, size), at, like(at, kOutside));
  return masked(at, node.counts(index), 0);
}

} // namespace

void bounded_gather(NodeImport& node, Rule) {
  const Expr x = operand(node, 0);
  const int64_t axis = node.axis(node.get_int("axis"), x.rank());
  const Expr index = index_into(node, 0, axis, 1);
  const std::vector<Size> of_x = sizes_of(node, 0), of_index = sizes_of(node, 1);
  std::vector<Size> sizes(of_x.begin(), of_x.begin() + axis);
  sizes.insert(sizes.end(), of_index.begin(), of_index.end());
  sizes.insert(sizes.end(), of_x.begin() + axis + 1, of_x.end());
  const int64_t count = element_count(index.shape());
  if (extent(x, axis) == 0 && count > 0) refuse_bounded(node, 1, 0);
  give_bounded(node, 0, reshape(take(x, axis, reshape(index, {count})), bounds_of(sizes)),
               sizes);
}

void bounded_gather_elements(NodeImport& node, Rule rule) {
  require(node, node.rank(0) == node.rank(1), "data and indices must have equal ranks");
  const int64_t axis = node.axis(node.get_int("axis"), node.rank(0));
  const Counts counts = node.counts(1);
  node.replace_input(1, index_into(node, 0, axis, 1).id);
  rule(node);
  node.set_counts(0, counts);
}

namespace {

// Index tuples whose parts count from the end of what is meant; `meaningless` ones become
// the place after the last one of `space`.
Expr tuple_places(NodeImport& node, size_t data, size_t index, int64_t first) {
  const Expr tuples = convert(operand(node, index), DType::I64);
  const int64_t last = tuples.rank() - 1;
  Expr place = number(node.g, DType::I64, 0), inside = number(node.g, DType::Bool, 1);
  for (int64_t i = 0; i < extent(tuples, last); ++i) {
    const Expr size = size_along(node, data, first + i);
    Expr part = squeeze(cut(tuples, last, i, 1), last);
    part = select(less(part, 0.0), part + size, part);
    inside = both(inside, both(less_equal(like(part, 0), part), less(part, size)));
    const int64_t bound = node.shape(data)[static_cast<size_t>(first + i)];
    place = place * static_cast<double>(bound) + part;
  }
  const Shape shape(tuples.shape().begin(), tuples.shape().end() - 1);
  return broadcast(select(inside, place, like(place, kOutside)), shape);
}

int64_t product(const Shape& shape, int64_t first, int64_t last) {
  return element_count(Shape(shape.begin() + first, shape.begin() + last));
}

Counts without_last(Counts counts) {
  if (!counts.empty()) counts.pop_back();
  return counts;
}

} // namespace

void bounded_gather_nd(NodeImport& node, Rule) {
  const Expr x = operand(node, 0);
  require(node, node.rank(1) >= 1, "indices need an axis");
  const int64_t width = node.shape(1).back();
  if (node.opset >= 12 && node.get_int("batch_dims") != 0) refuse_bounded(node, 1, 0);
  if (count_along(node, 1, node.rank(1) - 1) != kNoNode)
    refuse_bounded(node, 1, node.rank(1) - 1);
  require(node, width <= x.rank(), "the last extent of indices does not fit data");
  Expr place = masked(tuple_places(node, 0, 1, 0), without_last(node.counts(1)), 0);
  const int64_t space = product(x.shape(), 0, width),
                rest = product(x.shape(), width, x.rank()),
                count = element_count(place.shape());
  std::vector<Size> sizes = sizes_of(node, 1);
  sizes.pop_back();
  const std::vector<Size> of_x = sizes_of(node, 0);
  sizes.insert(sizes.end(), of_x.begin() + width, of_x.end());
  if (space == 0 && count > 0) refuse_bounded(node, 1, 0);
  const Expr y = take(reshape(x, {space, rest}), 0, reshape(place, {count}));
  give_bounded(node, 0, reshape(y, bounds_of(sizes)), sizes);
}

// Updates that are not meant go to one more place, which is cut off.
void bounded_scatter_nd(NodeImport& node, Rule) {
  const Expr x = operand(node, 0), update = operand(node, 2);
  require(node, node.rank(1) >= 1, "indices need an axis");
  if (node.opset >= 16 && node.get_string("reduction") != "none")
    refuse_bounded(node, 1, 0);
  const int64_t width = node.shape(1).back();
  require(node, width <= x.rank(), "the last extent of indices does not fit data");
  const int64_t space = product(x.shape(), 0, width),
                rest = product(x.shape(), width, x.rank());
  const Expr place = masked(tuple_places(node, 0, 1, 0), without_last(node.counts(1)),
                            axes_from(0, node.rank(1) - 1),
                            number(node.g, DType::I64, static_cast<double>(space)));
  const int64_t count = element_count(place.shape());
  if (element_count(update.shape()) != count * rest) {
    // Updates of another bound: as many rows as there are indices.
    require(node, node.rank(1) == 2 && update.rank() >= 1, "updates do not fit indices");
    refuse_bounded(node, node.counts(2).empty() ? 1 : 2, 0);
  }
  // One more row, and into it what is outside as well is no way: that stops the run.
  const Expr wide = pad(reshape(x, {space, rest}), {0, 0}, {1, 0}, 0);
  const Expr at = broadcast(reshape(place, {count, 1}), {count, rest});
  const Expr y = scatter(wide, at, reshape(update, {count, rest}), 0, Combiner::Set);
  give(node, 0, reshape(cut(y, 0, 0, space), x.shape()));
  node.set_counts(0, node.counts(0));
}

// Elements that are not meant go to one more place along the axis, which is cut off.
void bounded_scatter_elements(NodeImport& node, Rule rule) {
  const int64_t rank = node.rank(0), axis = node.axis(node.get_int("axis"), rank);
  require(node, rank == node.rank(1) && rank == node.rank(2),
          "data, indices and updates must have equal ranks");
  Counts counts;
  for (int64_t i = 0; i < rank; ++i)
    counts.push_back(agreed_count(node, {{1, i}, {2, i}}, false));
  const Expr x = operand(node, 0), size = size_along(node, 0, axis);
  const int64_t bound = extent(x, axis);
  Expr at = convert(operand(node, 1), DType::I64);
  at = select(less(at, 0.0), at + size, at);
  at = select(both(less_equal(like(at, 0), at), less(at, size)), at, like(at, kOutside));
  at = masked(at, tidy(counts), static_cast<double>(bound));
  Shape none(static_cast<size_t>(rank), 0), more = none;
  more[static_cast<size_t>(axis)] = 1;
  const Counts of_x = node.counts(0);
  node.replace_input(0, pad(x, none, more, 0).id);
  node.replace_input(1, at.id);
  rule(node);
  give(node, 0, cut({&node.g, node.results()[0]}, axis, 0, bound));
  node.set_counts(0, of_x);
}

namespace {

// The entry of a list for one axis, by the axes that the list names.
std::optional<Expr> entry_for(NodeImport& node, size_t input,
                              const std::vector<int64_t>& axes, int64_t axis) {
  if (!node.has_input(input)) return std::nullopt;
  const int64_t count = element_count(node.shape(input));
  for (size_t i = 0; i < axes.size() && static_cast<int64_t>(i) < count; ++i)
    if (axes[i] == axis) return entry_of(operand(node, input), static_cast<int64_t>(i));
  return std::nullopt;
}

// Elements start, start + step ... of an axis, as numpy counts them.
Expr sliced(NodeImport& node, Expr x, int64_t axis, Expr size, Size& result,
            std::optional<Expr> first, std::optional<Expr> last, int64_t step) {
  const Expr zero = number(node.g, DType::I64, 0), low = like(zero, step > 0 ? 0 : -1);
  const Expr high = step > 0 ? size : size - 1.0;
  const auto place = [&](Expr at, Expr least) {
    if (at.id == size.id && step > 0) return size;
    const auto within = known(size) ? range_of(node.g, at.id) : std::nullopt;
    if (within && within->low >= 0 &&
        within->high <= static_cast<double>(known_ints(node.g, high.id)->front()))
      return at;
    // A known place before the end, or beyond it, of an axis known to be long enough.
    const auto exact = known_ints(node.g, at.id);
    const auto sizes = exact ? range_of(node.g, size.id) : std::nullopt;
    if (sizes && step > 0 && static_cast<double>(exact->front()) >= sizes->high)
      return size;
    if (sizes && step > 0 && exact->front() >= 0 &&
        static_cast<double>(exact->front()) <= sizes->low)
      return at;
    if (sizes && exact->front() < 0 && static_cast<double>(exact->front()) >= -sizes->low)
      return size + static_cast<double>(exact->front());
    return minimum(maximum(select(less(at, 0.0), at + size, at), least), high);
  };
  const Expr start = first ? place(*first, zero) : step > 0 ? zero : high;
  const Expr end = last ? place(*last, low) : step > 0 ? size : low;
  const Expr span = step > 0 ? end - start : start - end;
  const auto pace = static_cast<double>(step > 0 ? step : -step);
  const auto apart = step > 0 ? difference(node.g, end.id, start.id)
                              : difference(node.g, start.id, end.id);
  const Expr length =
      apart ? number(node.g, DType::I64, static_cast<double>(*apart)) : span;
  const Expr there = (length + (pace - 1)) / pace;
  const auto most = range_of(node, there);
  const Expr count = most && most->low >= 0 ? there : maximum(there, 0);
  const int64_t all = (extent(x, axis) + int64_t(pace) - 1) / int64_t(pace);
  const auto exact = known_ints(node.g, count.id);
  int64_t bound = all;
  if (exact)
    bound = exact->front();
  else if (const auto range = range_of(node, count); range && range->high < double(all))
    bound = static_cast<int64_t>(std::max(range->high, 0.0));
  result = exact ? known_size(node.g, bound) : Size{count, bound};
  const auto from = known_ints(node.g, start.id);
  if (from && step == 1)
    return cut(x, axis, std::min(from->front(), extent(x, axis) - bound), bound);
  if (bound == 0) return cut(x, axis, 0, 0);
  const Expr at =
      start + count_along(node.g, DType::I64, bound, 0, 1) * static_cast<double>(step);
  return take(x, axis, clamp(at, 0, static_cast<double>(extent(x, axis) - 1)));
}

} // namespace

// Bounds of the run, sizes of the run, or both. Axes and steps are known.
void bounded_slice(NodeImport& node, Rule) {
  Expr x = operand(node, 0);
  const bool by_input = node.opset >= 10;
  const std::vector<int64_t> starts = by_input ? std::vector<int64_t>{}
                                               : node.get_ints("starts"),
                             ends = by_input ? std::vector<int64_t>{}
                                             : node.get_ints("ends");
  const auto named =
      static_cast<int64_t>(by_input ? element_count(node.shape(1)) : std::ssize(starts));
  std::vector<int64_t> axes, steps;
  if (by_input && node.has_input(3)) axes = node.known_ints(3);
  if (!by_input) axes = node.get_ints("axes");
  if (by_input && node.has_input(4)) steps = node.known_ints(4);
  if (axes.empty()) axes = axes_from(0, named);
  for (int64_t& axis : axes) axis = node.axis(axis, x.rank());
  require(node,
          std::ssize(axes) == named && (steps.empty() || steps.size() == axes.size()) &&
              (!by_input || element_count(node.shape(2)) == named) &&
              (by_input || ends.size() == starts.size()),
          "starts, ends, axes and steps must have equal lengths");
  std::vector<Size> sizes = sizes_of(node, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axes[i], step = steps.empty() ? 1 : steps[i];
    require(node, step != 0 && step > -(int64_t{1} << 31) && step < int64_t{1} << 31,
            "a step is 0 or out of range");
    std::optional<Expr> first, last;
    if (by_input) {
      first = entry_for(node, 1, axes, axis);
      last = entry_for(node, 2, axes, axis);
    } else {
      first = number(node.g, DType::I64, static_cast<double>(starts[i]));
      last = number(node.g, DType::I64, static_cast<double>(ends[i]));
    }
    Size& size = sizes[static_cast<size_t>(axis)];
    x = sliced(node, x, axis, Expr(size.size), size, first, last, step);
  }
  give_bounded(node, 0, x, sizes);
}

void bounded_top_k(NodeImport& node, Rule) {
  if (node.opset < 10) refuse_bounded(node, 0, node.rank(0) - 1);
  Expr x = operand(node, 0);
  const int64_t axis = node.axis(node.get_int("axis"), x.rank());
  const bool largest = node.opset < 11 || node.get_int("largest") != 0;
  require(node, element_count(node.shape(1)) == 1, "K must be one number");
  const Op best = largest ? Op::ReduceMax : Op::ReduceMin;
  x = masked(x, node.counts(0), {axis}, neutral(node.g, best, x.dtype()));
  const Expr size = size_along(node, 0, axis);
  Expr k = reshape(convert(operand(node, 1), DType::I64), {});
  int64_t bound = extent(x, axis);
  if (const auto range = range_of(node, k); range && range->high < double(bound))
    bound = static_cast<int64_t>(std::max(range->high, 0.0));
  const bool is_known = known(k);
  require(node, !is_known || known_ints(node.g, k.id)->front() >= 0, "K is negative");
  Expr order = with(x, argsort(node.g, x.id, axis, largest, bound));
  if (is_known && known(size)) {
    require(node, known_ints(node.g, k.id)->front() <= extent(x, axis),
            "k is larger than the axis");
  } else if (is_known && bound > 0) { // the run must have so many elements
    const Expr kept = less_equal(k, size);
    order = select(kept, order, like(order, kOutside));
  } else {
    k = checked(k, less_equal(k, size));
  }
  std::vector<Size> sizes = sizes_of(node, 0);
  sizes[static_cast<size_t>(axis)] =
      is_known ? known_size(node.g, bound) : Size{k, bound};
  if (node.wants_output(1)) give_bounded(node, 1, order, sizes);
  if (!node.wants_output(0)) return;
  give_bounded(node, 0, gather(x, order, axis), sizes);
}

void bounded_non_zero(NodeImport& node, Rule) {
  const Expr x = masked(operand(node, 0), node.counts(0), 0);
  if (x.rank() == 0) node.unsupported("NonZero of a scalar");
  const int64_t size = element_count(x.shape());
  const Expr flat = reshape(x, {size});
  const Places found =
      true_places(flat.dtype() == DType::Bool ? flat : apply(Op::Not, equal(flat, 0.0)));
  const Shape strides = row_major_strides(x.shape());
  std::vector<Expr> rows;
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    Expr at = found.places / static_cast<double>(strides[static_cast<size_t>(axis)]);
    at = apply(Op::Mod, at, like(at, static_cast<double>(extent(x, axis))));
    rows.push_back(unsqueeze(at, 0));
  }
  give_bounded(node, 0, join(rows, 0),
               {known_size(node.g, x.rank()), {found.count, size}});
}

void bounded_compress(NodeImport& node, Rule) {
  Expr x = operand(node, 0), condition = operand(node, 1);
  std::vector<Size> sizes = sizes_of(node, 0);
  int64_t axis = 0;
  if (node.has("axis")) {
    axis = node.axis(node.get_int("axis"), x.rank());
  } else {
    for (int64_t i = 1; i < x.rank(); ++i)
      if (count_along(node, 0, i) != kNoNode) refuse_bounded(node, 0, i);
    x = reshape(x, {element_count(x.shape())});
    sizes.assign(1, known_size(node.g, extent(x, 0)));
  }
  require(node, condition.rank() == 1, "condition must have one axis");
  condition = masked(condition, node.counts(1), 0);
  const int64_t asked = std::min(extent(condition, 0), extent(x, axis));
  const Places found = true_places(cut(condition, 0, 0, asked));
  if (asked == 0) return give_bounded(node, 0, cut(x, axis, 0, 0), {});
  sizes[static_cast<size_t>(axis)] = {found.count, asked};
  give_bounded(node, 0, take(x, axis, found.places), sizes);
}

void bounded_one_hot(NodeImport& node, Rule rule) {
  const int64_t axis = node.axis(node.get_int("axis"), node.rank(0) + 1);
  for (size_t i : {1, 2})
    if (!node.counts(i).empty()) refuse_bounded(node, i, 0);
  rule(node);
  Counts counts = node.counts(0);
  counts.insert(counts.begin() + axis, kNoNode);
  node.set_counts(0, counts);
}

void bounded_roi_align(NodeImport& node, Rule rule) {
  for (int64_t axis = 0; axis < node.rank(0); ++axis)
    if (count_along(node, 0, axis) != kNoNode) refuse_bounded(node, 0, axis);
  require(node, node.rank(1) == 2 && node.rank(2) == 1,
          "rois must have two axes, batch_indices one");
  const NodeId count = agreed_count(node, {{1, 0}, {2, 0}}, false);
  for (const size_t i : {1, 2}) zero_beyond(node, i);
  rule(node);
  node.set_counts(0, {count, kNoNode, kNoNode, kNoNode});
}

// The target's sizes, of which the last belong to the input's last axes.
void bounded_expand(NodeImport& node, Rule) {
  const std::vector<Size> from = sizes_of(node, 0);
  const int64_t named = listed_axes(node, 1), have = std::ssize(from);
  const int64_t rank = std::max(named, have);
  std::vector<Size> sizes;
  Expr x = operand(node, 0);
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t of_x = i - (rank - have), of_list = i - (rank - named);
    std::optional<Size> mine, asked;
    if (of_x >= 0) mine = from[static_cast<size_t>(of_x)];
    if (of_list >= 0) {
      const Expr entry = entry_of(operand(node, 1), of_list);
      const auto value = known_ints(node.g, entry.id);
      require(node, !value || value->front() >= 0, "the shape has a negative extent");
      const bool same = mine && entry.id == mine->size.id;
      asked = value  ? known_size(node.g, value->front())
              : same ? *mine
                     : bounded_size(node, entry);
    }
    const auto is_one = [](const Size& size) {
      return known(size.size) && size.bound == 1;
    };
    if (!asked || (mine && is_one(*asked))) {
      sizes.push_back(*mine);
    } else if (!mine || is_one(*mine)) {
      sizes.push_back(*asked);
    } else { // neither is 1: they must be equal in the run
      require(node,
              !known(mine->size) || !known(asked->size) || mine->bound == asked->bound,
              "the input cannot be expanded to the shape");
      if (known(mine->size) && !known(asked->size)) {
        const auto whole = static_cast<double>(mine->bound);
        const Expr fits = either(equal(asked->size, 1.0), equal(asked->size, whole));
        x = take(x, of_x,
                 if_kept(fits, count_along(node.g, DType::I64, mine->bound, 0, 1)));
      }
      Expr size = mine->size;
      if (size.id != asked->size.id) size = checked(size, equal(size, asked->size));
      sizes.push_back(known(mine->size) ? *mine : Size{size, mine->bound});
    }
  }
  give_bounded(node, 0, broadcast(x, bounds_of(sizes)), sizes);
}

} // namespace svod::importer
