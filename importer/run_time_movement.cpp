// The declared shape fixes how many elements there are; which ones is arithmetic on
// positions. An axis that nothing moves has known positions, which fold back into the
// whole axis.
#include "importer/run_time_movement.h"

namespace svod {
namespace {

// The entry for `axis` of a list that goes with `axes` (none: the axes in order), or
// `otherwise` where the list does not name the axis. I64, rank 0.
Expr entry_for(NodeImport& node, Expr values, std::optional<Expr> axes, int64_t axis,
               double otherwise) {
  const int64_t rank = node.rank(0), count = element_count(values.shape());
  values = convert(reshape(values, {count}), DType::I64);
  require(node, !axes || axes->shape() == Shape{count},
          "axes must have one entry for each entry of the list that goes with it");
  Expr found = number(node.g, DType::I64, otherwise);
  for (int64_t i = 0; i < count; ++i) {
    const Expr entry = reshape(cut(values, 0, i, 1), {});
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

// Where every padded position comes from. Constant padding reads anywhere inside; the
// mask of what lies inside is a separate matter.
Expr source_position(NodeImport& node, const std::string& mode, Expr at, int64_t extent) {
  const double n = static_cast<double>(extent);
  if (mode == "constant" || mode == "edge") return clamp(at, 0, n - 1);
  if (mode == "wrap") return apply(Op::Mod, at, like(at, n));
  if (mode != "reflect")
    node.invalid("mode '" + mode + "' is not one of constant, reflect, edge, wrap");
  const double period = extent == 1 ? 1 : 2 * (n - 1);
  const Expr turn = apply(Op::Mod, at, like(at, period));
  return select(less(turn, n), turn, period - turn);
}

Expr take_at(NodeImport& node, Expr x, int64_t axis, Expr at) {
  const auto positions = known_ints(node.g, at.id);
  if (!positions) return take(x, axis, at);
  for (int64_t position : *positions)
    require(node, position >= 0 && position < extent(x, axis),
            "the declared shape does not fit the input");
  return take(x, axis, *positions);
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

void pad_at_run_time(NodeImport& node, const std::string& mode) {
  Expr x = operand(node, 0);
  const Shape to = declared_instead(node, 1, 0, x.rank());
  std::optional<Expr> axes;
  int64_t count = x.rank();
  if (node.has_input(3)) {
    axes = operand(node, 3);
    count = element_count(axes->shape());
  }
  require(node, element_count(node.shape(1)) == 2 * count,
          "pads must have two entries per axis");
  const Expr amounts = reshape(operand(node, 1), {2 * count});
  const Expr before = cut(amounts, 0, 0, count), after = cut(amounts, 0, count, count);
  Expr fill = number(node.g, x.dtype(), 0);
  if (node.has_input(2)) fill = reshape(operand(node, 2), {});
  std::vector<Expr> inside;
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    const int64_t n = extent(x, axis), size = to[static_cast<size_t>(axis)];
    require(node, n > 0 && size > 0, "padding of an empty axis by amounts of run time");
    const Expr low = entry_for(node, before, axes, axis, 0);
    const Expr high = entry_for(node, after, axes, axis, 0);
    const Expr at = count_along(node.g, DType::I64, size, 0, 1) - low;
    const Expr kept = equal(low + high, static_cast<double>(size - n));
    x = take_at(node, x, axis, if_kept(kept, source_position(node, mode, at, n)));
    const Expr end = like(at, static_cast<double>(n));
    inside.push_back(
        along(both(less_equal(like(at, 0), at), less(at, end)), axis, x.rank()));
  }
  if (mode == "constant")
    for (Expr mask : inside) x = select(mask, x, fill);
  give(node, 0, x);
}

} // namespace svod
