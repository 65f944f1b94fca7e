// ai.onnx.ml: linear models and the operators that prepare their features. Labels are
// numbers or strings.
#include "importer/rules/ml/features.h"
#include "importer/rules/ml/post_transform.h"
#include "importer/text/strings.h"

#include <algorithm>
#include <numeric>

namespace svod::importer {
namespace {

Expr numbers(NodeImport& node, const std::vector<float>& values, Shape shape,
             DType dtype) {
  return convert({&node.g, tensor_f32(node.g, std::move(shape), values)}, dtype);
}

// One number for all features or one per feature, along the last axis.
Expr per_feature(NodeImport& node, std::string_view name, Expr x) {
  std::vector<float> values = node.get_floats(name);
  auto count = static_cast<int64_t>(values.size());
  require(node, count == 1 || (x.rank() > 0 && count == extent(x, x.rank() - 1)),
          "offset or scale does not fit the features");
  return numbers(node, values, {count}, x.dtype());
}

// x times coefficients [targets, features], plus intercepts.
Expr linear(NodeImport& node, Expr x, int64_t targets) {
  std::vector<float> coefficients = node.get_floats("coefficients");
  int64_t width = extent(x, 1);
  within_reach(node, targets, "targets");
  require(node,
          targets > 0 && static_cast<int64_t>(coefficients.size()) == targets * width,
          "the coefficients do not fit the features");
  Expr w = numbers(node, coefficients, {targets, width}, x.dtype());
  Expr y = matmul(x, permute(w, {1, 0}));
  std::vector<float> intercepts = node.get_floats("intercepts");
  if (intercepts.empty()) return y;
  require(node, static_cast<int64_t>(intercepts.size()) == targets,
          "there must be one intercept per target");
  return y + numbers(node, intercepts, {targets}, x.dtype());
}

} // namespace

void import_scaler(NodeImport& node) {
  Expr x = features(node);
  if (node.has("offset")) x = x - per_feature(node, "offset", x);
  if (node.has("scale")) x = x * per_feature(node, "scale", x);
  give(node, 0, convert(x, DType::F32));
}

void import_normalizer(NodeImport& node) {
  Expr x = features(node);
  require(node, x.rank() >= 1, "the input has no axis");
  std::vector<int64_t> axes{x.rank() - 1};
  std::string norm = node.get_string("norm");
  Expr length = x;
  if (norm == "MAX")
    length = reduce(Op::ReduceMax, absolute(x), axes);
  else if (norm == "L1")
    length = sum(absolute(x), axes);
  else if (norm == "L2")
    length = sqrt(sum(x * x, axes));
  else
    node.invalid("norm '" + norm + "' is not one of MAX, L1, L2");
  // A row of zeros stays one.
  Expr y = x / select(equal(length, 0), like(length, 1), length);
  give(node, 0, convert(y, DType::F32));
}

void import_binarizer(NodeImport& node) {
  Expr x = operand(node, 0);
  give(node, 0, convert(less(like(x, node.get_float("threshold")), x), x.dtype()));
}

void import_linear_regressor(NodeImport& node) {
  Expr y = linear(node, feature_matrix(node), node.get_int("targets"));
  give(node, 0,
       convert(post_transform(node, y, node.get_string("post_transform")), DType::F32));
}

void import_linear_classifier(NodeImport& node) {
  std::vector<int64_t> labels = class_labels(node, "classlabels_ints");
  auto classes = static_cast<int64_t>(labels.size());
  Expr x = feature_matrix(node);
  if (classes < 2) node.unsupported("a classifier of one class");
  std::string transform = node.get_string("post_transform");
  bool one_row =
      static_cast<int64_t>(node.get_floats("coefficients").size()) == extent(x, 1);
  Expr scores = linear(node, x, one_row ? 1 : classes);
  if (one_row) {
    // The margin of the second class; 0 parts the two. What the first one's score is the
    // specification does not say: this is ONNX Runtime's.
    require(node, classes == 2, "the coefficients do not fit the classes");
    if (transform == "PROBIT") node.unsupported("PROBIT of one score for two classes");
    bool logistic = transform == "LOGISTIC";
    Expr second = less(0, scores);
    Expr names{&node.g, tensor_i64(node.g, {2}, labels)};
    give_label(node,
               squeeze(select(second, cut(names, 0, 1, 1), cut(names, 0, 0, 1)), 1));
    scores = join({logistic ? -scores : 1.0 - scores, scores}, 1);
    if (logistic) scores = sigmoid(scores);
    if (node.wants_output(1)) give(node, 1, convert(scores, DType::F32));
    return;
  }
  Expr best{&node.g, arg_reduce(node.g, Op::ArgMax, scores.id, 1, false)};
  Expr names{&node.g, tensor_i64(node.g, {classes}, labels)};
  give_label(node, take(names, 0, squeeze(best, 1)));
  scores = post_transform(node, scores, transform);
  if (node.wants_output(1)) give(node, 1, convert(scores, DType::F32));
}

// Columns of the last axis; the result has at least two axes.
void import_array_feature_extractor(NodeImport& node) {
  Expr x = operand(node, 0), index = operand(node, 1);
  require(node, x.rank() >= 1, "the input has no axis");
  int64_t last = x.rank() - 1, count = element_count(index.shape());
  index = wrap_index(node, reshape(index, {count}), extent(x, last));
  std::optional<std::vector<int64_t>> positions = known_ints(node.g, index.id);
  Expr y = positions ? take(x, last, *positions) : take(x, last, index);
  give(node, 0, x.rank() == 1 ? reshape(y, {1, count}) : y);
}

// Inputs side by side, each cut or filled with zeros to its stated width.
void import_feature_vectorizer(NodeImport& node) {
  std::vector<int64_t> widths = node.get_ints("inputdimensions");
  require(node, widths.size() == node.input_count() && !widths.empty(),
          "inputdimensions must have one entry per input");
  std::vector<Expr> parts;
  for (size_t i = 0; i < widths.size(); ++i) {
    Expr x = convert(operand(node, i), DType::F32);
    if (x.rank() == 1) x = unsqueeze(x, 1);
    require(node, x.rank() >= 2 && widths[i] >= 0, "inputs must be vectors or matrices");
    int64_t rows = extent(x, 0);
    if (x.rank() > 2 && rows > 0) x = reshape(x, {rows, element_count(x.shape()) / rows});
    require(node, x.rank() == 2, "inputs must be vectors or matrices");
    int64_t have = extent(x, 1);
    if (have > widths[i]) x = cut(x, 1, 0, widths[i]);
    if (have < widths[i]) x = pad(x, {0, 0}, {0, widths[i] - have}, 0);
    require(node, extent(x, 0) == (parts.empty() ? extent(x, 0) : extent(parts[0], 0)),
            "the inputs differ in rows");
    parts.push_back(x);
  }
  give(node, 0, join(parts, 1));
}

// An unknown category is a row of zeros; with zeros = 0 it stops the run.
void import_one_hot_encoder(NodeImport& node) {
  std::vector<int64_t> categories = node.get_ints("cats_int64s");
  Expr x = operand(node, 0);
  if (x.dtype() == DType::String) {
    const std::vector<std::string> texts = node.get_strings("cats_strings");
    x = find_strings(node, x, texts);
    categories.resize(texts.size());
    std::iota(categories.begin(), categories.end(), 0);
  }
  require(node, !categories.empty(), "it has no categories of its input's type");
  x = convert(x, DType::I64);
  auto count = static_cast<int64_t>(categories.size());
  Expr known{&node.g, tensor_i64(node.g, {count}, categories)};
  Expr hit = equal(unsqueeze(x, x.rank()), known);
  Expr y = convert(hit, DType::F32);
  if (!node.get_int("zeros")) {
    Expr any = reduce(Op::ReduceMax, convert(hit, DType::U8), {x.rank()});
    Expr at = counter(node.g, DType::I64, Shape(y.shape()), x.rank());
    y = gather(y, if_kept(equal(any, 1), at), x.rank());
  }
  give(node, 0, y);
}

void import_imputer(NodeImport& node) {
  Expr x = operand(node, 0);
  require(node, x.rank() >= 1, "the input has no axis");
  if (is_float(x.dtype())) {
    Expr value = per_feature(node, "imputed_value_floats", x);
    double missing = node.get_float("replaced_value_float");
    Expr hit = missing != missing ? apply(Op::IsNan, x) : equal(x, missing);
    return give(node, 0, select(hit, value, x));
  }
  std::vector<int64_t> values = node.get_ints("imputed_value_int64s");
  auto count = static_cast<int64_t>(values.size());
  require(node, count == 1 || count == extent(x, x.rank() - 1),
          "imputed_value_int64s does not fit the features");
  Expr value = convert({&node.g, tensor_i64(node.g, {count}, values)}, x.dtype());
  Expr missing = convert({&node.g, constant_int(node.g, DType::I64, {},
                                                node.get_int("replaced_value_int64"))},
                         x.dtype());
  give(node, 0, select(equal(x, missing), value, x));
}

} // namespace svod::importer
