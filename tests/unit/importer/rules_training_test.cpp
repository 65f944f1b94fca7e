// Optimiser steps past the first one, which the specification's own cases leave out, and
// graphs as attributes of an operator. Expected values are the specification's formulas
// worked out in double.
#include "tests/support/import_model.h"
#include "tests/support/run_rule.h"

using namespace svod;
using namespace svod::importer;
using rule_test::attribute;
using rule_test::check_close;
using rule_test::i64;
using rule_test::Operator;

namespace {

constexpr const char* kTraining = "ai.onnx.preview.training";

Tensor one(float value) { return rule_test::f32({1}, {value}); }

// R = 0.1, X = 1, G = -2 and the statistics, in step T.
Operator step(const char* name, const std::vector<ModelAttribute>& attributes, int64_t t,
              const std::vector<float>& statistics) {
  std::vector<Tensor> inputs = {one(0.1f), i64({}, {t}), one(1), one(-2)};
  for (float value : statistics) inputs.push_back(one(value));
  Operator op{name, 1, attributes, 0, 1 + statistics.size(), kTraining};
  op.run(inputs);
  return op;
}

std::vector<float> results(const Operator& op) {
  INFO(op.failure);
  std::vector<float> all;
  for (const Tensor& t : op.results) all.push_back(rule_test::values<float>(t).at(0));
  return all;
}

std::vector<ModelAttribute> momentum(const char* mode) {
  return {attribute("alpha", 0.9), attribute("beta", 0.8),
          attribute("norm_coefficient", 0.1), attribute("mode", mode)};
}

} // namespace

TEST_CASE("adam corrects for the means' beginning at 0", "[importer][training]") {
  const Operator adam =
      step("Adam",
           {attribute("alpha", 0.9), attribute("beta", 0.8), attribute("epsilon", 0.01),
            attribute("norm_coefficient", 0.1), attribute("norm_coefficient_post", 0.25)},
           2, {0.5f, 4});
  check_close(results(adam), {0.71906209f, 0.26f, 3.922f});
}

TEST_CASE("adagrad's rate decays", "[importer][training]") {
  const Operator adagrad =
      step("Adagrad",
           {attribute("decay_factor", 0.5), attribute("epsilon", 0.01),
            attribute("norm_coefficient", 0.1)},
           2, {4});
  check_close(results(adagrad), {1.03431309f, 7.61f});
}

TEST_CASE("momentum, its first step and Nesterov's form", "[importer][training]") {
  check_close(results(step("Momentum", momentum("standard"), 2, {0.5f})),
              {1.107f, -1.07f});
  check_close(results(step("Momentum", momentum("nesterov"), 2, {0.5f})),
              {1.2863f, -1.07f});
  check_close(results(step("Momentum", momentum("standard"), 0, {0.5f})),
              {1.145f, -1.45f});
  CHECK(step("Momentum", momentum("fast"), 0, {0.5f}).failure.find("mode") !=
        std::string::npos);
  CHECK(step("Momentum", momentum("standard"), 0, {0.5f, 1}).failure.find("equally") !=
        std::string::npos);
}

namespace {

using namespace svod::import_test;

// Attention of one head over one key: its result is the value times what the graph makes
// of the weight 1.
std::string flex_model(const std::string& body) {
  const std::vector<std::string> x = {value("x", {1, 1, 1, 4})};
  const std::string flex = node("FlexAttention", {"x", "x", "x"}, {"y"},
                                {graph_attribute("prob_mod", body)}, "ai.onnx.preview");
  return model({{flex}, x, {value("y", {1, 1, 1, 4})}, {floats("w", {1}, {3})}}, 26,
               opset("ai.onnx.preview", 1));
}

} // namespace

TEST_CASE("a graph changes the weights of attention", "[importer][import]") {
  const std::vector<std::string> in = {value("p", {"b", "h", "l", "s"})},
                                 out = {value("q", {"b", "h", "l", "s"})};
  // `w` is of the graph around it.
  CHECK(run(flex_model(graph({{node("Mul", {"p", "w"}, {"q"})}, in, out, {}}))) ==
        std::vector<float>{3, -6, 9, -12});
  refused(
      flex_model(graph(
          {{node("Transpose", {"p"}, {"t"}), node("Shape", {"t"}, {"q"})}, in, out, {}})),
      Exit::InvalidModel, "prob_mod must give one tensor");
  // What fails inside is reported at its place, and once.
  const Imported failed =
      import(flex_model(graph({{node("Nothing", {"p"}, {"q"})}, in, out, {}})));
  CHECK(failed.text().find("Nothing") != std::string::npos);
  CHECK(failed.diags.error_count() == 1);
}
