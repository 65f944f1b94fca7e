// Tree ensembles: where a value goes for each comparison, missing values, sets, targets;
// support vector machines. Expected values are worked out from the specification.
#include "compiler/ir/parse.h"
#include "compiler/ir/verify.h"
#include "tests/support/run_rule.h"

using namespace svod;
using namespace svod::rule_test;

namespace {

const float kNan = std::numeric_limits<float>::quiet_NaN();

ModelAttribute floats(const std::string& name, std::vector<float> values) {
  ModelAttribute a;
  a.name = name;
  a.type = AttributeType::Floats;
  a.floats = std::move(values);
  return a;
}
ModelAttribute strings(const std::string& name, std::vector<std::string> values) {
  ModelAttribute a;
  a.name = name;
  a.type = AttributeType::Strings;
  a.strings = std::move(values);
  return a;
}
template <class T>
ModelAttribute numbers(const std::string& name, int type, const std::vector<T>& values) {
  ModelAttribute a;
  a.name = name;
  a.type = AttributeType::Tensor;
  auto kept = std::make_shared<std::vector<T>>(values);
  a.tensor = ModelTensor{
      name, type, {static_cast<int64_t>(values.size())}, std::as_bytes(std::span(*kept)),
      kept, {}};
  return a;
}
using Ints = std::vector<int64_t>;

// One node over two leaves: 1 where the comparison holds, 2 elsewhere.
Operator stump(const std::string& mode, float value, int64_t missing) {
  return {"TreeEnsembleRegressor",
          3,
          {attribute("nodes_treeids", Ints{0, 0, 0}),
           attribute("nodes_nodeids", Ints{0, 1, 2}),
           attribute("nodes_featureids", Ints{0, 0, 0}),
           attribute("nodes_truenodeids", Ints{1, 0, 0}),
           attribute("nodes_falsenodeids", Ints{2, 0, 0}),
           attribute("nodes_missing_value_tracks_true", Ints{missing, 0, 0}),
           floats("nodes_values", {value, 0, 0}),
           strings("nodes_modes", {mode, "LEAF", "LEAF"}),
           attribute("target_treeids", Ints{0, 0}),
           attribute("target_nodeids", Ints{1, 2}), attribute("target_ids", Ints{0, 0}),
           floats("target_weights", {1, 2}), attribute("n_targets", int64_t{1})},
          0,
          1,
          "ai.onnx.ml"};
}

// What the operator gives for x, which is the same for each of many rows like these:
// those take another form.
std::vector<float> scores(const Operator& op, const Tensor& x) {
  constexpr int64_t kTimes = 64;
  const std::vector<float> few = apply(op, {x});
  Tensor repeated{x.dtype, {kTimes * x.shape[0], x.shape[1]}, {}};
  std::vector<float> want;
  for (int64_t i = 0; i < kTimes; ++i) {
    repeated.bytes.insert(repeated.bytes.end(), x.bytes.begin(), x.bytes.end());
    want.insert(want.end(), few.begin(), few.end());
  }
  CHECK(apply(op, {repeated}) == want);
  return few;
}

std::vector<float> where(const std::string& mode, float value, int64_t missing = 0) {
  return scores(stump(mode, value, missing),
                f32({7, 1}, {-kInf, -1, -0.0f, 0, 1, kInf, kNan}));
}

// Two trees of one node each, as opset 5 has them; the second asks for set membership.
Operator ensemble(std::vector<ModelAttribute> more = {}) {
  Operator op{"TreeEnsemble",
              5,
              {attribute("nodes_featureids", Ints{0, 1}),
               numbers<uint8_t>("nodes_modes", 2, {0, 6}),
               numbers<float>("nodes_splits", 1, {0.5f, 0}),
               attribute("nodes_truenodeids", Ints{0, 2}),
               attribute("nodes_trueleafs", Ints{1, 1}),
               attribute("nodes_falsenodeids", Ints{1, 3}),
               attribute("nodes_falseleafs", Ints{1, 1}),
               attribute("leaf_targetids", Ints{0, 1, 0, 1}),
               numbers<float>("leaf_weights", 1, {1, 2, 4, 8}),
               attribute("tree_roots", Ints{0, 1}), attribute("n_targets", int64_t{2})},
              0,
              1,
              "ai.onnx.ml"};
  op.attributes.push_back(numbers<float>("membership_values", 1, {3, -1, 7, kNan}));
  for (ModelAttribute& a : more) op.attributes.push_back(std::move(a));
  return op;
}

} // namespace

TEST_CASE("tree nodes compare as their mode says, and NaN as the node says",
          "[importer][rules][trees]") {
  //                                        -inf -1 -0 0 1 inf NaN
  CHECK(where("BRANCH_LEQ", 0) == std::vector<float>{1, 1, 1, 1, 2, 2, 2});
  CHECK(where("BRANCH_LEQ", -0.0f) == std::vector<float>{1, 1, 1, 1, 2, 2, 2});
  CHECK(where("BRANCH_LT", 0) == std::vector<float>{1, 1, 2, 2, 2, 2, 2});
  CHECK(where("BRANCH_GTE", 0) == std::vector<float>{2, 2, 1, 1, 1, 1, 2});
  CHECK(where("BRANCH_GT", 0) == std::vector<float>{2, 2, 2, 2, 1, 1, 2});
  CHECK(where("BRANCH_EQ", 0) == std::vector<float>{2, 2, 1, 1, 2, 2, 2});
  CHECK(where("BRANCH_NEQ", 0) == std::vector<float>{1, 1, 2, 2, 1, 1, 1});
  CHECK(where("BRANCH_LEQ", 0, 1) == std::vector<float>{1, 1, 1, 1, 2, 2, 1});
  CHECK(where("BRANCH_LT", 1, 1) == std::vector<float>{1, 1, 1, 1, 2, 2, 1});
  CHECK(where("BRANCH_GTE", 1, 1) == std::vector<float>{2, 2, 2, 2, 1, 1, 1});
  CHECK(where("BRANCH_GT", -1, 1) == std::vector<float>{2, 2, 1, 1, 1, 1, 1});
  CHECK(where("BRANCH_EQ", 1, 1) == std::vector<float>{2, 2, 2, 2, 1, 2, 1});
  CHECK(where("BRANCH_NEQ", 1, 1) == std::vector<float>{1, 1, 1, 1, 2, 1, 1});
  CHECK(where("BRANCH_LEQ", kNan) == std::vector<float>{2, 2, 2, 2, 2, 2, 2});
  CHECK(where("BRANCH_GT", kNan, 1) == std::vector<float>{2, 2, 2, 2, 2, 2, 1});
  CHECK(where("BRANCH_NEQ", kNan) == std::vector<float>{1, 1, 1, 1, 1, 1, 1});
  CHECK(where("BRANCH_LT", -kInf) == std::vector<float>{2, 2, 2, 2, 2, 2, 2});
  CHECK(where("BRANCH_LEQ", kInf) == std::vector<float>{1, 1, 1, 1, 1, 1, 2});
}

TEST_CASE("a tree of one leaf adds its score to every row", "[importer][rules][trees]") {
  Operator op = stump("BRANCH_LEQ", 0, 0);
  op.attributes = {attribute("nodes_treeids", Ints{0, 0, 0, 1}),
                   attribute("nodes_nodeids", Ints{0, 1, 2, 0}),
                   attribute("nodes_featureids", Ints{0, 0, 0, 0}),
                   attribute("nodes_truenodeids", Ints{1, 0, 0, 0}),
                   attribute("nodes_falsenodeids", Ints{2, 0, 0, 0}),
                   floats("nodes_values", {0, 0, 0, 0}),
                   strings("nodes_modes", {"BRANCH_LEQ", "LEAF", "LEAF", "LEAF"}),
                   attribute("target_treeids", Ints{0, 0, 1}),
                   attribute("target_nodeids", Ints{1, 2, 0}),
                   attribute("target_ids", Ints{0, 0, 0}),
                   floats("target_weights", {1, 2, 1.5f}),
                   attribute("n_targets", int64_t{1})};
  const Tensor x = f32({2, 1}, {-1, 1});
  auto joined = [&](const char* how) {
    Operator copy = op;
    copy.attributes.push_back(attribute("aggregate_function", how));
    return scores(copy, x);
  };
  check_close(joined("SUM"), {2.5f, 3.5f});
  check_close(joined("AVERAGE"), {1.25f, 1.75f});
  check_close(joined("MIN"), {1, 1.5f});
  check_close(joined("MAX"), {1.5f, 2});
}

TEST_CASE("leaves score several targets, in few rows and in many",
          "[importer][rules][trees]") {
  Operator op = stump("BRANCH_LT", 0, 0);
  op.attributes = {
      attribute("nodes_treeids", Ints{0, 0, 0, 1, 1, 1}),
      attribute("nodes_nodeids", Ints{0, 1, 2, 0, 1, 2}),
      attribute("nodes_featureids", Ints{0, 0, 0, 1, 0, 0}),
      attribute("nodes_truenodeids", Ints{1, 0, 0, 1, 0, 0}),
      attribute("nodes_falsenodeids", Ints{2, 0, 0, 2, 0, 0}),
      floats("nodes_values", {0, 0, 0, 2, 0, 0}),
      strings("nodes_modes", {"BRANCH_LT", "LEAF", "LEAF", "BRANCH_LT", "LEAF", "LEAF"}),
      attribute("target_treeids", Ints{0, 0, 0, 1, 1}),
      attribute("target_nodeids", Ints{1, 1, 2, 1, 2}),
      attribute("target_ids", Ints{0, 2, 1, 1, 0}),
      floats("target_weights", {1, 2, 3, 10, 20}),
      attribute("n_targets", int64_t{3})};
  check_close(scores(op, f32({3, 2}, {-1, 1, -1, 5, 1, 1})),
              {1, 10, 2, 21, 0, 2, 0, 13, 0});
}

TEST_CASE("trees that share nodes or lack features are refused",
          "[importer][rules][trees]") {
  Operator loop = stump("BRANCH_LEQ", 0, 0);
  loop.attributes[3] = attribute("nodes_truenodeids", Ints{0, 0, 0});
  CHECK(loop.run({f32({1, 1}, {0})}).failure.find("cycle") != std::string::npos);
  Operator far = stump("BRANCH_LEQ", 0, 0);
  far.attributes[2] = attribute("nodes_featureids", Ints{3, 0, 0});
  CHECK(far.run({f32({1, 1}, {0})}).failure.find("feature") != std::string::npos);
  CHECK(stump("BRANCH_SIDEWAYS", 0, 0).run({f32({1, 1}, {0})}).failure != "");
}

TEST_CASE("an ensemble of opset 5: sets, targets, aggregates",
          "[importer][rules][trees]") {
  const Tensor x = f32({4, 2}, {0, 3, 1, -1, 0, 2, 1, kNan});
  check_close(scores(ensemble(), x), {5, 0, 4, 2, 1, 8, 0, 10});
  check_close(scores(ensemble({attribute("aggregate_function", int64_t{0})}), {x}),
              {2.5, 0, 2, 1, 0.5, 4, 0, 5});
  check_close(scores(ensemble({attribute("aggregate_function", int64_t{2})}), {x}),
              {1, 0, 4, 2, 1, 8, 0, 2});
  check_close(scores(ensemble({attribute("aggregate_function", int64_t{3})}), {x}),
              {4, 0, 4, 2, 1, 8, 0, 8});
  // NaN belongs to the set where the node says so.
  ModelAttribute missing = attribute("nodes_missing_value_tracks_true", Ints{0, 1});
  check_close(scores(ensemble({missing}), x), {5, 0, 4, 2, 1, 8, 4, 2});
  Operator short_of_lists = ensemble();
  short_of_lists.attributes.back() = numbers<float>("membership_values", 1, {3, 4});
  CHECK(short_of_lists.run({x}).failure.find("membership_values") != std::string::npos);
}

TEST_CASE("two classes of which leaves score one", "[importer][rules][trees]") {
  auto classify = [](std::vector<float> weights, const char* transform) {
    Operator op = stump("BRANCH_LEQ", 0, 0);
    op.name = "TreeEnsembleClassifier";
    op.attributes.resize(8);
    op.attributes.insert(
        op.attributes.end(),
        {attribute("class_treeids", Ints{0, 0}), attribute("class_nodeids", Ints{1, 2}),
         attribute("class_ids", Ints{0, 0}), floats("class_weights", std::move(weights)),
         attribute("classlabels_int64s", Ints{10, 20}),
         attribute("post_transform", transform)});
    op.outputs = 2;
    op.run({f32({2, 1}, {-1, 1})});
    INFO(op.failure);
    REQUIRE(op.results.size() == 2);
    return op;
  };
  Operator share = classify({0.25f, 0.75f}, "NONE");
  CHECK(values<int64_t>(share.results[0]) == Ints{10, 20});
  check_close(values<float>(share.results[1]), {0.75f, 0.25f, 0.25f, 0.75f});
  Operator margin = classify({-0.25f, 0.25f}, "NONE");
  CHECK(values<int64_t>(margin.results[0]) == Ints{10, 20});
  check_close(values<float>(margin.results[1]), {0.25f, -0.25f, -0.25f, 0.25f});
  Operator logistic = classify({-2, 2}, "LOGISTIC");
  check_close(values<float>(logistic.results[1]),
              {0.880797f, 0.119203f, 0.119203f, 0.880797f});
}

TEST_CASE("support vectors: kernels and votes", "[importer][rules]") {
  Operator machine{"SVMRegressor",
                   1,
                   {floats("support_vectors", {1, 0, 0, 1}),
                    floats("coefficients", {2, 3}), floats("rho", {0.5f}),
                    floats("kernel_params", {0.5f, 1, 2}),
                    attribute("n_supports", int64_t{2})},
                   0,
                   1,
                   "ai.onnx.ml"};
  const Tensor x = f32({1, 2}, {2, 4});
  auto with_kernel = [&](const char* type) {
    Operator op = machine;
    op.attributes.push_back(attribute("kernel_type", type));
    return apply(op, {x});
  };
  check_close(with_kernel("LINEAR"), {2 * 2 + 3 * 4 + 0.5f});
  check_close(with_kernel("POLY"), {2 * 4 + 3 * 9 + 0.5f});
  check_close(with_kernel("RBF"), {2 * std::exp(-8.5f) + 3 * std::exp(-6.5f) + 0.5f});
  check_close(with_kernel("SIGMOID"), {2 * std::tanh(2.0f) + 3 * std::tanh(3.0f) + 0.5f});

  // Three classes with one vector each: pairs (0,1), (0,2), (1,2) vote.
  Operator votes{"SVMClassifier",
                 1,
                 {floats("support_vectors", {1, 2, 3}),
                  floats("coefficients", {1, -1, -1, 1, 1, -1}), floats("rho", {0, 0, 0}),
                  attribute("vectors_per_class", Ints{1, 1, 1}),
                  attribute("classlabels_ints", Ints{7, 8, 9})},
                 0,
                 2,
                 "ai.onnx.ml"};
  votes.run({f32({2, 1}, {1, -1})});
  INFO(votes.failure);
  REQUIRE(votes.results.size() == 2);
  check_close(values<float>(votes.results[1]), {-1, -2, -1, 1, 2, 1});
  CHECK(values<int64_t>(votes.results[0]) == Ints{9, 7});
}

TEST_CASE("walks down trees are checked by the evaluator", "[ir]") {
  // Node 0 leads to 1 or 2, which stay; column 1 is below everything.
  auto walk = [](std::vector<uint32_t> table, int64_t root) {
    Graph g;
    NodeId key = g.add_input("x", DType::U32, {2, 2});
    NodeId node = weight(g, DType::U32, {4, 2},
                         g.add_blob(std::as_bytes(std::span(table)),
                                    std::make_shared<std::vector<uint32_t>>(table)));
    NodeId start = constant_int(g, DType::I64, {1}, root);
    g.add_output("y", descend(g, key, node, start, 3));
    REQUIRE(verify(g).empty());
    std::vector<uint32_t> keys{5, 0, 6, 0};
    Evaluated result = evaluate(g, {tensor(DType::U32, {2, 2}, keys)});
    return result.failed == kNoNode ? values<uint32_t>(result.outputs[0])
                                    : std::vector<uint32_t>{};
  };
  const uint32_t stay = 1, ahead = 1 << 16;
  CHECK(walk({5, ahead, 40, stay, 60, stay, UINT32_MAX, stay}, 0) ==
        std::vector<uint32_t>{40, 60});
  CHECK(walk({5, ahead | 2, 40, stay, 60, stay, UINT32_MAX, stay}, 0).empty());
  CHECK(walk({5, 9 * ahead, 40, stay, 60, stay, UINT32_MAX, stay}, 0).empty());
  CHECK(walk({5, ahead, 40, stay, 60, stay, UINT32_MAX, stay}, 4).empty());
}
