// Sequences, optionals and maps while a model is imported. Expected values are worked out
// by hand from the specification.
#include "tests/support/import_model.h"

using namespace svod;
using namespace svod::import_test;

namespace {

const std::string kPosition = value("p", {}, kI64);

// x is four numbers; `nodes` make y.
std::vector<float> run_nodes(const std::vector<std::string>& nodes,
                             const std::vector<std::string>& initializers = {}) {
  return run(model({nodes, kX, {value("y", {"n"})}, initializers}));
}

// The model's first output for x = 1 2 3 4 and a position of the run; nothing when the
// run stops.
std::optional<std::vector<float>> run_at(const std::vector<std::string>& nodes,
                                         int64_t position) {
  const Imported result =
      import(model({nodes, {value("x", {4}), kPosition}, {value("y", {"n"})}, {}}));
  INFO(result.text());
  REQUIRE(result.graph);
  Tensor at{DType::I64, {}, std::vector<std::byte>(8)};
  std::memcpy(at.bytes.data(), &position, 8);
  const Evaluated out = evaluate(*result.graph, {f32({4}, {1, 2, 3, 4}), at});
  if (out.failed != kNoNode) return std::nullopt;
  return floats_of(out.outputs.at(0));
}

const std::vector<std::string> kThree = {
    node("Add", {"x", "x"}, {"a"}), node("Neg", {"x"}, {"b"}),
    node("SequenceConstruct", {"x", "a", "b"}, {"s"})};

std::vector<std::string> with(std::vector<std::string> nodes,
                              const std::vector<std::string>& more) {
  nodes.insert(nodes.end(), more.begin(), more.end());
  return nodes;
}

std::string one(const std::string& name, int64_t number) {
  return ints(name, {}, {number});
}

} // namespace

TEST_CASE("a sequence as input is an input per element", "[sequence]") {
  const std::string sequence =
      data(1, "x") +
      data(2,
           data(4, data(1, data(1, number(1, kF32) + data(2, data(1, data(2, "n")))))));
  const std::string model_bytes =
      model({{node("SequenceAt", {"x", "i"}, {"y"})}, {sequence}, kY, {one("i", -1)}});
  ImportOptions options;
  options.shapes["x[0]"] = {3};
  options.shapes["x[1]"] = {4};
  const Imported given = import(model_bytes, options);
  INFO(given.text());
  REQUIRE(given.graph);
  REQUIRE(given.graph->inputs().size() == 2);
  CHECK(given.graph->inputs()[1].name == "x[1]");
  CHECK(evaluate(*given.graph, {f32({3}, {1, 2, 3}), f32({4}, {4, 5, 6, 7})})
            .outputs.at(0)
            .shape == Shape{4});
  refused(model_bytes, Exit::Unsupported, "use --shape x=N");
  options.shapes.erase("x[0]");
  refused(model_bytes, Exit::Usage, "is a sequence of unknown length", options);
  options.shapes = {{"x", {0}}};
  refused(model_bytes, Exit::InvalidModel, "position -1 is outside a sequence of 0",
          options);
  options.shapes = {{"x", {1}}};
  options.absent = {"x"};
  refused(model_bytes, Exit::Usage, "no optional input 'x'", options);
}

TEST_CASE("a sequence as output is an output per element", "[sequence]") {
  const Imported made = import(
      model({with(kThree, {node("Identity", {"s"}, {"y"})}), kX, {data(1, "y")}, {}}));
  REQUIRE(made.graph);
  REQUIRE(made.graph->outputs().size() == 3);
  CHECK(made.graph->outputs()[2].name == "y[2]");
  CHECK(evaluate(*made.graph, {f32({4}, {1, 2, 3, 4})}).outputs.at(1).bytes ==
        f32({4}, {2, 4, 6, 8}).bytes);
}

TEST_CASE("a map as input is the vector of the values that are looked up", "[sequence]") {
  const std::string map =
      data(1, "x") +
      data(2, data(5, number(1, kI64) + data(2, data(1, number(1, kF32)))));
  const auto vocabulary = [](const std::vector<int64_t>& keys) {
    std::string out = data(1, "int64_vocabulary") + number(20, 7);
    for (int64_t key : keys) out += number(8, key);
    return out;
  };
  const std::string both =
      model({{node("DictVectorizer", {"x"}, {"a"}, {vocabulary({7, 5})}, "ai.onnx.ml"),
              node("DictVectorizer", {"x"}, {"b"}, {vocabulary({5, 9})}, "ai.onnx.ml"),
              node("Concat", {"a", "b"}, {"y"}, {attribute("axis", int64_t{1})})},
             {map},
             kY,
             {}},
            17, opset("ai.onnx.ml", 1));
  const Imported imported = import(both);
  INFO(imported.text());
  REQUIRE(imported.graph); // keys 5 7 9
  CHECK(floats_of(evaluate(*imported.graph, {f32({3}, {50, 70, 90})}).outputs.at(0)) ==
        std::vector<float>{70, 50, 50, 90});
}

TEST_CASE("a sequence is a list of values when importing", "[sequence]") {
  CHECK(run_nodes(with(kThree, {node("SequenceAt", {"s", "i"}, {"y"})}),
                  {one("i", -1)}) == std::vector<float>{-1, 2, -3, 4});
  const std::vector<std::string> edit = {
      node("SequenceErase", {"s", "i"}, {"t"}),
      node("SequenceInsert", {"t", "b", "i"}, {"u"}),
      node("ConcatFromSequence", {"u"}, {"y"}, {attribute("axis", int64_t{0})})};
  // x = 1 -2 3 -4; [x, a, b] without x, with b in front.
  CHECK(run_nodes(with(kThree, edit), {one("i", 0)}) ==
        std::vector<float>{-1, 2, -3, 4, 2, -4, 6, -8, -1, 2, -3, 4});
  CHECK(run_nodes(
            with(kThree, {node("SequenceErase", {"s"}, {"t"}),
                          node("SequenceLength", {"t"}, {"n"}),
                          node("Cast", {"n"}, {"y"}, {attribute("to", int64_t{1})})})) ==
        std::vector<float>{2});
  refused(
      model(
          {with(kThree, {node("SequenceAt", {"s", "i"}, {"y"})}), kX, kY, {one("i", 3)}}),
      Exit::InvalidModel, "position 3 is outside a sequence of 3 elements");
  refused(model({with(kThree, {node("Relu", {"s"}, {"y"})}), kX, kY, {}}),
          Exit::InvalidModel, "input 0 is a sequence, the operator takes a tensor");
  refused(model({{node("SequenceLength", {"x"}, {"y"})}, kX, kY, {}}), Exit::InvalidModel,
          "which the operator does not take");
}

TEST_CASE("a position of the run picks among equal elements", "[sequence]") {
  const auto at = with(kThree, {node("SequenceAt", {"s", "p"}, {"y"})});
  CHECK(run_at(at, 1) == std::vector<float>{2, 4, 6, 8});
  CHECK(run_at(at, -3) == std::vector<float>{1, 2, 3, 4});
  CHECK_FALSE(run_at(at, 3));
  CHECK_FALSE(run_at(at, -4));
  const std::vector<std::string> join = {
      node("ConcatFromSequence", {"t"}, {"j"},
           {attribute("axis", int64_t{0}), attribute("new_axis", int64_t{1})}),
      node("ReduceMax", {"j"}, {"y"},
           {data(1, "axes") + packed(8, std::vector<int64_t>{1}) + number(20, 7),
            attribute("keepdims", int64_t{0})})};
  // The greatest of each element tells them apart: x 4, a 8, b -1.
  const auto erase = with(with(kThree, {node("SequenceErase", {"s", "p"}, {"t"})}), join);
  CHECK(run_at(erase, 0) == std::vector<float>{8, -1});
  CHECK(run_at(erase, -2) == std::vector<float>{4, -1});
  CHECK_FALSE(run_at(erase, 3));
  const auto insert =
      with(with(kThree, {node("SequenceInsert", {"s", "b", "p"}, {"t"})}), join);
  CHECK(run_at(insert, 0) == std::vector<float>{-1, 4, 8, -1});
  CHECK(run_at(insert, 2) == std::vector<float>{4, 8, -1, -1});
  CHECK(run_at(insert, -2) == std::vector<float>{4, -1, 8, -1});
  CHECK_FALSE(run_at(insert, 4));
  CHECK_FALSE(run_at(insert, -4));
}

TEST_CASE("tensors split into sequences", "[sequence]") {
  const auto last_of = [](const std::vector<std::string>& inputs, int64_t keep) {
    return std::vector<std::string>{
        node("SplitToSequence", inputs, {"s"}, {attribute("keepdims", keep)}),
        node("SequenceAt", {"s", "i"}, {"y"})};
  };
  CHECK(run_nodes(last_of({"x", "n"}, 0), {one("i", 1), one("n", 3)}) ==
        std::vector<float>{-4});
  CHECK(run_nodes(last_of({"x", "n"}, 0), {one("i", 1), ints("n", {2}, {1, 3})}) ==
        std::vector<float>{-2, 3, -4});
  refused(model({last_of({"x", "n"}, 0), kX, kY, {one("i", 1), ints("n", {2}, {1, 1})}}),
          Exit::InvalidModel, "the parts do not fill the axis");
  refused(model({last_of({"x", "n"}, 0), kX, kY, {one("i", 1), one("n", 0)}}),
          Exit::InvalidModel, "must be positive");
}

TEST_CASE("SequenceMap runs its body per element", "[sequence]") {
  const std::string body = graph({{node("Mul", {"e", "f"}, {"g"})},
                                  {value("e", {4}), value("f", {4})},
                                  {value("g", {4})},
                                  {}});
  const auto mapped = with(
      kThree, {node("SequenceMap", {"s", "x"}, {"t"}, {graph_attribute("body", body)}),
               node("SequenceAt", {"t", "i"}, {"y"})});
  CHECK(run_nodes(mapped, {one("i", 1)}) == std::vector<float>{2, 8, 18, 32});
  const auto uneven = with(
      kThree, {node("SequenceErase", {"s"}, {"t"}),
               node("SequenceMap", {"s", "t"}, {"u"}, {graph_attribute("body", body)}),
               node("SequenceAt", {"u", "i"}, {"y"})});
  refused(model({uneven, kX, kY, {one("i", 1)}}), Exit::InvalidModel,
          "its sequences differ in length");
}

TEST_CASE("a loop carries a sequence", "[sequence]") {
  const std::string body =
      graph({{node("SequenceInsert", {"s", "x"}, {"t"})},
             {value("i", {}, kI64), value("c", {}, kBool), value("s", {})},
             {value("c", {}, kBool), value("t", {})},
             {}});
  const std::vector<std::string> nodes = {
      node("SequenceEmpty", {}, {"e"}),
      node("Loop", {"trips", "", "e"}, {"all"}, {graph_attribute("body", body)}),
      node("ConcatFromSequence", {"all"}, {"y"}, {attribute("axis", int64_t{0})})};
  CHECK(run_nodes(nodes, {one("trips", 2)}) ==
        std::vector<float>{1, -2, 3, -4, 1, -2, 3, -4});
}

TEST_CASE("optionals know whether they are there", "[sequence]") {
  const std::vector<std::string> there = {node("Optional", {"x"}, {"o"}),
                                          node("OptionalGetElement", {"o"}, {"y"})};
  CHECK(run_nodes(there) == std::vector<float>{1, -2, 3, -4});
  const auto asks = [](const std::string& maker) {
    return std::vector<std::string>{
        maker, node("OptionalHasElement", {"o"}, {"h"}),
        node("Cast", {"h"}, {"y"}, {attribute("to", int64_t{1})})};
  };
  const std::string type =
      data(1, "type") + data(14, data(1, number(1, kF32))) + number(20, 13);
  CHECK(run_nodes(asks(node("Optional", {"x"}, {"o"}))) == std::vector<float>{1});
  CHECK(run_nodes(asks(node("Optional", {}, {"o"}, {type}))) == std::vector<float>{0});
  refused(model({{node("Optional", {}, {"o"}, {type}),
                  node("OptionalGetElement", {"o"}, {"y"})},
                 kX,
                 kY,
                 {}}),
          Exit::InvalidModel, "the optional is empty");
}

TEST_CASE("a condition of the run chooses between sequences and optionals",
          "[sequence]") {
  const auto branch = [](const std::vector<std::string>& nodes, const std::string& name) {
    return graph({nodes, {}, {value(name, {})}, {}});
  };
  const std::string condition = node("Less", {"p", "zero"}, {"c"});
  const auto choose = [&](const std::string& yes, const std::string& no) {
    return std::vector<std::string>{
        node("Constant", {}, {"zero"}, {attribute("value_int", int64_t{0})}), condition,
        node("If", {"c"}, {"r"},
             {graph_attribute("then_branch", yes), graph_attribute("else_branch", no)})};
  };
  const std::string ax = branch(
      {node("Add", {"x", "x"}, {"a1"}), node("SequenceConstruct", {"x", "a1"}, {"s1"})},
      "s1");
  const std::string xa = branch(
      {node("Add", {"x", "x"}, {"a2"}), node("SequenceConstruct", {"a2", "x"}, {"s2"})},
      "s2");
  const auto first = with(choose(ax, xa), {node("SequenceAt", {"r", "zero"}, {"y"})});
  CHECK(run_at(first, -1) == std::vector<float>{1, 2, 3, 4});
  CHECK(run_at(first, 1) == std::vector<float>{2, 4, 6, 8});
  const std::string type =
      data(1, "type") + data(14, data(1, number(1, kF32))) + number(20, 13);
  const std::string some = branch({node("Optional", {"x"}, {"o1"})}, "o1");
  const std::string none = branch({node("Optional", {}, {"o2"}, {type})}, "o2");
  const auto get = with(choose(some, none), {node("OptionalGetElement", {"r"}, {"y"})});
  CHECK(run_at(get, -1) == std::vector<float>{1, 2, 3, 4});
  CHECK_FALSE(run_at(get, 1)); // it is not there: the run stops
  // Asked first, the optional needs no check: x where it is there, else its negative.
  const std::string found = branch({node("OptionalGetElement", {"r"}, {"f1"})}, "f1");
  const std::string missing = branch({node("Neg", {"x"}, {"f2"})}, "f2");
  const auto ask =
      with(choose(some, none), {node("OptionalHasElement", {"r"}, {"h"}),
                                node("If", {"h"}, {"y"},
                                     {graph_attribute("then_branch", found),
                                      graph_attribute("else_branch", missing)})});
  CHECK(run_at(ask, -1) == std::vector<float>{1, 2, 3, 4});
  CHECK(run_at(ask, 1) == std::vector<float>{-1, -2, -3, -4});
  const std::string longer =
      branch({node("SequenceConstruct", {"x", "x", "x"}, {"s3"})}, "s3");
  refused(model({with(choose(ax, longer), {node("SequenceAt", {"r", "zero"}, {"y"})}),
                 {value("x", {4}), kPosition},
                 kY,
                 {}}),
          Exit::Unsupported, "its branches give results of different shapes");
}
