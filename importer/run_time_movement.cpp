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

Expr take_at(Expr x, int64_t axis, Expr at) {
  const auto positions = known_ints(*x.g, at.id);
  return positions ? take(x, axis, *positions) : take(x, axis, at);
}

} // namespace

void slice_at_run_time(NodeImport& node) {
  Expr x = operand(node, 0);
  const Shape to = declared_instead(node, 1, 0, x.rank());
  std::optional<Expr> axes;
  if (node.has_input(3)) axes = operand(node, 3);
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    const double n = static_cast<double>(extent(x, axis));
    Expr start = entry_for(node, operand(node, 1), axes, axis, 0);
    Expr step = number(node.g, DType::I64, 1);
    if (node.has_input(4)) step = entry_for(node, operand(node, 4), axes, axis, 1);
    start = select(less(start, 0), start + n, start);
    const Expr last = select(less(step, 0), like(start, n - 1), like(start, n));
    start = minimum(maximum(start, 0), last);
    const int64_t count = to[static_cast<size_t>(axis)];
    x = take_at(x, axis, start + count_along(node.g, DType::I64, count, 0, 1) * step);
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
  const Expr before = cut(reshape(operand(node, 1), {2 * count}), 0, 0, count);
  Expr fill = number(node.g, x.dtype(), 0);
  if (node.has_input(2)) fill = reshape(operand(node, 2), {});
  std::vector<Expr> inside;
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    const int64_t n = extent(x, axis), size = to[static_cast<size_t>(axis)];
    require(node, n > 0 && size > 0, "padding of an empty axis by amounts of run time");
    const Expr at = count_along(node.g, DType::I64, size, 0, 1) -
                    entry_for(node, before, axes, axis, 0);
    x = take_at(x, axis, source_position(node, mode, at, n));
    const Expr high = like(at, static_cast<double>(n));
    inside.push_back(
        along(both(less_equal(like(at, 0), at), less(at, high)), axis, x.rank()));
  }
  if (mode == "constant")
    for (Expr mask : inside) x = select(mask, x, fill);
  give(node, 0, x);
}

} // namespace svod
