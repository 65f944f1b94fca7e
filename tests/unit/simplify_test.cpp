// Simplify on random graphs against the evaluator, and on hand-made ones for what each
// rule does.
#include "compiler/ir/build.h"
#include "compiler/ir/digest.h"
#include "compiler/ir/parse.h"
#include "compiler/ir/print.h"
#include "compiler/ir/verify.h"
#include "compiler/rewrite/simplify.h"
#include "tests/support/random_graph.h"
#include "tests/support/seeds.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <fstream>

using namespace svod;
using namespace svod::test;

namespace {

// What is wrong with simplify on this graph, empty when nothing is.
std::string simplify_fault(const RandomGraph& random,
                           rewrite::SimplifyReport* report = nullptr) {
  rewrite::SimplifyReport own;
  if (!report) report = &own;
  Graph simple = rewrite::simplify(random.graph, {}, report);
  if (report->end.reason != PassEnd::Fixpoint) return "a limit is reached";
  for (const std::string& fault : verify(simple)) return "invalid: " + fault;
  if (graph_digest(rewrite::simplify(simple)) != graph_digest(simple))
    return "a second run differs";
  return compare_outputs(random, simple);
}

std::string simplified(const char* text) {
  Diags diags;
  auto graph = parse_graph(text, diags);
  INFO(diags.text("graph"));
  REQUIRE(graph);
  return print_graph(rewrite::simplify(*graph));
}

} // namespace

namespace {

// Runs simplify on the graphs of `seeds`, counting the rules that fired.
void check_seeds(Seeds seeds, rewrite::SimplifyReport& report) {
  for (uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
    RandomGraph random = random_graph(seed);
    std::string why = simplify_fault(random, &report);
    if (why.empty()) continue;
    RandomGraph small =
        shrink(random, [](const RandomGraph& g) { return !simplify_fault(g).empty(); });
    FAIL("seed " << seed << ": " << why << "\nshrunk: " << simplify_fault(small) << '\n'
                 << print_graph(small.graph) << "becomes\n"
                 << print_graph(rewrite::simplify(small.graph)));
  }
}

} // namespace

TEST_CASE("simplify keeps the values of random graphs", "[rewrite][property]") {
  rewrite::SimplifyReport report;
  check_seeds({1, 3000}, report);
  // A rule that no graph reaches is a rule that nothing tests.
  std::vector<std::string_view> names = rewrite::rule_names();
  for (size_t row = 0; row < names.size(); ++row) {
    if (names[row] == "fold_known")
      continue; // what the builder leaves: a test of its own
    INFO(names[row] << " in row " << row);
    CHECK(report.fired[row] > 0);
  }
}

TEST_CASE("simplify keeps the values of many random graphs",
          "[rewrite][property][long]") {
  rewrite::SimplifyReport report;
  check_seeds(part_of({3001, 60000}), report);
  CHECK(report.end.steps > 0);
}

TEST_CASE("weights too large for the builder are folded within the budget", "[rewrite]") {
  Graph g;
  std::vector<float> values(300 * 300);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 251);
  NodeId w = tensor_f32(g, {300, 300}, values);
  NodeId scale =
      expand(g, tensor_f32(g, {300, 1}, std::span(values).first(300)), {300, 300});
  NodeId x = g.add_input("x", DType::F32, {300, 300});
  g.add_output("y", map(g, Op::Add, {x, map(g, Op::Mul, {w, scale})}));
  REQUIRE(g[g[g.outputs()[0].node].inputs[1]].op == Op::Mul);

  auto operand = [](const Graph& graph) {
    return graph[graph[graph.outputs()[0].node].inputs[1]].op;
  };
  Graph folded = rewrite::simplify(g);
  CHECK(operand(folded) == Op::Weight);
  rewrite::SimplifyOptions small;
  small.fold_bytes = 300 * 300 * 4 - 1;
  CHECK(operand(rewrite::simplify(g, small)) == Op::Mul);

  RandomGraph both;
  both.inputs = {make_tensor(DType::F32, {300, 300}, std::vector<double>(300 * 300, 1))};
  both.tolerance.resize(g.size());
  both.graph = std::move(g);
  CHECK(compare_outputs(both, folded) == "");
}

// One file per rule: a title, the text of a graph after "in:", and of the simplified one
// after "out:". With SVOD_REBASE set, what comes out is written into the file, for
// review.
TEST_CASE("every rule does what its golden file says", "[rewrite][golden]") {
  std::vector<std::string_view> names = rewrite::rule_names();
  for (size_t row = 0; row < names.size(); ++row) {
    if (names[row] == "fold_known") continue; // wants weights too large for a text
    std::string path = std::string(SVOD_SOURCE_DIR "/tests/golden/simplify/") +
                       std::string(names[row]) + ".txt";
    INFO(path);
    std::ifstream file(path);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    size_t in = text.find("in:\n"), out = text.find("out:\n");
    REQUIRE(in != std::string::npos);
    REQUIRE(out != std::string::npos);
    Diags diags;
    auto graph = parse_graph(std::string_view(text).substr(in + 4, out - in - 4), diags);
    INFO(diags.text("in"));
    REQUIRE(graph);
    rewrite::SimplifyReport report;
    std::string got = print_graph(rewrite::simplify(*graph, {}, &report));
    int64_t count = 0; // over all rows of the rule
    for (size_t other = 0; other < names.size(); ++other)
      if (names[other] == names[row]) count += report.fired[other];
    CHECK(count > 0);
    if (std::getenv("SVOD_REBASE")) {
      std::ofstream(path) << text.substr(0, out + 5) << got;
      continue;
    }
    CHECK(got == text.substr(out + 5));
  }
}

// The negated weights are too large for the builder to fold, so x - w became x + -w, and
// that x - w again.
TEST_CASE("a large weight that is subtracted is negated once", "[rewrite]") {
  Graph g;
  std::vector<float> values(300 * 300);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 251);
  NodeId x = g.add_input("x", DType::F32, {300, 300});
  g.add_output("y", map(g, Op::Sub, {x, tensor_f32(g, {300, 300}, values)}));
  rewrite::SimplifyReport report;
  const Graph simple = rewrite::simplify(g, {}, &report);
  CHECK(report.end.reason == PassEnd::Fixpoint);
  const Node& sum = simple[simple.outputs()[0].node];
  CHECK(sum.op == Op::Add);
  CHECK(simple[sum.inputs[1]].op == Op::Weight);
}

TEST_CASE("a limit that stops simplify is reported", "[rewrite]") {
  Diags diags;
  auto graph = parse_graph("%0 = input \"x\" : f32[2]\n%1 = abs %0\n%2 = abs %1\n"
                           "%3 = neg %2\n%4 = abs %3\noutput \"y\" %4\n",
                           diags);
  REQUIRE(graph);
  rewrite::SimplifyReport whole, short_of_steps, short_of_rounds;
  const std::string simplest = print_graph(rewrite::simplify(*graph, {}, &whole));
  CHECK(whole.end.reason == PassEnd::Fixpoint);
  CHECK(whole.end.rounds == 2);
  CHECK(whole.end.steps == 3);
  (void)rewrite::simplify(*graph, {.most_rounds = 1}, &short_of_rounds);
  CHECK(short_of_rounds.end.reason == PassEnd::Limit);
  const Graph left = rewrite::simplify(*graph, {.most_steps = 0}, &short_of_steps);
  CHECK(short_of_steps.end.reason == PassEnd::Limit);
  CHECK(print_graph(left) != simplest);
}

TEST_CASE("what is rounded to integers keeps its bits", "[rewrite]") {
  auto graph = [](const std::string& last) {
    return simplified(("%0 = input \"x\" : f32[2]\n%1 = constant value=49 : f32[2]\n"
                       "%2 = div %0 %1\n" +
                       last + "output \"y\" %3\n")
                          .c_str());
  };
  // 49 * (1 / 49) is below 1 in f32, and would be floored to 0.
  CHECK(graph("%3 = floor %2\n").find("div") != std::string::npos);
  CHECK(graph("%9 = abs %2\n%3 = cast %9 : i32[2]\n").find("div") != std::string::npos);
  CHECK(graph("%3 = exp %2\n").find("div") == std::string::npos);

  rewrite::SimplifyOptions exact;
  exact.change_rounding = false;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    RandomGraph random = random_graph(seed);
    // Bit for bit, zeros of either sign being equal.
    std::fill(random.tolerance.begin(), random.tolerance.end(), 0);
    INFO("seed " << seed << '\n' << print_graph(random.graph));
    REQUIRE(compare_outputs(random, rewrite::simplify(random.graph, exact)) == "");
  }
}

TEST_CASE("what a rule makes is credited to all it replaces", "[rewrite]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {2, 3});
  std::vector<float> values{1, 2, 3, 4, 5, 6};
  NodeId w = tensor_f32(g, {3, 2}, values);
  g.open_source("dense");
  NodeId product = matmul(g, x, w);
  g.close_source();
  g.open_source("scale");
  NodeId scale = broadcast_to(g, tensor_f32(g, {2}, std::span(values).first(2)), {2, 2});
  g.add_output("y", map(g, Op::Mul, {product, scale}));
  g.close_source();

  Graph simple = rewrite::simplify(g);
  CHECK(simple.source_names() == std::vector<std::string>{"dense", "scale"});
  NodeId result = simple.outputs()[0].node;
  REQUIRE(simple[result].op == Op::Reshape);
  NodeId sum = simple[result].inputs[0];
  CHECK(simple[sum].op == Op::ReduceSum);
  for (NodeId id : {result, sum, simple[sum].inputs[0]})
    CHECK(simple.sources(id) == std::vector<int32_t>{0, 1});
}
