// Operators that make bounded tensors longer: Concat, Pad and Tile. Where every element
// of the result comes from is arithmetic on positions and the sizes of the run.
#include "importer/bounded/bounded_rules.h"
#include "importer/bounded/run_time_movement.h"

#include <algorithm>

namespace svod::importer {

// What a run adds to a state that grows. Nothing where the pieces are others.
static std::optional<Expr> written_behind_first(NodeImport& node, int64_t axis) {
  if (node.input_count() != 2) return std::nullopt;
  const Expr rows = operand(node, 1);
  const int64_t bound = extent(operand(node, 0), axis) + extent(rows, axis);
  return written_behind(node, 0, axis, rows, size_along(node, 0, axis), bound);
}

// Pieces lie one after the other at the places their counts give; one gather over the
// pieces as they are. A bounded last piece needs none.
void bounded_concat(NodeImport& node, Rule rule) {
  const int64_t axis = node.axis(
      node.opset < 4 && !node.has("axis") ? 1 : node.get_int("axis"), node.rank(0));
  const int64_t rank = node.rank(0);
  Counts counts(static_cast<size_t>(rank), kNoNode);
  for (int64_t other = 0; other < rank; ++other) {
    std::vector<InputAxis> all;
    for (size_t i = 0; i < node.input_count(); ++i) {
      require(node, node.rank(i) == rank, "inputs must have equal ranks");
      all.push_back({i, other});
    }
    if (other != axis)
      counts[static_cast<size_t>(other)] = agreed_count(node, all, false);
  }
  Expr total = number(node.g, DType::I64, 0), places = total;
  int64_t bound = 0;
  for (size_t i = 0; i < node.input_count(); ++i)
    bound += node.shape(i)[static_cast<size_t>(axis)];
  const Expr at = count_along(node.g, DType::I64, bound, 0, 1);
  places = like(at, 0);
  int64_t start = 0;
  bool moved = false;
  for (size_t i = 0; i < node.input_count(); ++i) {
    moved |= i + 1 < node.input_count() && count_along(node, i, axis) != kNoNode;
    // From the last place that was reached on, until the next piece takes over.
    places = select(less(at, total), places, at - total + static_cast<double>(start));
    total = total + size_along(node, i, axis);
    start += node.shape(i)[static_cast<size_t>(axis)];
  }
  rule(node);
  if (const std::optional<Expr> grown = written_behind_first(node, axis)) {
    give(node, 0, *grown);
  } else if (moved && bound > 0) {
    const Expr joined{&node.g, node.results()[0]};
    const Expr safe = select(less(at, total), places, like(places, 0));
    give(node, 0, take(joined, axis, safe));
  }
  counts[static_cast<size_t>(axis)] = known(total) ? kNoNode : total.id;
  node.set_counts(0, tidy(counts));
}

// Pads of the run, sizes of the run, or both.
void bounded_pad(NodeImport& node, Rule) {
  const std::string mode = node.get_string("mode");
  if (node.opset >= 11 || !node.model_node.domain.empty())
    return pad_within_bounds(node, mode);
  const std::vector<int64_t> amounts =
      node.get_ints(node.opset == 1 ? "paddings" : "pads");
  require(node, std::ssize(amounts) == 2 * node.rank(0),
          "pads must have two entries per axis");
  const Expr fill = number(node.g, node.dtype(0), node.get_float("value"));
  const Shape shape{std::ssize(amounts)};
  pad_within_bounds(node, mode, Expr{&node.g, tensor_i64(node.g, shape, amounts)}, fill);
}

// Whole tensors side by side: the positions count anew after each.
void bounded_tile(NodeImport& node, Rule) {
  Expr x = operand(node, 0);
  if (node.opset < 6) refuse_bounded(node, 0, 0);
  require(node, node.shape(1) == Shape{x.rank()}, "repeats must have one entry per axis");
  std::vector<Size> sizes = sizes_of(node, 0);
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    const Expr times = entry_of(operand(node, 1), axis);
    const auto value = known_ints(node.g, times.id);
    if (value && value->front() == 1) continue;
    require(node, !value || value->front() >= 0, "a number of repeats is negative");
    Size& size = sizes[static_cast<size_t>(axis)];
    const Expr have = size.size;
    const auto all = known_ints(node.g, (have * times).id);
    size = all ? known_size(node.g, all->front()) : bounded_size(node, have * times);
    const Expr at = count_along(node.g, DType::I64, size.bound, 0, 1);
    if (extent(x, axis) == 0) refuse_bounded(node, 0, axis);
    x = take_at(node, x, axis, apply(Op::Mod, at, maximum(have, 1)));
  }
  give_bounded(node, 0, x, sizes);
}

} // namespace svod::importer
