// NonMaxSuppression, for all batches and classes at once: as often as boxes may be
// selected, the best box left is taken and the boxes that overlap it too much are struck
// out. How many are selected in all depends on the data; the model must declare it.
#include "importer/formula.h"

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

void import_non_max_suppression(NodeImport& node) {
  Expr scores = wide(node, 1);
  require(node,
          scores.rank() == 3 && node.rank(0) == 3 &&
              node.shape(0) == Shape{extent(scores, 0), extent(scores, 2), 4},
          "boxes and scores do not fit");
  int64_t batches = extent(scores, 0), classes = extent(scores, 1),
          boxes = extent(scores, 2);
  std::optional<Shape> declared = node.declared_shape(0);
  if (!declared || declared->size() != 2)
    node.unsupported(
        "how many boxes are selected depends on the data, and the model declares "
        "no shape for the output");
  int64_t count = declared->at(0), rounds = std::min(count, boxes);
  if (node.has_input(2)) {
    require(node, element_count(node.shape(2)) == 1,
            "max_output_boxes_per_class must be one number");
    if (auto most = ints_if_known(node, 2))
      rounds = std::clamp<int64_t>(most->front(), 0, rounds);
  }
  if (rounds > kMostRounds)
    node.unsupported("a selection of " + std::to_string(rounds) + " boxes");
  require(node, count <= batches * classes * rounds, "the declared shape is too large");
  if (count == 0) return node.output(0, tensor_i64(node.g, {0, 3}, {}));
  Selection chosen = select_boxes(node, scores, rounds);
  Shape all{batches, classes, rounds};
  Expr batch = broadcast(count_along(node.g, DType::I64, batches, 0, 3), all);
  Expr category = broadcast(count_along(node.g, DType::I64, classes, 1, 3), all);
  int64_t size = element_count(all);
  Expr kept = true_positions(node, reshape(chosen.valid, {size}), count);
  Expr rows = join({reshape(batch, {size, 1}), reshape(category, {size, 1}),
                    reshape(chosen.index, {size, 1})},
                   1);
  give(node, 0, take(rows, 0, kept));
}

} // namespace svod
