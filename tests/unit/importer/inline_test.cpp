// What the importer dissolves: functions of the model, function bodies of the
// specification, and control flow. Expected values are worked out by hand.
#include "importer/driver/functions.h"
#include "importer/operators/onnx_ops.h"
#include "tests/support/import_model.h"

#include <chrono>
#include <cmath>

using namespace svod;
using namespace svod::import_test;

TEST_CASE("functions are inlined with their attributes", "[import]") {
  // f(a; slope) = LeakyRelu(a; alpha = slope) + a, called by another function.
  const std::string inner =
      function("inner", {"a"}, {"b"},
               {node("LeakyRelu", {"a"}, {"t"}, {reference("alpha", "slope", 1)}),
                node("Add", {"t", "a"}, {"b"})},
               {"slope"});
  const std::string outer =
      function("outer", {"a"}, {"b"},
               {call("inner", {"a"}, {"b"}, {reference("slope", "s", 1)})}, {"s"});
  const GraphParts parts{
      {call("outer", {"x"}, {"y"}, {attribute("s", 0.5f)})}, kX, kY, {}};
  CHECK(run(with_functions(parts, inner + outer)) == std::vector<float>{2, -3, 6, -6});
  // Left out by the call, an attribute has the default of the operator that it goes to:
  // 0.01.
  const GraphParts bare{{call("outer", {"x"}, {"y"})}, kX, kY, {}};
  const std::vector<float> result = run(with_functions(bare, inner + outer));
  CHECK(result[1] == Approx(-2.02));
  const GraphParts wrong{
      {call("outer", {"x"}, {"y"}, {attribute("q", 0.5f)})}, kX, kY, {}};
  refused(with_functions(wrong, inner + outer), Exit::InvalidModel, "no attribute 'q'");
}

TEST_CASE("a function sees nothing of the graph around it", "[import]") {
  refused(with_functions(
              {{call("f", {"x"}, {"y"})}, kX, kY, {floats("w", {4}, {1, 1, 1, 1})}},
              function("f", {"a"}, {"b"}, {node("Add", {"a", "w"}, {"b"})})),
          Exit::InvalidModel, "nothing makes its input 'w'");
}

TEST_CASE("graphs and references do not enter a function", "[import]") {
  const std::string branch =
      graph({{node("Add", {"x", "w"}, {"z"})}, {}, {value("z", {4})}, {}});
  const std::string f = function(
      "f", {"a", "c"}, {"b"},
      {node("If", {"c"}, {"b"},
            {reference("then_branch", "g", 5), reference("else_branch", "g", 5)})},
      {"g"});
  refused(with_functions(
              {{call("f", {"x", "c"}, {"y"}, {graph_attribute("g", branch)})},
               kX,
               kY,
               {floats("w", {4}, {1, 1, 1, 1}), tensor("c", kBool, {}, data(9, "\1"))}},
              f),
          Exit::Unsupported, "a graph as attribute of a function");
  const std::string loose = data(
      25, data(1, "f") + data(4, "a") + data(5, "b") +
              data(11, reference("alpha", "beta", 1)) +
              data(7, node("LeakyRelu", {"a"}, {"b"}, {reference("alpha", "alpha", 1)})) +
              data(9, number(2, 17)) + data(10, "f"));
  refused(with_functions({{call("f", {"x"}, {"y"})}, kX, kY, {}}, loose),
          Exit::InvalidModel, "the default of attribute 'alpha' is no value");
}

TEST_CASE("inputs that a call leaves out are left out in the body", "[import]") {
  const std::string f = function("f", {"a", "low", "high"}, {"b"},
                                 {node("Clip", {"a", "low", "high"}, {"b"})});
  CHECK(run(with_functions(
            {{call("f", {"x", "", "w"}, {"y"})}, kX, kY, {floats("w", {}, {2})}}, f)) ==
        std::vector<float>{1, -2, 2, -4});
}

TEST_CASE("functions without an end are refused at once", "[import]") {
  refused(with_functions({{call("f", {"x"}, {"y"})}, kX, kY, {}},
                         function("f", {"a"}, {"b"}, {call("f", {"a"}, {"b"})})),
          Exit::InvalidModel, "calls itself");
  std::string doubling;
  for (int i = 0; i < 40; ++i) {
    const std::string next = "f" + std::to_string(i + 1);
    doubling += function("f" + std::to_string(i), {"a"}, {"b"},
                         {call(next, {"a"}, {"t"}), call(next, {"t"}, {"b"})});
  }
  doubling += function("f40", {"a"}, {"b"}, {node("Relu", {"a"}, {"b"})});
  const auto start = std::chrono::steady_clock::now();
  refused(with_functions({{call("f0", {"x"}, {"y"})}, kX, kY, {}}, doubling),
          Exit::InvalidModel, "more nodes than the limit");
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(1));
  std::string chain;
  for (int i = 0; i < 100; ++i)
    chain += function("g" + std::to_string(i), {"a"}, {"b"},
                      {call("g" + std::to_string(i + 1), {"a"}, {"b"})});
  chain += function("g100", {"a"}, {"b"}, {node("Relu", {"a"}, {"b"})});
  refused(with_functions({{call("g0", {"x"}, {"y"})}, kX, kY, {}}, chain),
          Exit::InvalidModel, "called through too many others");
}

TEST_CASE("If takes the branch that is known", "[import]") {
  const auto branch = [](const std::string& op) {
    return graph(
        {{node(op, {"x"}, {op + "_result"})}, {}, {value(op + "_result", {4})}, {}});
  };
  const auto with_condition = [&](const std::vector<std::string>& inputs,
                                  const std::vector<std::string>& initializers) {
    return model({{node("If", {"c"}, {"y"},
                        {graph_attribute("then_branch", branch("Relu")),
                         graph_attribute("else_branch", branch("Neg"))})},
                  inputs,
                  kY,
                  initializers});
  };
  const auto known = [&](bool c) {
    return with_condition(kX, {tensor("c", kBool, {}, data(9, std::string(1, c)))});
  };
  CHECK(run(known(true)) == std::vector<float>{1, 0, 3, 0});
  CHECK(run(known(false)) == std::vector<float>{-1, 2, -3, 4});
  // A condition on data selects.
  const Imported selected = import(with_condition({kX[0], value("c", {}, kBool)}, {}));
  REQUIRE(selected.graph);
  for (int c : {0, 1}) {
    const Tensor condition{DType::Bool, {}, {std::byte(c)}};
    const Evaluated result =
        evaluate(*selected.graph, {f32({4}, {1, -2, 3, -4}), condition});
    CHECK(floats_of(result.outputs.at(0)) ==
          (c ? std::vector<float>{1, 0, 3, 0} : std::vector<float>{-1, 2, -3, 4}));
  }
}

namespace {

// acc = acc + acc, and each acc as a scan output; goes on while `going` says so.
std::string loop(const std::string& trips, const std::string& condition, bool going,
                 const std::string& output) {
  const std::string body =
      graph({{node("Add", {"acc", "acc"}, {"next"}), node("Identity", {"next"}, {"scan"}),
              node("Constant", {}, {"on"},
                   {data(1, "value") +
                    data(5, tensor("", kBool, {}, data(9, std::string(1, going)))) +
                    number(20, 4)})},
             {value("i", {}, kI64), value("on_in", {}, kBool), value("acc", {4})},
             {value("on", {}, kBool), value("next", {4}), value("scan", {4})},
             {}});
  return model({{node("Loop", {trips, condition, "x"}, {"last", "all"},
                      {graph_attribute("body", body)})},
                kX,
                {value(output, {4})},
                {ints("trips", {}, {3}), ints("none", {}, {0}), ints("many", {}, {5000}),
                 tensor("yes", kBool, {}, data(9, std::string(1, 1)))}});
}

} // namespace

TEST_CASE("Loop is unrolled", "[import]") {
  CHECK(run(loop("trips", "", true, "last")) == std::vector<float>{8, -16, 24, -32});
  CHECK(run(loop("trips", "", true, "all")) ==
        std::vector<float>{2, -4, 6, -8, 4, -8, 12, -16, 8, -16, 24, -32});
  // The body ends it after the first iteration.
  CHECK(run(loop("trips", "yes", false, "last")) == std::vector<float>{2, -4, 6, -8});
  // Without a condition the loop counts, whatever the body says.
  CHECK(run(loop("trips", "", false, "last")) == std::vector<float>{8, -16, 24, -32});
  CHECK(run(loop("none", "", true, "last")) == std::vector<float>{1, -2, 3, -4});
  const Imported empty = import(loop("none", "", true, "all"));
  REQUIRE(empty.graph);
  CHECK((*empty.graph)[empty.graph->outputs()[0].node].shape == Shape{0, 4});
}

TEST_CASE("a long Loop is a region", "[import][region]") {
  CHECK(run(loop("many", "", true, "last"), {1, 0, -1, 0})[0] == INFINITY);
  CHECK(run(loop("many", "", true, "all"), {1, 0, -1, 0}).size() == 4 * 5000);
  // One that does not end is stopped by its limit when it runs.
  ImportOptions options;
  options.limits.region_iterations = 100;
  const Imported endless = import(loop("", "yes", true, "last"), options);
  REQUIRE(endless.graph);
  CHECK(evaluate(*endless.graph, {f32({4}, {1, 2, 3, 4})}).failed != kNoNode);
}

TEST_CASE("a Loop whose count is data is a region", "[import][region]") {
  const auto counted = [](const std::string& output, const std::vector<Dim>& dims) {
    const std::string body = graph(
        {{node("Add", {"acc", "w"}, {"next"}), node("Identity", {"next"}, {"scan"})},
         {value("i", {}, kI64), value("on_in", {}, kBool), value("acc", {4})},
         {value("on_in", {}, kBool), value("next", {4}), value("scan", {4})},
         {}});
    return model(
        {{node("Loop", {"n", "", "x"}, {"last", "all"}, {graph_attribute("body", body)})},
         {kX[0], value("n", {}, kI64)},
         {value(output, dims)},
         {floats("w", {4}, {1, 2, 3, 4})}});
  };
  const auto run_with = [](const std::string& bytes, int64_t n) {
    const Imported made = import(bytes);
    INFO(made.text());
    REQUIRE(made.graph);
    Tensor count{DType::I64, {}, std::vector<std::byte>(8)};
    std::memcpy(count.bytes.data(), &n, 8);
    return evaluate(*made.graph, {f32({4}, {0, 0, 0, 0}), count});
  };
  CHECK(floats_of(run_with(counted("last", {4}), 3).outputs.at(0)) ==
        std::vector<float>{3, 6, 9, 12});
  CHECK(floats_of(run_with(counted("last", {4}), 0).outputs.at(0)) ==
        std::vector<float>{0, 0, 0, 0});
  // Scan outputs are as long as the model declares, or the run stops.
  CHECK(floats_of(run_with(counted("all", {2, 4}), 2).outputs.at(0)) ==
        std::vector<float>{1, 2, 3, 4, 2, 4, 6, 8});
  CHECK(run_with(counted("all", {2, 4}), 1).failed != kNoNode);
  CHECK(run_with(counted("all", {2, 4}), 3).failed != kNoNode);
}

TEST_CASE("what a region cannot carry is said", "[import][region]") {
  const std::string body =
      graph({{node("Concat", {"acc", "acc"}, {"next"}, {attribute("axis", int64_t{0})})},
             {value("i", {}, kI64), value("c", {}, kBool), value("acc", {4})},
             {value("c", {}, kBool), value("next", {8})},
             {}});
  refused(model({{node("Loop", {"n", "", "x"}, {"y"}, {graph_attribute("body", body)})},
                 {kX[0], value("n", {}, kI64)},
                 {value("y", {8})},
                 {}}),
          Exit::Unsupported, "carried value 0 changes from f32[4] to f32[8]");
}

TEST_CASE("no string of a run goes into a region", "[import][region]") {
  constexpr int kString = 8;
  const std::string body =
      graph({{node("Equal", {"s", "s"}, {"same"}),
              node("Where", {"same", "acc", "x"}, {"next"})},
             {value("i", {}, kI64), value("c", {}, kBool), value("acc", {4})},
             {value("c", {}, kBool), value("next", {4})},
             {}});
  refused(model({{node("Loop", {"n", "", "x"}, {"y"}, {graph_attribute("body", body)})},
                 {kX[0], value("n", {}, kI64), value("s", {4}, kString)},
                 {value("y", {4})},
                 {}}),
          Exit::Unsupported, "it takes strings into a loop");
}

TEST_CASE("an If whose branch may fail is a region", "[import][region]") {
  const std::string yes =
      graph({{node("Gather", {"x", "at"}, {"t"})}, {}, {value("t", {})}, {}});
  const std::string no =
      graph({{node("ReduceSum", {"x"}, {"e"}, {attribute("keepdims", int64_t{0})})},
             {},
             {value("e", {})},
             {}});
  const Imported made = import(model(
      {{node("If", {"c"}, {"y"},
             {graph_attribute("then_branch", yes), graph_attribute("else_branch", no)})},
       {kX[0], value("c", {}, kBool), value("at", {}, kI64)},
       {value("y", {})},
       {}}));
  INFO(made.text());
  REQUIRE(made.graph);
  const auto run_with = [&](bool c, int64_t at) {
    Tensor index{DType::I64, {}, std::vector<std::byte>(8)};
    std::memcpy(index.bytes.data(), &at, 8);
    const Tensor condition{DType::Bool, {}, {std::byte(c)}};
    return evaluate(*made.graph, {f32({4}, {1, 2, 3, 4}), condition, index});
  };
  CHECK(floats_of(run_with(true, 2).outputs.at(0)) == std::vector<float>{3});
  CHECK(floats_of(run_with(false, 99).outputs.at(0)) == std::vector<float>{10});
  CHECK(run_with(true, 99).failed != kNoNode);
}

TEST_CASE("loops in loops end at the budget", "[import]") {
  std::string body =
      graph({{node("Identity", {"a"}, {"b"})},
             {value("i", {}, kI64), value("c", {}, kBool), value("a", {4})},
             {value("c", {}, kBool), value("b", {4})},
             {}});
  for (int depth = 0; depth < 8; ++depth)
    body = graph({{node("Loop", {"n", "", "a"}, {"b"}, {graph_attribute("body", body)})},
                  {value("i", {}, kI64), value("c", {}, kBool), value("a", {4})},
                  {value("c", {}, kBool), value("b", {4})},
                  {}});
  const std::string bytes =
      model({{node("Loop", {"n", "", "x"}, {"y"}, {graph_attribute("body", body)})},
             kX,
             kY,
             {ints("n", {}, {4000})}});
  ImportOptions options;
  options.limits.unrolled_nodes = 20000;
  refused(bytes, Exit::Unsupported, "unrolled", options);
}

TEST_CASE("Scan is unrolled", "[import]") {
  // Running sums over axis 0, forwards and backwards.
  const std::string body = graph(
      {{node("Add", {"sum", "item"}, {"next"}), node("Identity", {"next"}, {"out"})},
       {value("sum", {}), value("item", {})},
       {value("next", {}), value("out", {})},
       {}});
  const auto scan = [&](int64_t backwards) {
    const std::string directions =
        data(1, "scan_input_directions") + number(8, backwards) + number(20, 7);
    return model({{node("Scan", {"zero", "x"}, {"total", "y"},
                        {graph_attribute("body", body),
                         attribute("num_scan_inputs", int64_t{1}), directions})},
                  kX,
                  kY,
                  {floats("zero", {}, {0})}});
  };
  CHECK(run(scan(0)) == std::vector<float>{1, -1, 2, -2});
  CHECK(run(scan(1)) == std::vector<float>{-4, -1, -3, -2});
  refused(scan(2), Exit::InvalidModel, "do not fit");
}

TEST_CASE("Scan of opset 8 scans each entry of a batch", "[import]") {
  const std::string body = graph(
      {{node("Add", {"sum", "item"}, {"next"}), node("Identity", {"next"}, {"out"})},
       {value("sum", {}), value("item", {})},
       {value("next", {}), value("out", {})},
       {}});
  const auto scan = [&](const std::string& lengths, const std::string& output) {
    return model({{node("Scan", {lengths, "start", "x"}, {"total", "y"},
                        {graph_attribute("body", body),
                         attribute("num_scan_inputs", int64_t{1})})},
                  {value("x", {2, 2})},
                  {value(output, {2, 2})},
                  {floats("start", {2}, {0, 10}), ints("lengths", {2}, {1, 2})}},
                 8);
  };
  CHECK(run(scan("", "y")) == std::vector<float>{1, -1, 13, 9});
  CHECK(run(scan("", "total")) == std::vector<float>{-1, 9});
  refused(scan("lengths", "y"), Exit::Unsupported, "different lengths");
}

TEST_CASE("a nested graph with fewer results than its node is refused", "[import]") {
  const std::string body =
      graph({{node("Neg", {"a"}, {"b"})},
             {value("i", {}, kI64), value("c", {}, kBool), value("a", {4})},
             {value("c", {}, kBool), value("b", {4})},
             {}});
  refused(
      model({{node("Loop", {"n", "", "x"}, {"z", "y"}, {graph_attribute("body", body)})},
             kX,
             kY,
             {ints("n", {}, {3})}}),
      Exit::InvalidModel, "more outputs");
}

TEST_CASE("a nested graph may shadow a name by its inputs", "[import]") {
  const std::string body =
      graph({{node("Neg", {"x"}, {"next"})},
             {value("i", {}, kI64), value("c", {}, kBool), value("x", {4})},
             {value("c", {}, kBool), value("next", {4})},
             {}});
  CHECK(run(model({{node("Loop", {"n", "", "x"}, {"y"}, {graph_attribute("body", body)})},
                   kX,
                   kY,
                   {ints("n", {}, {3})}})) == std::vector<float>{-1, 2, -3, 4});
}

TEST_CASE("a standard operator without a row is its function body", "[import]") {
  REQUIRE_FALSE(find_onnx_form("", "SwiGLU", 28));
  const auto swiglu = [](const std::vector<std::string>& attributes) {
    return run(model({{node("SwiGLU", {"x", "w"}, {"y"}, attributes)},
                      kX,
                      kY,
                      {floats("w", {4}, {1, 2, 3, 4})}},
                     28));
  };
  // x * sigmoid(alpha * x) * w; alpha is 1 by the operator's default.
  const std::vector<float> x = {1, -2, 3, -4};
  for (const float alpha : {1.f, 2.f}) {
    const std::vector<float> y = swiglu(
        alpha == 1 ? std::vector<std::string>{} : std::vector{attribute("alpha", alpha)});
    for (int i = 0; i < 4; ++i)
      CHECK(y[i] == Approx(x[i] / (1 + std::exp(-alpha * x[i])) * float(i + 1)));
  }
  refused(
      model({{node("SwiGLU", {"x", "x"}, {"y"}, {attribute("beta", 1.f)})}, kX, kY, {}},
            28),
      Exit::InvalidModel, "no attribute 'beta'");
  CHECK_FALSE(find_standard_body("", "SwiGLU", 27));
  CHECK_FALSE(find_standard_body("", "Celu", 12)); // made for each node: not in the table
  CHECK(find_standard_body("", "Celu", 28));
}

TEST_CASE("rows agree with the function bodies of the specification", "[import]") {
  // The body is called as a function of the model, the row as the operator.
  struct Case {
    const char* op;
    int64_t opset;
  };
  const Case cases[] = {{"Elu", 22},
                        {"HardSigmoid", 22},
                        {"HardSwish", 22},
                        {"LeakyRelu", 16},
                        {"Mish", 22},
                        {"Selu", 22},
                        {"Shrink", 9},
                        {"Softplus", 22},
                        {"Softsign", 22},
                        {"Swish", 24},
                        {"ThresholdedRelu", 22},
                        {"Relu", 14},
                        {"Celu", 28},
                        {"ReduceL1", 18},
                        {"ReduceL2", 18},
                        {"ReduceLogSumExp", 18},
                        {"ReduceSumSquare", 18}};
  for (const Case& c : cases) {
    INFO(c.op);
    const std::vector<float> x = {0.3f, -2, 3, -0.4f};
    const std::vector<float> by_row =
        run(model({{node(c.op, {"x"}, {"y"})}, kX, kY, {}}, c.opset), x);
    Diags diags;
    std::optional<Model> caller = read_model_bytes(
        with_functions({{call(c.op, {"x"}, {"y"})}, kX, kY, {}}, ""), {}, diags);
    const Callable* body = find_standard_body("", c.op, c.opset);
    REQUIRE(body);
    REQUIRE(caller);
    caller->functions.push_back(*body->function);
    caller->functions[0].domain = "f";
    caller->functions[0].overload.clear();
    const std::optional<Graph> graph = import_model(*caller, {}, diags);
    INFO(diags.text("body"));
    REQUIRE(graph);
    const std::vector<float> by_body =
        floats_of(evaluate(*graph, {f32({4}, x)}).outputs.at(0));
    REQUIRE(by_row.size() == by_body.size());
    for (size_t i = 0; i < by_row.size(); ++i)
      CHECK(by_row[i] == Approx(by_body[i]).epsilon(1e-6).margin(1e-6));
  }
}

TEST_CASE("provenance names the node, through functions", "[import]") {
  const Imported result = import(with_functions(
      {{node("f", {"x"}, {"y"}, {}, "f", "outer")}, kX, kY, {}},
      function("f", {"a"}, {"b"}, {node("Relu", {"a"}, {"b"}, {}, "", "inner")})));
  REQUIRE(result.graph);
  const Graph& g = *result.graph;
  const std::vector<int32_t>& sources = g.sources(g.outputs()[0].node);
  REQUIRE(sources.size() == 1);
  CHECK(g.source_names()[static_cast<size_t>(sources[0])] == "outer/inner");
}
