// What is taken for granted in a model that breaks the letter of the specification, and
// that a warning says so.
#include "tests/support/import_model.h"

using namespace svod;
using namespace svod::import_test;

namespace {

bool warns(const std::string& bytes, const std::string& what) {
  const Imported result = import(bytes);
  INFO(result.text());
  CHECK(result.graph);
  return result.text().find("warning: " + what) != std::string::npos;
}

} // namespace

TEST_CASE("a known domain that nobody imports is its newest version",
          "[import][repair]") {
  const std::string vendor =
      model({{node("Gelu", {"x"}, {"y"}, {}, "com.microsoft")}, kX, kY, {}});
  CHECK(warns(vendor, "the model imports no opset of domain 'com.microsoft'"));
  const std::string standard =
      number(1, 8) + data(7, graph({{node("Relu", {"x"}, {"y"})}, kX, kY, {}})) +
      opset("com.microsoft", 1);
  CHECK(warns(standard, "the model imports no opset of domain 'ai.onnx'"));
  refused(model({{node("Gelu", {"x"}, {"y"}, {}, "who.knows")}, kX, kY, {}}),
          Exit::InvalidModel, "imports no opset of domain 'who.knows'");
}

TEST_CASE("a domain of the model's own functions needs no import", "[import][repair]") {
  const std::string own =
      function("Twice", {"a"}, {"b"}, {node("Add", {"a", "a"}, {"b"})});
  const std::string bytes =
      model({{node("Twice", {"x"}, {"y"}, {}, "f")}, kX, kY, {}}, 17, own);
  CHECK(warns(bytes, "the model imports no opset of domain 'f'"));
  CHECK(run(bytes) == std::vector<float>{2, -4, 6, -8});
}

TEST_CASE("com.microsoft's operators without their domain", "[import][repair]") {
  CHECK(warns(model({{node("QuickGelu", {"x"}, {"y"})}, kX, kY, {}}),
              "opset 17 of ai.onnx has no operator 'QuickGelu'"));
}

TEST_CASE("a node in the form of another opset", "[import][repair]") {
  const std::string gelu = node("Gelu", {"x"}, {"y"});
  CHECK(warns(model({{gelu}, kX, kY, {}}, 17),
              "opset 17 of ai.onnx has no operator 'Gelu'; that of opset 20 is taken"));
  CHECK_FALSE(warns(model({{gelu}, kX, kY, {}}, 20), "opset 20"));
  const std::string add =
      model({{node("Add", {"x", "w"}, {"y"},
                   {attribute("axis", int64_t{0}), attribute("broadcast", int64_t{1})})},
             kX,
             kY,
             {floats("w", {4}, {1, 2, 3, 4})}});
  CHECK(warns(add,
              "opset 17 of ai.onnx has no operator 'Add' of this form; that of opset 6"));
  CHECK(run(add, {0, 0, 0, 0}) == std::vector<float>{1, 2, 3, 4});
  refused(
      model(
          {{node("Relu", {"x"}, {"y"}, {attribute("strange", int64_t{1})})}, kX, kY, {}}),
      Exit::Unsupported, "attribute 'strange' is not known");
}

TEST_CASE("the last of several Constant nodes counts", "[import][repair]") {
  const auto constant = [](float value) {
    return node("Constant", {}, {"w"},
                {data(1, "value") + data(5, floats("", {1}, {value})) + number(20, 4)});
  };
  const std::string add = node("Add", {"x", "w"}, {"y"});
  const auto sum_with = [&](const std::vector<std::string>& nodes,
                            const std::vector<std::string>& initializers) {
    const std::string bytes = model({nodes, kX, kY, initializers});
    CHECK(warns(bytes, "the constant 'w' is defined more than once"));
    return run(bytes, {0, 0, 0, 0})[0];
  };
  CHECK(sum_with({constant(1), add, constant(2)}, {}) == 2);
  CHECK(sum_with({constant(1), add}, {floats("w", {1}, {5})}) == 5);
}

TEST_CASE("operators without a published signature check their types", "[import]") {
  refused(model({{node("Gelu", {"x"}, {"y"}, {}, "com.microsoft")},
                 {value("x", {4}, kI32)},
                 {value("y", {4}, kI32)},
                 {}}),
          Exit::InvalidModel, "the element types of its inputs do not go together");
}

TEST_CASE("LayerNormalization before the standard had it", "[import]") {
  const std::string attributes =
      node("LayerNormalization", {"x", "s"}, {"y"}, {attribute("epsion", 1.0F)});
  const GraphParts parts{{attributes}, kX, kY, {floats("s", {4}, {1, 1, 1, 1})}};
  CHECK(warns(model(parts, 16), ""));
  refused(model(parts, 17), Exit::Unsupported, "attribute 'epsion' is not known");
}

TEST_CASE("operators that no program can run say what to do", "[import]") {
  const std::string encode =
      node("EncodeImage", {"x"}, {"y"}, {}, "com.microsoft.extensions");
  refused(model({{encode}, kX, kY, {}}, 17, opset("com.microsoft.extensions", 1)),
          Exit::Unsupported, "encode them behind the program");
  const std::string blocked = node("Conv", {"x"}, {"y"}, {}, "com.microsoft.nchwc");
  refused(model({{blocked}, kX, kY, {}}, 17, opset("com.microsoft.nchwc", 1)),
          Exit::Unsupported, "ORT_ENABLE_EXTENDED");
}

TEST_CASE("a branch that declares inputs takes the values outside", "[import][repair]") {
  const auto branch = [](const std::string& op, const std::string& input) {
    return graph({{node(op, {input}, {op})}, {value(input, {4})}, {value(op, {4})}, {}});
  };
  const auto chooses = [&](const std::string& input) {
    return model({{node("ReduceMax", {"x"}, {"m"}, {attribute("keepdims", int64_t{0})}),
                   node("Less", {"m", "limit"}, {"c"}),
                   node("If", {"c"}, {"y"},
                        {graph_attribute("then_branch", branch("Neg", input)),
                         graph_attribute("else_branch", branch("Abs", input))})},
                  kX,
                  kY,
                  {floats("limit", {}, {3})}});
  };
  CHECK(warns(chooses("x"), "the branch"));
  CHECK(run(chooses("x")) == std::vector<float>{1, 2, 3, 4});
  CHECK(run(chooses("x"), {1, -2, 2, -4}) == std::vector<float>{-1, 2, -2, 4});
  refused(chooses("nowhere"), Exit::InvalidModel, "nowhere");
}
