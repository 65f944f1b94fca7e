// The declared shape, or a bound, fixes how many elements there are; which ones is
// arithmetic on positions. An axis that nothing moves has known positions, which fold
// back into the whole axis.
#include "importer/bounded/run_time_movement.h"

namespace svod::importer {
namespace {

// The entry for `axis` of a list that goes with `axes` (none: the axes in order), or
// `otherwise` where the list does not name the axis. I64, rank 0.
Expr entry_for(NodeImport& node, Expr values, std::optional<Expr> axes, int64_t axis,
               double otherwise) {
  const int64_t rank = node.rank(0), count = element_count(values.shape());
  require(node, !axes || axes->shape() == Shape{count},
          "axes must have one entry for each entry of the list that goes with it");
  Expr found = number(node.g, DType::I64, otherwise);
  for (int64_t i = 0; i < count; ++i) {
    const Expr entry = entry_of(values, i);
    if (!axes) {
      if (i == axis) found = entry;
      continue;
    }
    const Expr named = reshape(cut(convert(*axes, DType::I64), 0, i, 1), {});
    const Expr hit = either(equal(named, static_cast<double>(axis)),
                            equal(named, static_cast<double>(axis - rank)));
    found = select(hit, entry, found);
  }
  return found;
}

// Where every padded position comes from, in an axis of `size` elements. Constant padding
// reads anywhere inside; the mask of what lies inside is a separate matter.
Expr source_position(NodeImport& node, const std::string& mode, Expr at, Expr size) {
  const Expr some = maximum(size, 1), last = some - 1.0;
  if (mode == "constant" || mode == "edge") return minimum(maximum(at, 0), last);
  if (mode == "wrap") return apply(Op::Mod, at, some);
  if (mode != "reflect")
    node.invalid("mode '" + mode + "' is not one of constant, reflect, edge, wrap");
  const Expr period = maximum(last * 2.0, 1);
  const Expr turn = apply(Op::Mod, at, period);
  return select(less(turn, some), turn, period - turn);
}

// Start, step and number of the elements that a slice takes from an axis of extent n.
struct Stretch {
  Expr start, step, count;
};

Stretch stretch_of(NodeImport& node, std::optional<Expr> axes, int64_t axis,
                   int64_t extent) {
  const double n = static_cast<double>(extent);
  const Expr zero = number(node.g, DType::I64, 0);
  Expr step = like(zero, 1);
  if (node.has_input(4)) step = entry_for(node, operand(node, 4), axes, axis, 1);
  const Expr back = less(step, zero);
  const auto bound = [&](size_t input, double otherwise, Expr low) {
    const Expr given = entry_for(node, operand(node, input), axes, axis, otherwise);
    const Expr at = select(less(given, zero), given + n, given);
    return minimum(maximum(at, low), select(back, like(zero, n - 1), like(zero, n)));
  };
  const Expr start = bound(1, 0, zero);
  const Expr end = bound(2, n, select(back, like(zero, -1), zero));
  // Rounded up towards the end: integer division truncates.
  const Expr toward = select(back, like(step, 1), like(step, -1));
  return {start, step, maximum((end - start + step + toward) / step, 0)};
}

} // namespace

void slice_at_run_time(NodeImport& node) {
  Expr x = operand(node, 0);
  const Shape to = declared_instead(node, 1, 0, x.rank());
  std::optional<Expr> axes;
  if (node.has_input(3)) axes = operand(node, 3);
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    const int64_t count = to[static_cast<size_t>(axis)];
    const Stretch taken = stretch_of(node, axes, axis, extent(x, axis));
    const Expr at =
        taken.start + count_along(node.g, DType::I64, count, 0, 1) * taken.step;
    const Expr kept = equal(taken.count, static_cast<double>(count));
    x = take_at(node, x, axis, if_kept(kept, at));
  }
  give(node, 0, x);
}

namespace {

// What a Pad adds before and after each axis.
struct Padding {
  Expr amounts;
  std::optional<Expr> axes;
  Expr fill;

  int64_t count() const { return element_count(amounts.shape()) / 2; }
  Expr before(NodeImport& node, int64_t axis) const {
    return entry_for(node, cut(amounts, 0, 0, count()), axes, axis, 0);
  }
  Expr after(NodeImport& node, int64_t axis) const {
    return entry_for(node, cut(amounts, 0, count(), count()), axes, axis, 0);
  }
};

Padding padding_of(NodeImport& node) {
  Padding out{operand(node, 1), {}, number(node.g, node.dtype(0), 0)};
  int64_t count = node.rank(0);
  if (node.has_input(3)) {
    out.axes = operand(node, 3);
    count = element_count(out.axes->shape());
  }
  require(node, element_count(node.shape(1)) == 2 * count,
          "pads must have two entries per axis");
  out.amounts = reshape(out.amounts, {2 * count});
  if (!node.has_input(2)) return out;
  require(node, element_count(node.shape(2)) == 1,
          "constant_value must have one element");
  out.fill = reshape(operand(node, 2), {});
  return out;
}

// x with one axis padded to `size`, which is promised to be what the amounts give.
Expr pad_axis(NodeImport& node, const std::string& mode, Expr x, int64_t axis,
              const Padding& padding, Size from, int64_t size, Expr promise) {
  require(node, extent(x, axis) > 0, "padding of an empty axis by amounts of run time");
  const Expr at =
      count_along(node.g, DType::I64, size, 0, 1) - padding.before(node, axis);
  x = take_at(node, x, axis,
              if_kept(promise, source_position(node, mode, at, from.size)));
  if (mode != "constant") return x;
  const Expr inside = both(less_equal(like(at, 0), at), less(at, from.size));
  return select(along(inside, axis, x.rank()), x, padding.fill);
}

bool is_zero(Expr x) {
  const auto value = known_ints(*x.g, x.id);
  return value && value->front() == 0;
}

} // namespace

Expr take_at(NodeImport& node, Expr x, int64_t axis, Expr at) {
  const auto positions = known_ints(node.g, at.id);
  if (!positions) return take(x, axis, at);
  for (int64_t position : *positions)
    require(node, position >= 0 && position < extent(x, axis),
            "the declared shape does not fit the input");
  return take(x, axis, *positions);
}

void pad_at_run_time(NodeImport& node, const std::string& mode) {
  if (!node.declared_shape(0)) return pad_within_bounds(node, mode);
  Expr x = operand(node, 0);
  const Shape to = declared_instead(node, 1, 0, x.rank());
  const Padding padding = padding_of(node);
  const std::vector<Size> from = sizes_of(node, 0);
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    const int64_t size = to[static_cast<size_t>(axis)], n = extent(x, axis);
    require(node, size > 0, "padding to an empty axis by amounts of run time");
    const Expr added = padding.before(node, axis) + padding.after(node, axis);
    x = pad_axis(node, mode, x, axis, padding, from[static_cast<size_t>(axis)], size,
                 equal(added, static_cast<double>(size - n)));
  }
  give(node, 0, x);
}

void pad_within_bounds(NodeImport& node, const std::string& mode,
                       std::optional<Expr> amounts, std::optional<Expr> fill) {
  Expr x = operand(node, 0);
  const Padding padding = amounts ? Padding{*amounts, {}, *fill} : padding_of(node);
  std::vector<Size> sizes = sizes_of(node, 0);
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    const Expr low = padding.before(node, axis), high = padding.after(node, axis);
    if (is_zero(low) && is_zero(high)) continue;
    Size& size = sizes[static_cast<size_t>(axis)];
    const Size from = size;
    const Expr all = maximum(from.size + low + high, 0);
    const auto value = known_ints(node.g, all.id);
    size = value ? known_size(node.g, value->front()) : bounded_size(node, all);
    x = pad_axis(node, mode, x, axis, padding, from, size.bound,
                 number(node.g, DType::Bool, 1));
  }
  give_bounded(node, 0, x, sizes);
}

} // namespace svod::importer
