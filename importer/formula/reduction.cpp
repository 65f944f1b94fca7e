// Axes come from an attribute in older opsets and from an input in newer ones; none of
// them means all axes.
#include "importer/formula/reduction.h"

#include "importer/formula/formula.h"

#include <algorithm>

namespace svod::importer {

namespace {

// That the entries of input 1 are `axes`; one of extent 1 that stays may be among them.
void promise_axes(NodeImport& node, const std::vector<int64_t>& axes, bool keep) {
  const Shape& from = node.shape(0);
  const Expr given = convert(operand(node, 1), DType::I64);
  for (int64_t axis = 0; axis < node.rank(0); ++axis) {
    const bool gone = std::ranges::count(axes, axis) > 0;
    if (gone && keep && from[static_cast<size_t>(axis)] == 1) continue;
    const Expr named = either(equal(given, static_cast<double>(axis)),
                              equal(given, static_cast<double>(axis - node.rank(0))));
    const Expr kept = all_true(apply(Op::Not, named));
    promise(node, gone ? apply(Op::Not, kept) : kept);
  }
}

// The axes that turn the input's shape into the declared one, where they depend on the
// model's inputs. An axis of extent 1 may count either way: reducing it changes nothing.
std::vector<int64_t> declared_axes(NodeImport& node) {
  const Shape& from = node.shape(0);
  const Shape to = declared_instead(node, 1, 0, -1);
  std::vector<int64_t> axes;
  size_t next = 0;
  const bool keep = node.get_int("keepdims") != 0;
  for (size_t i = 0; i < from.size(); ++i) {
    const bool stays = next < to.size() && to[next] == from[i];
    // Without keepdims equal neighbours leave open which of them went.
    if (stays && !keep && to.size() < from.size() && i + 1 < from.size() &&
        std::ranges::count(from, from[i]) > std::ranges::count(to, from[i]))
      node.needs_value(1, "the declared shape leaves open which axes input 1 names");
    if (!stays || (keep && from[i] == 1)) axes.push_back(static_cast<int64_t>(i));
    if (stays || keep) ++next;
  }
  Shape result;
  for (size_t i = 0; i < from.size(); ++i) {
    const bool gone = std::ranges::count(axes, static_cast<int64_t>(i)) > 0;
    if (!gone || keep) result.push_back(gone ? 1 : from[i]);
  }
  require(node, result == to, "no choice of axes gives the declared shape");
  promise_axes(node, axes, keep);
  return axes;
}

} // namespace

std::vector<int64_t> reduction_axes(NodeImport& node) {
  const int64_t rank = node.rank(0);
  std::vector<int64_t> axes;
  bool keep_all = false;
  if (node.has("axes")) {
    axes = node.get_ints("axes");
  } else if (node.opset >= 13 && node.input_count() > 1) {
    const auto known_axes = ints_if_known(node, 1);
    if (!known_axes) return declared_axes(node);
    axes = *known_axes;
  }
  if (node.has("noop_with_empty_axes"))
    keep_all = node.get_int("noop_with_empty_axes") != 0;
  if (axes.empty()) return keep_all ? axes : axes_from(0, rank);
  for (int64_t& axis : axes) axis = node.axis(axis, rank);
  return axes;
}

} // namespace svod::importer
