// NonMaxSuppression. Which box is compared with which depends on data from one box to the
// next, so no composition of our ops does it without looking at all boxes again for each
// that is selected: it is a call (importer/rules/vision/select_boxes.h), as image
// decoders are. How many boxes are selected in all depends on the data, unless the model
// declares it.
#include "importer/bounded/bounded.h"
#include "importer/formula/formula.h"
#include "importer/formula/value_range.h"
#include "importer/rules/vision/select_boxes.h"
#include "runtime_stub/status.h"

#include <algorithm>
#include <limits>
#include <span>

namespace svod::importer {

extern const char kText_select_boxes[];

namespace {

constexpr double kStruck = -std::numeric_limits<double>::infinity();
constexpr int64_t kMostRows = int64_t{1} << 22; // of the result

// A threshold input as [1].
Expr threshold(NodeImport& node, size_t i, double otherwise) {
  if (!node.has_input(i)) return {&node.g, constant(node.g, DType::F32, {1}, otherwise)};
  require(node, element_count(node.shape(i)) == 1, "a threshold must be one number");
  return reshape(convert(operand(node, i), DType::F32), {1});
}

// How many boxes of a class may be selected.
int64_t most_selected(NodeImport& node, int64_t boxes, std::optional<int64_t> declared) {
  int64_t most = declared ? std::min(*declared, boxes) : boxes;
  if (!node.has_input(2)) return declared ? most : 0;
  require(node, element_count(node.shape(2)) == 1,
          "max_output_boxes_per_class must be one number");
  if (const auto range = range_of(node, operand(node, 2));
      range && range->high < double(most))
    most = static_cast<int64_t>(std::max(range->high, 0.0));
  return most;
}

// Tensors are boxes, scores, how many are wanted, the two thresholds; then the rows,
// their number, and the memory to work in. `exact`: as many rows as the result has.
std::string call_text(const boxes::Sizes& sizes, bool exact) {
  const auto tensor = [](size_t i, const std::string& type) {
    return "static_cast<" + type + "*>(tensors[" + std::to_string(i) + "])";
  };
  std::string numbers;
  for (int64_t n : {sizes.batches, sizes.classes, sizes.count, sizes.most, sizes.rows})
    numbers += std::to_string(n) + ", ";
  std::string out = "#include <stddef.h>\n#include <stdint.h>\nnamespace {\n";
  std::string_view text = kText_select_boxes;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (!line.starts_with("#")) out.append(line).append("\n");
  }
  return out + "}\nstatic __INT32_TYPE__ svod_call(void* const* tensors) {\n" +
         "  const int64_t found = svod::boxes::select_boxes({" + numbers +
         (sizes.center ? "true" : "false") + "}, " + tensor(0, "const float") + ", " +
         tensor(1, "const float") + ", *" + tensor(2, "const int64_t") + ", *" +
         tensor(3, "const float") + ", *" + tensor(4, "const float") + ", " +
         tensor(5, "int64_t") + ", tensors[7]);\n  *" + tensor(6, "int64_t") +
         " = found;\n  return " +
         (exact ? "found == " + std::to_string(sizes.rows) +
                      " ? 0 : " + std::to_string(SVOD_INDEX)
                : "0") +
         ";\n}\n";
}

} // namespace

void import_non_max_suppression(NodeImport& node) {
  Graph& g = node.g;
  Expr scores = convert(operand(node, 1), DType::F32);
  require(node,
          scores.rank() == 3 && node.rank(0) == 3 &&
              node.shape(0) == Shape{extent(scores, 0), extent(scores, 2), 4},
          "boxes and scores do not fit");
  // Boxes that are not meant are below every threshold.
  scores = masked(scores, node.counts(1), kStruck);
  boxes::Sizes sizes{extent(scores, 0),
                     extent(scores, 1),
                     extent(scores, 2),
                     0,
                     0,
                     node.get_int("center_point_box") != 0};
  std::optional<int64_t> count;
  if (const auto declared = node.declared_shape(0); declared && declared->size() == 2)
    count = declared->front();
  sizes.most = most_selected(node, sizes.count, count);
  const int64_t all = sizes.batches * sizes.classes * sizes.most;
  require(node, !count || *count <= all, "the declared shape is too large");
  if (all == 0 || count == 0) return node.output(0, tensor_i64(g, {0, 3}, {}));
  sizes.rows = count.value_or(all);
  if (sizes.rows > kMostRows || sizes.count > INT32_MAX - boxes::kBlock)
    node.unsupported("a selection of up to " + std::to_string(all) +
                     " boxes; make max_output_boxes_per_class a constant, or smaller");
  const std::string text = call_text(sizes, count.has_value());
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  const int64_t function = g.add_blob(std::vector<std::byte>(bytes.begin(), bytes.end()));
  Expr wanted{&g, constant_int(g, DType::I64, {1}, sizes.most)};
  if (node.has_input(2)) wanted = reshape(convert(operand(node, 2), DType::I64), {1});
  const std::vector<NodeId> inputs{convert(operand(node, 0), DType::F32).id, scores.id,
                                   wanted.id, threshold(node, 3, 0).id,
                                   threshold(node, 4, kStruck).id};
  const auto output = [&](int64_t i, const Shape& shape) {
    return Expr{&g, rebuild(g, {Op::Call,
                                DType::I64,
                                shape,
                                {function, i, 24 * sizes.rows, 8, work_bytes(sizes)},
                                inputs})};
  };
  const Expr rows = output(0, {sizes.rows, 3});
  if (count) return give(node, 0, rows);
  const Expr found = reshape(output(1, {1}), {});
  give_bounded(
      node, 0, rows,
      {{clamp(found, 0, static_cast<double>(sizes.rows)), sizes.rows}, known_size(g, 3)});
}

void bounded_nms(NodeImport& node, Rule rule) {
  for (size_t i : {0, 1})
    for (int64_t axis = 0; axis < node.rank(i); ++axis)
      if (count_along(node, i, axis) != kNoNode && axis != (i == 0 ? 1 : 2))
        refuse_bounded(node, i, axis);
  rule(node);
}

} // namespace svod::importer
