// NonMaxSuppression, for all batches and classes at once: as often as boxes may be
// selected, the best box left is taken and the boxes that overlap it too much are struck
// out. How many are selected in all depends on the data, unless the model declares it.
#include "importer/bounded_parts.h"
#include "importer/formula.h"
#include "importer/value_range.h"

#include <algorithm>
#include <limits>

namespace svod {
namespace {

constexpr double kStruck = -std::numeric_limits<double>::infinity();
constexpr int64_t kMostRounds = 256; // the selection is unrolled

struct Boxes {
  Expr top, left, bottom, right, area; // [batch, 1, boxes]
};

Boxes read_boxes(NodeImport& node) {
  Expr all = wide(node, 0);
  auto side = [&](int64_t i) { return unsqueeze(squeeze(cut(all, 2, i, 1), 2), 1); };
  Expr a = side(0), b = side(1), c = side(2), d = side(3);
  Boxes boxes{a, b, c, d, a};
  if (node.get_int("center_point_box")) { // x, y, width, height
    boxes = {b - d / 2.0, a - c / 2.0, b + d / 2.0, a + c / 2.0, a};
  } else { // any two opposite corners
    boxes = {minimum(a, c), minimum(b, d), maximum(a, c), maximum(b, d), a};
  }
  boxes.area = (boxes.bottom - boxes.top) * (boxes.right - boxes.left);
  return boxes;
}

// The shares that the box at `index` [batch, classes, 1] has in common with all boxes.
Expr overlap(const Boxes& boxes, Expr index) {
  const Shape wide{extent(index, 0), extent(index, 1), extent(boxes.area, 2)};
  auto of = [&](Expr side) { return gather(broadcast(side, wide), index, 2); };
  Expr height =
      minimum(of(boxes.bottom), boxes.bottom) - maximum(of(boxes.top), boxes.top);
  Expr width =
      minimum(of(boxes.right), boxes.right) - maximum(of(boxes.left), boxes.left);
  Expr common = maximum(height, 0) * maximum(width, 0);
  Expr joint = of(boxes.area) + boxes.area - common;
  return select(less(like(joint, 0), joint), common / joint, like(joint, 0));
}

// A threshold input, or 0.
Expr threshold(NodeImport& node, size_t i, DType dtype) {
  if (!node.has_input(i)) return number(node.g, dtype, 0);
  require(node, element_count(node.shape(i)) == 1, "a threshold must be one number");
  return reshape(convert(operand(node, i), dtype), {});
}

struct Selection {
  Expr index, valid; // [batch, classes, rounds]
};

Selection select_boxes(NodeImport& node, Expr scores, int64_t rounds) {
  Boxes boxes = read_boxes(node);
  Expr limit = number(node.g, DType::I64, 0);
  if (node.has_input(2)) limit = reshape(convert(operand(node, 2), DType::I64), {});
  Expr most = threshold(node, 3, scores.dtype());
  if (node.has_input(4))
    scores = select(less(threshold(node, 4, scores.dtype()), scores), scores,
                    like(scores, kStruck));
  std::vector<Expr> index, valid;
  for (int64_t round = 0; round < rounds; ++round) {
    Expr best{&node.g, arg_reduce(node.g, Op::ArgMax, scores.id, 2, false)};
    Expr score = gather(scores, best, 2);
    Expr turn = number(node.g, DType::I64, static_cast<double>(round));
    index.push_back(best);
    valid.push_back(both(less(like(score, kStruck), score), less(turn, limit)));
    Expr boxes_at = count_along(node.g, DType::I64, extent(scores, 2), 2, 3);
    Expr struck = either(less(most, overlap(boxes, best)), equal(boxes_at, best));
    scores = select(struck, like(scores, kStruck), scores);
  }
  return {join(index, 2), join(valid, 2)};
}

} // namespace

namespace {

// How many boxes of a class may be selected.
int64_t selection_rounds(NodeImport& node, int64_t boxes,
                         std::optional<int64_t> declared) {
  int64_t rounds = declared ? std::min(*declared, boxes) : boxes;
  if (!node.has_input(2)) return declared ? rounds : 0;
  require(node, element_count(node.shape(2)) == 1,
          "max_output_boxes_per_class must be one number");
  if (const auto most = range_of(node, operand(node, 2));
      most && most->high < double(rounds))
    rounds = static_cast<int64_t>(std::max(most->high, 0.0));
  if (rounds > kMostRounds && !ints_if_known(node, 2))
    node.needs_value(2, "a selection of as many boxes as there are, " +
                            std::to_string(rounds) + ", is too large");
  if (rounds > kMostRounds)
    node.unsupported("a selection of " + std::to_string(rounds) + " boxes");
  return rounds;
}

} // namespace

void import_non_max_suppression(NodeImport& node) {
  Expr scores = wide(node, 1);
  require(node,
          scores.rank() == 3 && node.rank(0) == 3 &&
              node.shape(0) == Shape{extent(scores, 0), extent(scores, 2), 4},
          "boxes and scores do not fit");
  // Boxes that are not meant are struck out from the start.
  scores = masked(scores, node.counts(1), kStruck);
  const int64_t batches = extent(scores, 0), classes = extent(scores, 1);
  std::optional<int64_t> count;
  if (const auto declared = node.declared_shape(0); declared && declared->size() == 2)
    count = declared->front();
  const int64_t rounds = selection_rounds(node, extent(scores, 2), count);
  const int64_t size = batches * classes * rounds;
  require(node, !count || *count <= size, "the declared shape is too large");
  if (size == 0 || count == 0) return node.output(0, tensor_i64(node.g, {0, 3}, {}));
  const Selection chosen = select_boxes(node, scores, rounds);
  const Shape all{batches, classes, rounds};
  const Expr batch = broadcast(count_along(node.g, DType::I64, batches, 0, 3), all);
  const Expr category = broadcast(count_along(node.g, DType::I64, classes, 1, 3), all);
  const Expr rows = join({reshape(batch, {size, 1}), reshape(category, {size, 1}),
                          reshape(chosen.index, {size, 1})},
                         1);
  const Expr valid = reshape(chosen.valid, {size});
  if (count) return give(node, 0, take(rows, 0, true_positions(node, valid, *count)));
  const Places found = true_places(valid);
  give_bounded(node, 0, take(rows, 0, found.places),
               {{found.count, size}, known_size(node.g, 3)});
}

void bounded_nms(NodeImport& node, Rule rule) {
  for (size_t i : {0, 1})
    for (int64_t axis = 0; axis < node.rank(i); ++axis)
      if (count_along(node, i, axis) != kNoNode && axis != (i == 0 ? 1 : 2))
        refuse_bounded(node, i, axis);
  rule(node);
}

} // namespace svod
