// Equal graphs: every alternative computes what the evaluator does, one that clearly
// pays is taken and no other, and what the search did is told.
#include "compiler/equal_programs.h"

#include "compiler/egraph/improve.h"
#include "compiler/fuse.h"
#include "compiler/ir/build.h"
#include "compiler/ir/print.h"
#include "compiler/ir/verify.h"
#include "compiler/pipeline.h"
#include "compiler/plan_cost.h"
#include "compiler/rewrite/simplify.h"
#include "tests/support/check_kernels.h"
#include "tests/support/layer_graphs.h"
#include "tests/support/model_graph.h"
#include "tests/support/random_tensor.h"
#include "tests/support/sweep.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace svod;
using namespace svod::egraph;
using namespace svod::test;

namespace {

constexpr size_t kBudget = 50;

Target some_target() { return *find_target("x86-64-v3"); }

// x [m, k] times known weights [k, n], as the importer writes it.
NodeId times_known(Graph& g, NodeId x, int64_t n, Random& random) {
  const Shape in = g[x].shape;
  const Tensor w = random_tensor(random, {1, n, in[1]});
  const NodeId weights = weight(g, g[x].dtype, w.shape, g.add_blob(w.bytes));
  const Shape full{in[0], n, in[1]};
  const NodeId repeated = expand(g, reshape(g, x, {in[0], 1, in[1]}), full);
  const NodeId product = map(g, Op::Mul, {repeated, expand(g, weights, full)});
  return reshape(g, reduce(g, Op::ReduceSum, product, {2}), {in[0], n});
}

// Several contractions of one input, each under the name of an ONNX node.
RandomGraph side_by_side(int64_t rows, const std::vector<int64_t>& columns) {
  Random random(5);
  RandomGraph out;
  Graph& g = out.graph;
  const NodeId x = g.add_input("x", DType::F32, {rows, 64});
  out.inputs = {random_tensor(random, {rows, 64})};
  for (size_t i = 0; i < columns.size(); ++i) {
    g.open_source("contraction " + std::to_string(i));
    g.add_output("y" + std::to_string(i),
                 map(g, Op::Exp, {times_known(g, x, columns[i], random)}));
  }
  g.close_source();
  out.tolerance.assign(g.size(), 1e-3);
  return out;
}

// The sum of two contractions of one input, which is one contraction.
RandomGraph sum_of_two() {
  Random random(5);
  RandomGraph out;
  Graph& g = out.graph;
  const NodeId x = g.add_input("x", DType::F32, {96, 128});
  out.inputs = {random_tensor(random, {96, 128})};
  g.open_source("left");
  const NodeId left = times_known(g, x, 160, random);
  g.open_source("right");
  const NodeId right = times_known(g, x, 160, random);
  g.open_source("both");
  g.add_output("y", map(g, Op::Add, {left, right}));
  g.close_source();
  out.tolerance.assign(g.size(), 1e-2);
  return out;
}

size_t count_of(const Graph& g, Op op) {
  return static_cast<size_t>(std::ranges::count_if(g.live_nodes(), [&](NodeId id) {
    return g[id].op == op && g.depends_on_input(id);
  }));
}

std::set<std::string> names_in(const Graph& g) {
  std::set<std::string> out;
  for (NodeId id : g.live_nodes())
    for (int32_t source : g.sources(id))
      out.insert(g.source_names()[static_cast<size_t>(source)]);
  return out;
}

Graph search(const Graph& graph, const EqualOptions& options, EqualSearch& found) {
  return search_equal(rewrite::simplify(graph), some_target(), options, found);
}

std::string told(const EqualSearch& found) {
  std::string out(text_of(found.end));
  for (const AskedAim& asked : found.aims)
    out += "\n" + std::string(name_of(asked.aim)) + " " +
           std::string(text_of(asked.stop)) + " " + std::to_string(asked.iterations) +
           " " + std::to_string(asked.nodes) + " " + std::to_string(asked.priced) + " " +
           std::to_string(asked.before) + " " + std::to_string(asked.after) +
           (asked.taken ? " taken" : "");
  return out;
}

RandomGraph graph_of(uint64_t seed) {
  switch (seed % 3) {
  case 0:
    return random_graph(seed);
  case 1:
    return large_graph(seed);
  default:
    return model_graph(seed);
  }
}

// What goes wrong with an alternative of the graph; counts them.
std::string fault_of(const RandomGraph& random, Aim aim, bool exact, const Target& target,
                     size_t& made) {
  rewrite::SimplifyOptions rules;
  rules.change_rounding = !exact;
  AlternativeOptions options;
  options.keep_rounding = exact;
  const Graph simple = rewrite::simplify(random.graph, rules);
  for (const Alternative& other :
       alternatives(simple, aim, target.machine(), options).graphs) {
    ++made;
    for (const std::string& why : verify(other.graph)) return "invalid: " + why;
    if (std::string why = compare_outputs(random, other.graph); !why.empty()) return why;
    CompileOptions how;
    how.target = target;
    how.exact = exact, how.as_written = true;
    const codegen::Kernels kernels = compile(other.graph, how);
    if (std::string why = check_answers(random, kernels, target); !why.empty())
      return why;
  }
  return "";
}

double predicted(FusedGraph fused, const Target& target) {
  const ScheduledPlan scheduled =
      schedule(plan::plan(std::move(fused), target.machine()), target);
  return cost_of(scheduled.plan, target, target.levels.size() - 1, 1).total.total;
}

} // namespace

TEST_CASE("kernels of every equal graph compute what the evaluator does",
          "[equal][property][long]") {
  const auto target = target_for({"x86-64-v3"});
  if (!target) return;
  std::map<Aim, size_t> made;
  for (uint64_t seed = 0; seed < 300; ++seed)
    for (Aim aim : kAims) {
      const RandomGraph random = graph_of(seed);
      INFO("seed " << seed << ", " << name_of(aim));
      CHECK(fault_of(random, aim, false, *target, made[aim]) == "");
    }
  for (Aim aim : kAims) {
    INFO(name_of(aim));
    CHECK(made[aim] > 3);
  }
}

TEST_CASE("with --accuracy exact, equal graphs keep their roundings",
          "[equal][property][sweep]") {
  const Target target = some_target();
  size_t made = 0;
  for (uint64_t seed = 0; seed < swept(60, 12); ++seed)
    for (Aim aim : kAims) {
      RandomGraph random = random_graph(seed);
      // Sums may add up in another order; all else keeps its bits.
      INFO("seed " << seed << ", " << name_of(aim));
      const auto exact = target_for({"x86-64-v3"});
      if (exact) CHECK(fault_of(random, aim, true, *exact, made) == "");
    }
  EqualSearch found;
  EqualOptions options;
  options.budget = kBudget;
  options.keep_rounding = true, options.direct_only = true;
  search(sum_of_two().graph, options, found);
  CHECK(std::ranges::none_of(found.aims, &AskedAim::taken));
}

TEST_CASE("an equal graph is taken where it saves a quarter of what it replaces",
          "[equal]") {
  const RandomGraph two = sum_of_two();
  EqualSearch found;
  EqualOptions options;
  options.budget = kBudget;
  const Graph one = search(two.graph, options, found);
  INFO(told(found));
  CHECK(found.end == EqualSearch::End::Done);
  CHECK(count_of(one, Op::ReduceSum) == 1);
  CHECK(found.after <= 0.75 * found.before);
  CHECK(compare_outputs(two, one) == "");
  CHECK(names_in(one) == std::set<std::string>{"left", "right", "both"});
  const AskedAim& factor = found.aims[0];
  CHECK(factor.taken);
  CHECK(factor.after <= (1 - options.least_gain) * factor.before);

  // Where more is asked than can be, it stays as it was.
  options.least_gain = 2;
  const Graph same = search(two.graph, options, found);
  CHECK(print_graph(same) == print_graph(rewrite::simplify(two.graph)));
  CHECK(found.after == found.before);
}

TEST_CASE("the pipeline searches equal graphs when it has a budget", "[equal]") {
  const RandomGraph two = sum_of_two();
  const auto target = target_for({"x86-64-v3"});
  if (!target) return;
  EqualSearch found;
  CompileOptions options;
  options.target = *target;
  options.equal = &found;
  const codegen::Kernels given = compile(two.graph, options);
  CHECK(found.end == EqualSearch::End::Off);
  options.equal_budget = kBudget;
  const codegen::Kernels other = compile(two.graph, options);
  CHECK(found.end == EqualSearch::End::Done);
  CHECK(cost_of(other.plan, *target, 0, 1).total.total <
        0.8 * cost_of(given.plan, *target, 0, 1).total.total);
  CHECK(check_answers(two, other, *target) == "");
  Target small = for_size(*target);
  options.target = small;
  compile(two.graph, options);
  CHECK(found.end == EqualSearch::End::Off);
}

TEST_CASE("equal graphs are counted, and the same budget gives the same one",
          "[equal][sweep]") {
  size_t out_of_budget = 0;
  for (uint64_t seed = 0; seed < swept(30, 12); ++seed)
    for (const size_t budget : {size_t{0}, size_t{1}, kBudget}) {
      const Graph graph = graph_of(seed).graph;
      EqualOptions options;
      options.budget = budget;
      options.least_gain = 0, options.least_share = 0;
      EqualSearch first, second;
      const Graph a = search(graph, options, first), b = search(graph, options, second);
      CHECK(print_graph(a) == print_graph(b));
      CHECK(told(first) == told(second));
      CHECK(first.priced <= budget);
      CHECK((first.end == EqualSearch::End::Off) == (budget == 0));
      CHECK(first.after <= first.before);
      out_of_budget += first.end == EqualSearch::End::Budget;
    }
  CHECK(out_of_budget > swept(5, 1));
}

TEST_CASE("contractions side by side keep their names", "[equal]") {
  const RandomGraph apart = side_by_side(8, {16, 24, 16});
  const Alternatives found = alternatives(rewrite::simplify(apart.graph), Aim::Join,
                                          some_target().machine(), {});
  REQUIRE(found.graphs.size() == 1);
  CHECK(found.graphs[0].places == 3);
  CHECK(found.saturation.stop == Stop::Saturated);
  const Graph& one = found.graphs[0].graph;
  CHECK(count_of(one, Op::ReduceSum) == 1);
  CHECK(names_in(one) == names_in(apart.graph));
  CHECK(compare_outputs(apart, one) == "");
}

TEST_CASE("a sum of few results is cut in two", "[equal]") {
  const RandomGraph row = side_by_side(1, {2});
  const Alternatives found =
      alternatives(rewrite::simplify(row.graph), Aim::Split, some_target().machine(), {});
  REQUIRE(found.graphs.size() == 1);
  CHECK(count_of(found.graphs[0].graph, Op::ReduceSum) == 2);
  CHECK(names_in(found.graphs[0].graph) == names_in(row.graph));
  CHECK(compare_outputs(row, found.graphs[0].graph) == "");
  AlternativeOptions exact;
  exact.keep_rounding = true;
  CHECK(
      alternatives(row.graph, Aim::Split, some_target().machine(), exact).graphs.empty());
}

TEST_CASE("transposes around a function go", "[equal]") {
  RandomGraph around;
  Graph& g = around.graph;
  Random random(3);
  const NodeId x = g.add_input("x", DType::F32, {6, 8});
  around.inputs = {random_tensor(random, {6, 8})};
  const NodeId turned = permute(g, x, {1, 0});
  const NodeId mapped = map(g, Op::Exp, {turned});
  g.add_output("y", permute(g, mapped, {1, 0}));
  around.tolerance.assign(g.size(), 0);
  const Alternatives found =
      alternatives(around.graph, Aim::Views, some_target().machine(), {});
  REQUIRE(found.graphs.size() == 1);
  CHECK(count_of(found.graphs[0].graph, Op::Permute) == 0);
  CHECK(compare_outputs(around, found.graphs[0].graph) == "");
}

// A factor that keeps a sum of half floats small does not leave it.
TEST_CASE("no factor of half floats moves", "[equal]") {
  Graph g;
  const NodeId x = g.add_input("x", DType::F16, {4, 64});
  const NodeId y = g.add_input("y", DType::F16, {4, 64});
  const NodeId scaled = map(g, Op::Mul, {x, constant(g, DType::F16, {4, 64}, 0.125)});
  const NodeId product = map(g, Op::Mul, {scaled, y});
  g.add_output("z", reduce(g, Op::ReduceSum, product, {1}));
  for (Aim aim : {Aim::Factor, Aim::Scale})
    CHECK(alternatives(g, aim, some_target().machine(), {}).graphs.empty());
}

TEST_CASE("an ended search says which limit it met", "[equal]") {
  const Graph graph = rewrite::simplify(sum_of_two().graph);
  const auto stop = [&](const Limits& limits) {
    AlternativeOptions options;
    options.limits = limits;
    return alternatives(graph, Aim::Factor, some_target().machine(), options)
        .saturation.stop;
  };
  Limits limits;
  limits.more_nodes = 0, limits.free_nodes = 0;
  CHECK(stop(limits) == Stop::Nodes);
  limits = {};
  limits.iterations = 1;
  CHECK(stop(limits) == Stop::Iterations);
  CHECK(stop({}) == Stop::Saturated);
}

// Row 8 of the seeds: fusing is never predicted to cost time.
TEST_CASE("a fused layer is not predicted slower than one that stores all it may",
          "[equal][counts]") {
  const Target target = some_target();
  const select::CutSearchOptions stored{0, 0, 0, 0,
                                        [](const std::vector<CutChoice>& choices) {
                                          select::CutDecisions out;
                                          for (const CutChoice& choice : choices)
                                            if (!choice.stored)
                                              out.stored.insert(choice.node);
                                          return out;
                                        }};
  for (Graph (*layer)() :
       {bottleneck_layer, inverted_residual_layer, bert_layer, inception_layer,
        swin_layer, conformer_feed_forward, conformer_attention, conformer_convolution}) {
    const Graph simple = rewrite::simplify(layer());
    Passes passes;
    const double fused = predicted(fuse(simple, target, true), target);
    const double apart =
        predicted(fuse(simple, target, true, passes, {}, stored), target);
    INFO(print_graph(simple).substr(0, 200));
    CHECK(fused <= apart);
  }
}
