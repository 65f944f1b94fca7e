// The import driver: shapes of inputs, limits, and how faults are reported. Functions and
// control flow: inline_test.cpp.
#include "importer/operators/onnx_ops.h"
#include "importer/operators/signature.h"
#include "tests/support/import_model.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace svod;
using namespace svod::import_test;

TEST_CASE("a model runs", "[import]") {
  CHECK(run(model({{node("Relu", {"x"}, {"t"}), node("Add", {"t", "w"}, {"y"})},
                   kX,
                   kY,
                   {floats("w", {4}, {10, 20, 30, 40})}})) ==
        std::vector<float>{11, 20, 33, 40});
}

TEST_CASE("an initializer that is an input too is a constant", "[import]") {
  const Imported result = import(model({{node("Add", {"x", "w"}, {"y"})},
                                        {kX[0], value("w", {4})},
                                        kY,
                                        {floats("w", {4}, {1, 1, 1, 1})}}));
  REQUIRE(result.graph);
  CHECK(result.graph->inputs().size() == 1);
}

TEST_CASE("denormal weights are zeros beside others", "[import]") {
  const auto weights_of = [](std::vector<float> values,
                             const ImportOptions& options = {}) {
    const auto count = static_cast<int64_t>(values.size());
    const Imported result = import(model({{node("Mul", {"x", "w"}, {"y"})},
                                          {value("x", {count})},
                                          {value("y", {count})},
                                          {floats("w", {count}, values)}}),
                                   options);
    REQUIRE(result.graph);
    const std::span<const std::byte> bytes = result.graph->blob(0).bytes();
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  };
  std::vector<float> given(64, 0.5F);
  given[3] = 1e-40F, given[9] = -1e-45F, given[20] = 2e-38F;
  std::vector<float> cleared = given;
  cleared[3] = cleared[9] = 0;
  CHECK(weights_of(given) == cleared);
  ImportOptions exact;
  exact.exact = true;
  CHECK(weights_of(given, exact) == given);
  // What may be a threshold, and what has nothing larger.
  given.resize(63);
  CHECK(weights_of(given) == given);
  const std::vector<float> small(64, 1e-40F);
  CHECK(weights_of(small) == small);
}

TEST_CASE("outputs may be inputs and constants", "[import]") {
  const Imported result = import(
      model({{}, kX, {value("x", {4}), value("w", {1})}, {floats("w", {1}, {5})}}));
  REQUIRE(result.graph);
  CHECK(result.graph->outputs().size() == 2);
}

TEST_CASE("dead nodes stop nothing", "[import]") {
  CHECK(
      import(model({{node("NoSuchOperator", {"x"}, {"dead"}), node("Relu", {"x"}, {"y"})},
                    kX,
                    kY,
                    {}}))
          .graph);
}

TEST_CASE("unknown dimensions", "[import]") {
  const auto with_input = [](const std::vector<Dim>& dims) {
    return model(
        {{node("Relu", {"x"}, {"y"})}, {value("x", dims)}, {value("y", {1})}, {}});
  };
  const auto shape_of = [](const Imported& result) {
    INFO(result.text());
    REQUIRE(result.graph);
    return (*result.graph)[result.graph->outputs()[0].node].shape;
  };
  const Imported batch = import(with_input({"batch", 3}));
  CHECK(shape_of(batch) == Shape{1, 3});
  CHECK(batch.text().find("leading dimension of input 'x' is unknown and becomes 1") !=
        std::string::npos);
  CHECK(shape_of(import(with_input({"", 3}))) == Shape{1, 3});
  CHECK(shape_of(import(with_input({-1, 3}))) == Shape{1, 3});
  refused(with_input({"n", "c", "h"}), Exit::Unsupported, "use --shape c=N --shape h=N");
  refused(with_input({"n", "", 7}), Exit::Unsupported, "use --shape x=1xNx7");
  refused(with_input({-2, 3}), Exit::InvalidModel, "negative dimension -2");

  ImportOptions options;
  options.shapes = {{"x", {2, 5}}};
  CHECK(shape_of(import(with_input({"n", "c"}), options)) == Shape{2, 5});
  CHECK(shape_of(
            import(model({{node("Relu", {"x"}, {"y"})},
                          {data(1, "x") + data(2, data(1, number(1, kF32)))}, // no rank
                          {value("y", {1})},
                          {}}),
                   options)) == Shape{2, 5});
  options.shapes = {{"c", {6}}};
  CHECK(shape_of(import(with_input({"n", "c"}), options)) == Shape{1, 6});
  // One name is one number, wherever it is.
  const std::string two = model({{node("Add", {"x", "z"}, {"y"})},
                                 {value("x", {"n", "c"}), value("z", {1, "c"})},
                                 {value("y", {1})},
                                 {}});
  options.shapes = {{"x", {3, 8}}};
  CHECK(shape_of(import(two, options)) == Shape{3, 8});
  options.shapes = {{"x", {3, 8}}, {"c", {9}}};
  refused(two, Exit::Usage, "dimension 'c' is given as", options);
  // Names that mean none may be several numbers.
  for (const char* unknown : {"?", "-1", "None"}) {
    options.shapes = {{"x", {3, 8}}};
    CHECK(shape_of(import(with_input({unknown, unknown}), options)) == Shape{3, 8});
  }
  options.shapes = {{"nosuch", {1}}};
  refused(with_input({3}), Exit::Usage, "no input and no dimension 'nosuch'", options);
}

TEST_CASE("a shape given wins over the declared one, and over what follows from it",
          "[import]") {
  const std::string bytes =
      model({{node("Relu", {"x"}, {"a"}), node("Neg", {"a"}, {"y"})},
             {value("x", {1, 3}), value("z", {"n"})},
             {value("y", {1, 3})},
             {}});
  ImportOptions options;
  options.shapes = {{"x", {4, 3}}};
  const Imported replaced = import(bytes, options);
  CHECK((*replaced.graph)[0].shape == Shape{4, 3});
  CHECK(replaced.text().find("input 'x' is 1x3 in the model and becomes 4x3") !=
        std::string::npos);
  options.shapes = {{"x", {7}}};
  CHECK((*import(bytes, options).graph)[0].shape == Shape{7});
  options.shapes = {{"x", {1, 3}}};
  CHECK(import(bytes, options).text().find("becomes 1x3") == std::string::npos);
  // A size inside that stays as it was is the node's error.
  options.shapes = {{"x", {4, 3}}};
  refused(model({{node("Add", {"x", "w"}, {"y"})},
                 {value("x", {3, 3})},
                 {value("y", {3, 3})},
                 {floats("w", {3, 3}, std::vector<float>(9, 1))}}),
          Exit::InvalidModel, "(Add)", options);
}

TEST_CASE("an attribute that is none of the operator's is an error", "[import]") {
  const auto with = [](const std::string& op, const std::string& name, int64_t opset,
                       std::vector<std::string> inputs = {"x"}) {
    return model({{node(op, inputs, {"y"}, {attribute(name, 0.5f)})},
                  {value("x", {2, 4})},
                  {value("y", {2, 4})},
                  {floats("w", {4}, {1, 1, 1, 1})}},
                 opset);
  };
  refused(with("LayerNormalization", "epsion", 17, {"x", "w"}), Exit::Unsupported,
          "attribute 'epsion' is not known");
  refused(with("Relu", "slope", 17), Exit::Unsupported, "attribute 'slope'");
  // Before it was standard it was ONNX Runtime's, whose schema leaves them unchecked.
  const Imported vendor = import(with("LayerNormalization", "epsion", 11, {"x", "w"}));
  CHECK(vendor.graph);
  CHECK(vendor.text().find("'epsion' is none of the operator's") != std::string::npos);
}

TEST_CASE("constants of strings", "[import]") {
  for (const std::string& constant :
       {text_attribute("value_string", "b"),
        data(1, "value_strings") + data(9, "b") + data(9, "b") + number(20, 8)}) {
    const Imported result = imported(model(
        {{node("Constant", {}, {"k"}, {constant}),
          node("Constant", {}, {"m"}, {constant}), node("Equal", {"k", "m"}, {"y"})},
         {},
         {value("y", {""}, kBool)},
         {}},
        19));
    const Evaluated run = evaluate(*result.graph, {});
    REQUIRE(run.failed == kNoNode);
    for (std::byte equal : run.outputs.at(0).bytes) CHECK(equal == std::byte{1});
  }
}

TEST_CASE("shapes of data give way to --shape", "[import]") {
  const std::string bytes = model(
      {{node("Relu", {"x"}, {"y"})}, {value("x", {"n", "c"})}, {value("y", {1})}, {}});
  ImportOptions options;
  options.data_shapes = {{"x", {7, 2}}};
  CHECK((*import(bytes, options).graph)[0].shape == Shape{7, 2});
  options.shapes = {{"x", {5, 5}}};
  CHECK((*import(bytes, options).graph)[0].shape == Shape{5, 5});
}

TEST_CASE("all unsupported nodes are reported, and each root cause once", "[import]") {
  const Imported result = import(
      model({{node("NoSuch", {"x"}, {"a"}, {}, "", "first"), node("Relu", {"a"}, {"b"}),
              node("Other", {"b"}, {"c"}, {}, "", "second"),
              node("Relu", {"x"}, {"d"}, {attribute("nosuch", int64_t{1})}, "", "third"),
              node("Add", {"c", "d"}, {"y"})},
             kX,
             kY,
             {}}));
  INFO(result.text());
  CHECK(result.diags.exit() == Exit::Unsupported);
  CHECK(result.diags.error_count() == 3);
  for (const char* part :
       {"node 0 'first' (NoSuch)", "node 2 'second' (Other)",
        "node 3 'third' (Relu): error: attribute 'nosuch' is not known"})
    CHECK(result.text().find(part) != std::string::npos);
}

TEST_CASE("messages say what the node was given", "[import]") {
  const Imported result =
      import(model({{node("MatMul", {"x", "w"}, {"y"}, {}, "", "head")},
                    kX,
                    kY,
                    {floats("w", {3, 1}, {1, 2, 3})}}));
  CHECK(result.text().find("its inputs are f32[4] 'x', f32[3,1] 'w'") !=
        std::string::npos);
  refused(model({{node("Relu", {"x"}, {"y"}, {}, "com.example")}, kX, kY, {}}, 17,
                opset("com.example", 1)),
          Exit::Unsupported, "com.example.Relu is no standard operator");
}

TEST_CASE("counts and types of inputs are those of the schema", "[import]") {
  const auto one = [](const std::string& n, int version = 17) {
    return model({{n}, kX, kY, {ints("i", {4}, {1, 2, 3, 4})}}, version);
  };
  refused(one(node("Relu", {"x", "x"}, {"y"})), Exit::InvalidModel, "takes 1 to 1");
  refused(one(node("Add", {"x"}, {"y"})), Exit::InvalidModel, "it has 1 inputs");
  refused(one(node("Relu", {"x"}, {"y", "z"})), Exit::InvalidModel, "more outputs");
  refused(one(node("Add", {"x", "i"}, {"y"})), Exit::InvalidModel,
          "input 1 is i64, an input before it is f32");
  refused(one(node("And", {"x", "x"}, {"y"})), Exit::InvalidModel, "does not take");
  refused(model({{node("Relu", {"x"}, {"y"}, {attribute("alpha", 1.f)})}, kX, kY, {}}),
          Exit::Unsupported, "attribute 'alpha' is not known");
  refused(model({{node("LeakyRelu", {"x"}, {"y"}, {attribute("alpha", int64_t{1})})},
                 kX,
                 kY,
                 {}}),
          Exit::InvalidModel, "wrong type");
  refused(model({{node("LeakyRelu", {"x"}, {"y"},
                       {attribute("alpha", std::numeric_limits<float>::infinity())})},
                 kX,
                 kY,
                 {}}),
          Exit::InvalidModel, "not finite");
}

TEST_CASE("attributes that the schema requires may not be left out", "[import]") {
  const auto one = [](const std::string& n) { return model({{n}, kX, kY, {}}); };
  refused(one(node("LRN", {"x"}, {"y"})), Exit::InvalidModel,
          "attribute 'size' is missing, and the operator needs it");
  refused(one(node("Loop", {"", "", "x"}, {"y"})), Exit::InvalidModel,
          "attribute 'body' is missing");
  imported(one(node("Clip", {"x", "", ""}, {"y"})));
}

TEST_CASE("what an operator gives has a type of its schema", "[import]") {
  const auto to_float8 = [](int version) {
    return model({{node("Cast", {"x"}, {"t"}, {attribute("to", int64_t{17})}),
                   node("Cast", {"t"}, {"y"}, {attribute("to", int64_t{1})})},
                  kX,
                  kY,
                  {}},
                 version);
  };
  refused(to_float8(13), Exit::InvalidModel,
          "its output 0 is f8e4m3fn, which the operator does not give in opset 13");
  imported(to_float8(19));
}

TEST_CASE("signatures follow the versions of an operator", "[import]") {
  REQUIRE(find_signature("", "Clip", 6));
  CHECK(find_signature("", "Clip", 6)->most_inputs == 1);
  CHECK(find_signature("", "Clip", 11)->most_inputs == 3);
  CHECK(find_signature("", "Clip", 28)->most_inputs == 3);
  CHECK(find_signature("", "Relu", 1)->first == 1);
  CHECK(find_signature("", "LayerNormalization", 16)->first == 17);
  CHECK_FALSE(find_signature("", "NoSuch", 17));
  CHECK_FALSE(find_signature("com.example", "Relu", 17));
}

TEST_CASE("what the rules make is limited", "[import]") {
  ImportOptions options;
  options.limits.graph_nodes = 3;
  std::vector<std::string> nodes;
  for (int i = 0; i < 5; ++i)
    nodes.push_back(node(i % 2 ? "Neg" : "Exp", {i ? "t" + std::to_string(i) : "x"},
                         {"t" + std::to_string(i + 1)}));
  refused(model({nodes, kX, {value("t5", {4})}, {}}), Exit::InvalidModel,
          "more operations than the limit of 3", options);
}

TEST_CASE("a branch that does not fit these shapes stops the run that chooses it",
          "[import]") {
  const std::string fits =
      graph({{node("Neg", {"x"}, {"a"})}, {}, {value("a", {4})}, {}});
  const std::string misfits =
      graph({{node("Flatten", {"x"}, {"b"}, {attribute("axis", int64_t{9})})},
             {},
             {value("b", {4})},
             {}});
  for (bool misfit_first : {false, true}) {
    const Imported result = import(
        model({{node("If", {"c"}, {"y"},
                     {graph_attribute("then_branch", misfit_first ? misfits : fits),
                      graph_attribute("else_branch", misfit_first ? fits : misfits)})},
               {kX[0], value("c", {}, kBool)},
               kY,
               {}}));
    INFO(result.text());
    REQUIRE(result.graph);
    CHECK(result.text().find("does not fit") != std::string::npos);
    for (bool c : {false, true}) {
      const Tensor condition{DType::Bool, {}, {std::byte(c)}};
      const Evaluated run =
          evaluate(*result.graph, {f32({4}, {1, -2, 3, -4}), condition});
      if (c == misfit_first)
        CHECK(run.outputs.empty());
      else
        CHECK(floats_of(run.outputs.at(0)) == std::vector<float>{-1, 2, -3, 4});
    }
  }
}

TEST_CASE("a hundred thousand faults are a short list", "[import]") {
  std::vector<std::string> nodes(100000, node("NoSuch", {"x"}, {""}));
  for (size_t i = 0; i < nodes.size(); ++i)
    nodes[i] = node("NoSuch", {i ? "t" + std::to_string(i) : "x"},
                    {"t" + std::to_string(i + 1)});
  const Imported result = import(model({nodes, kX, {value("t100000", {4})}, {}}));
  CHECK(result.diags.error_count() == 1000);
  CHECK(result.text().find("there are 99000 more errors") != std::string::npos);
}

TEST_CASE("views of a large weight are no folded memory", "[import]") {
  ImportOptions options;
  options.limits.folded_bytes = 1000;
  const std::string bytes = model(
      {{node("Reshape", {"w", "s"}, {"y"})},
       kX,
       {value("y", {1})},
       {floats("w", {1000}, std::vector<float>(1000, 1)), ints("s", {2}, {10, 100})}});
  CHECK(import(bytes, options).graph);
}

TEST_CASE("shapes that are too large are the model's fault", "[import]") {
  constexpr int64_t kHuge = int64_t{1} << 60;
  const auto shaped = [](const std::string& op, const std::vector<int64_t>& shape) {
    return model({{node(op,
                        op == "ConstantOfShape" ? std::vector<std::string>{"s"}
                                                : std::vector<std::string>{"x", "s"},
                        {"y"})},
                  kX,
                  kY,
                  {ints("s", {static_cast<int64_t>(shape.size())}, shape)}});
  };
  refused(shaped("Tile", {kHuge}), Exit::InvalidModel, "over the limit");
  for (const char* op : {"ConstantOfShape", "Expand"}) {
    INFO(op);
    refused(shaped(op, op == std::string("Expand") ? std::vector{kHuge, int64_t{4}}
                                                   : std::vector{kHuge}),
            Exit::InvalidModel, "over the limit");
  }
  // Two thousand million equal axes are one node, and never a list.
  const std::string many =
      node("ConstantOfShape", {"s"}, {"many"},
           {data(1, "value") + data(5, ints("", {1}, {1})) + number(20, 4)});
  refused(model({{many, node("Unsqueeze", {"x", "many"}, {"y"})},
                 kX,
                 kY,
                 {ints("s", {1}, {(int64_t{1} << 31) - 1})}}),
          Exit::Unsupported, "more elements than a list");
  std::vector<std::string> nodes{node("Identity", {"x"}, {"t0"})};
  for (int i = 0; i < 70; ++i) {
    const std::string t = "t" + std::to_string(i);
    nodes.push_back(node("Concat", {t, t}, {"t" + std::to_string(i + 1)},
                         {attribute("axis", int64_t{0})}));
  }
  refused(model({nodes, kX, {value("t70", {4})}, {}}), Exit::InvalidModel,
          "over the limit");
}

TEST_CASE("types that are no tensors of ours are refused by name", "[import]") {
  refused(model({{node("Relu", {"x"}, {"y"})}, {value("x", {4}, 15)}, kY, {}}),
          Exit::InvalidModel, "input 0 is c128, which the operator does not take");
  refused(model({{node("Identity", {"x"}, {"y"})}, {value("x", {4}, 28)}, kY, {}}),
          Exit::Unsupported, "input 'x' has element type");
  const std::string sequence =
      data(1, "x") + data(2, data(4, data(1, data(1, number(1, kF32)))));
  refused(model({{node("Relu", {"x"}, {"y"})}, {sequence}, kY, {}}), Exit::Unsupported,
          "input 'x' is a sequence of unknown length; use --shape x=N");
  refused(model({{node("Cast", {"w"}, {"y"}, {attribute("to", int64_t{1})})},
                 kX,
                 kY,
                 {tensor("w", 15, {2}, data(9, std::string(32, 0)))}}),
          Exit::InvalidModel, "input 0 is c128, which the operator does not take");
}

TEST_CASE("a clip of 0 is none", "[import]") {
  const auto layer = [](float clip) {
    return model({{node("RNN", {"x", "w", "w"}, {"y"},
                        {attribute("hidden_size", int64_t{1}), attribute("clip", clip)})},
                  {value("x", {1, 1, 1})},
                  {value("y", {1, 1, 1, 1})},
                  {floats("w", {1, 1, 1}, {1})}});
  };
  CHECK(run(layer(0), {2}).at(0) == Approx(std::tanh(2.0)));
  CHECK(run(layer(0.5f), {2}).at(0) == Approx(std::tanh(0.5)));
  refused(layer(-1), Exit::InvalidModel, "clip must not be negative");
}
