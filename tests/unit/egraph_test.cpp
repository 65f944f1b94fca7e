// The e-graph: what a class is, congruence, limits, and that all forms of a class have
// one value.
#include "compiler/egraph/improve.h"
#include "compiler/ir/build.h"
#include "compiler/ir/digest.h"
#include "compiler/ir/print.h"
#include "compiler/ir/verify.h"
#include "tests/support/random_graph.h"
#include "tests/support/random_tensor.h"

#include <catch2/catch.hpp>

#include <map>

using namespace svod;
using namespace svod::egraph;
using namespace svod::test;

namespace {

const Machine& some_machine() {
  static const Machine machine = find_machine("cortex-a76");
  return machine;
}

// Of each live node of the graph, its node in the e-graph.
std::map<NodeId, NodeId> places(EGraph& e, const Graph& graph) {
  std::map<NodeId, NodeId> out;
  for (size_t i = 0; i < graph.inputs().size(); ++i)
    out[graph.inputs()[i].node] = e.g.inputs()[i].node;
  for (NodeId id : graph.live_nodes()) {
    Node node = graph[id];
    if (node.op == Op::Input) continue;
    for (NodeId& input : node.inputs) input = out.at(input);
    if (has_blob(node.op))
      node.payload[0] = e.g.add_blob(graph.blob(static_cast<uint32_t>(node.payload[0])));
    for (size_t b = 0; b < body_count(node.op); ++b)
      node.payload[b] = e.g.add_body(graph.body(static_cast<uint32_t>(node.payload[b])));
    out[id] = e.g.intern(std::move(node));
  }
  return out;
}

// The forms of each class of the graph against its own node. Where `exact`, they give the
// same bits.
std::string forms_fault(const RandomGraph& random, const SaturateOptions& options,
                        Saturation* report = nullptr) {
  EGraph e(random.graph);
  const auto place = places(e, random.graph);
  const Saturation done = saturate(e, options);
  if (report) *report = done;
  Graph all = e.g;
  const size_t outputs = all.outputs().size();
  std::vector<std::pair<NodeId, NodeId>> pairs; // node of the graph, form
  for (const auto& [own, at] : place)
    for (NodeId form : e.of(at))
      if (form != at && random.graph[own].op != Op::Loop &&
          random.graph[own].op != Op::If)
        pairs.push_back({own, form}), all.add_output("", form), all.add_output("", at);
  const Evaluated values = evaluate(all, random.inputs);
  if (values.failed != kNoNode) return "";
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto [own, form] = pairs[i];
    const double atol = options.keep_rounding ? 0 : random.tolerance[own];
    const std::string why =
        compare_tensors(values.outputs[outputs + 2 * i],
                        values.outputs[outputs + 2 * i + 1], atol == 0 ? 0 : 1e-5, atol);
    if (!why.empty())
      return "%" + std::to_string(form) + " for %" + std::to_string(place.at(own)) +
             ": " + why + "\n" + print_graph(all);
  }
  return "";
}

void check_forms(uint64_t seeds, const SaturateOptions& options) {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    RandomGraph random = random_graph(seed);
    if (forms_fault(random, options).empty()) continue;
    const RandomGraph small = shrink(
        random, [&](const RandomGraph& g) { return !forms_fault(g, options).empty(); });
    FAIL("seed " << seed << ": " << forms_fault(small, options));
  }
}

SaturateOptions few_iterations() {
  SaturateOptions options;
  options.limits.iterations = 3;
  options.limits.more_nodes = 8;
  return options;
}

// sum over k of x[m, 1, k] * w[1, n, k] for known w.
NodeId product_of(Graph& g, NodeId x, int64_t n, Random& random) {
  const Shape in = g[x].shape; // [m, k]
  Tensor w = random_tensor(random, {1, n, in[1]});
  const NodeId weights = weight(g, DType::F32, w.shape, g.add_blob(w.bytes));
  const Shape full{in[0], n, in[1]};
  const NodeId repeated = expand(g, reshape(g, x, {in[0], 1, in[1]}), full);
  const NodeId product = map(g, Op::Mul, {repeated, expand(g, weights, full)});
  return reshape(g, reduce(g, Op::ReduceSum, product, {2}), {in[0], n});
}

size_t count_of(const Graph& g, Op op) {
  size_t count = 0;
  for (NodeId id : g.live_nodes()) count += g[id].op == op && g.depends_on_input(id);
  return count;
}

// One input and what is made of it.
RandomGraph with_input(Shape shape, const std::function<NodeId(Graph&, NodeId)>& make) {
  Random random(7);
  RandomGraph out;
  const NodeId x = out.graph.add_input("x", DType::F32, shape);
  out.inputs = {random_tensor(random, shape)};
  out.graph.add_output("y", make(out.graph, x));
  out.tolerance.assign(out.graph.size(), 1e-3);
  return out;
}

} // namespace

TEST_CASE("joined classes make their users one, up to the outputs", "[egraph]") {
  Graph g;
  const NodeId a = g.add_input("a", DType::F32, {4}),
               b = g.add_input("b", DType::F32, {4});
  NodeId left = a, right = b;
  for (int i = 0; i < 3; ++i) {
    left = map(g, Op::Exp, {left});
    right = map(g, Op::Exp, {right});
  }
  const NodeId both = map(g, Op::Add, {left, right});
  g.add_output("y", both);
  EGraph e(g);
  const NodeId y = e.g.outputs()[0].node, l = e.g[y].inputs[0], r = e.g[y].inputs[1];
  CHECK(!e.same(l, r));
  CHECK(e.merge(e.g.inputs()[0].node, e.g.inputs()[1].node));
  e.rebuild();
  CHECK(e.same(l, r));
  CHECK(e.of(l).size() == 1); // the two are one form
  CHECK(!e.merge(l, r));
  CHECK(e.live_classes().size() == 5);
}

TEST_CASE("a class is named by its lowest node and known by any form", "[egraph]") {
  Graph g;
  const NodeId a = g.add_input("a", DType::I64, {4});
  const NodeId difference = g.intern({Op::Sub, DType::I64, {4}, {}, {a, a}});
  g.add_output("y", difference);
  EGraph e(g);
  const NodeId y = e.g.outputs()[0].node;
  CHECK(!e.known(y));
  const NodeId zero = constant_int(e.g, DType::I64, {4}, 0);
  e.merge(y, zero);
  e.rebuild();
  CHECK(e.find(zero) == y);
  CHECK(e.known(y));
  CHECK(e.known_form(y) == zero);
}

TEST_CASE("all forms of a class have its value", "[egraph][property]") {
  check_forms(400, few_iterations());
}

TEST_CASE("with roundings kept, all forms of a class have its bits",
          "[egraph][property]") {
  SaturateOptions options = few_iterations();
  options.keep_rounding = true;
  check_forms(400, options);
}

TEST_CASE("all forms of many classes have their values", "[egraph][property][long]") {
  check_forms(6000, few_iterations());
}

TEST_CASE("saturation respects its limits and says which one it met", "[egraph]") {
  const RandomGraph deep = with_input({8, 6}, [](Graph& g, NodeId x) {
    Random random(3);
    NodeId sum = product_of(g, x, 6, random);
    for (int i = 0; i < 4; ++i)
      sum = map(g, Op::Add, {sum, map(g, Op::Mul, {x, product_of(g, x, 6, random)})});
    return sum;
  });
  const auto run = [&](Limits limits) {
    EGraph e(deep.graph);
    SaturateOptions options;
    options.limits = limits;
    const size_t before = e.node_count();
    const Saturation done = saturate(e, options);
    CHECK(done.nodes == e.node_count());
    // One application may make a few nodes beyond the limit.
    CHECK(static_cast<double>(done.nodes) <=
          static_cast<double>(before) * (1 + limits.more_nodes) +
              static_cast<double>(limits.free_nodes) + 32);
    CHECK(done.iterations <= limits.iterations);
    return done;
  };
  Limits limits;
  limits.more_nodes = 0, limits.free_nodes = 4;
  CHECK(run(limits).stop == Stop::Nodes);
  limits = {};
  limits.more_nodes = 1000, limits.iterations = 2;
  CHECK(run(limits).stop == Stop::Iterations);
  limits = {};
  limits.more_bytes = 8;
  CHECK(run(limits).stop == Stop::Bytes);
  limits = {};
  int asked = 0;
  limits.out_of_time = [&] { return ++asked > 3; };
  CHECK(run(limits).stop == Stop::Time);

  const RandomGraph small = with_input(
      {4}, [](Graph& g, NodeId x) { return map(g, Op::Exp, {map(g, Op::Neg, {x})}); });
  EGraph e(small.graph);
  CHECK(saturate(e, {}).stop == Stop::Saturated);
}

TEST_CASE("improved graphs keep the values of random ones", "[egraph][property]") {
  ImproveOptions options;
  options.saturate = few_iterations();
  options.worth = 1;
  int taken = 0;
  const auto fault = [&](const RandomGraph& random) -> std::string {
    ImproveReport report;
    const Graph better = improve(random.graph, some_machine(), options, &report);
    taken += report.taken;
    if (report.cost_after > report.cost_before) return "it costs more";
    for (const std::string& why : verify(better)) return "invalid: " + why;
    return compare_outputs(random, better);
  };
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    const RandomGraph random = random_graph(seed);
    const std::string why = fault(random);
    if (why.empty()) continue;
    const RandomGraph small =
        shrink(random, [&](const RandomGraph& g) { return !fault(g).empty(); });
    FAIL("seed " << seed << ": " << why << '\n'
                 << print_graph(small.graph) << "becomes\n"
                 << print_graph(improve(small.graph, some_machine(), options)));
  }
  CHECK(taken > 100);
}

TEST_CASE("the same graph gives the same answer", "[egraph]") {
  ImproveOptions options;
  options.saturate = few_iterations();
  options.worth = 1;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const RandomGraph random = random_graph(seed);
    ImproveReport first, second;
    const Graph a = improve(random.graph, some_machine(), options, &first);
    const Graph b = improve(random.graph, some_machine(), options, &second);
    CHECK(print_graph(a) == print_graph(b));
    CHECK(first.candidates == second.candidates);
    CHECK(first.saturation.nodes == second.saturation.nodes);
    CHECK(first.saturation.fired == second.saturation.fired);
  }
}

TEST_CASE("sums of products with one input become one", "[egraph]") {
  const RandomGraph apart = with_input({16, 24}, [](Graph& g, NodeId x) {
    Random random(5);
    const NodeId a = product_of(g, x, 20, random), b = product_of(g, x, 20, random);
    return map(g, Op::Add, {a, b});
  });
  ImproveReport report;
  const Graph better = improve(apart.graph, some_machine(), {}, &report);
  CHECK(report.taken);
  CHECK(count_of(apart.graph, Op::ReduceSum) == 2);
  CHECK(count_of(better, Op::ReduceSum) == 1);
  CHECK(count_of(better, Op::Mul) == 1);
  CHECK(compare_outputs(apart, better) == "");
  ImproveOptions exact;
  exact.saturate.keep_rounding = true;
  exact.saturate.families = {Family::Rules, Family::Factor};
  CHECK(graph_digest(improve(apart.graph, some_machine(), exact)) ==
        graph_digest(apart.graph));
}

TEST_CASE("a scale of scores moves into the weights of a query", "[egraph]") {
  const RandomGraph scaled = with_input({12, 8}, [](Graph& g, NodeId x) {
    Random random(5);
    const NodeId query = product_of(g, x, 8, random), key = product_of(g, x, 8, random);
    const NodeId scores = matmul(g, query, permute_last_two(g, key));
    return map(g, Op::Exp,
               {map(g, Op::Mul, {scores, constant(g, DType::F32, {12, 12}, 0.35)})});
  });
  ImproveOptions options;
  options.saturate.families = {Family::Rules, Family::Scale};
  options.worth = 1;
  ImproveReport report;
  const Graph better = improve(scaled.graph, some_machine(), options, &report);
  CHECK(report.taken);
  CHECK(count_of(scaled.graph, Op::Mul) == 4);
  CHECK(count_of(better, Op::Mul) == 3);
  CHECK(compare_outputs(scaled, better) == "");
}

TEST_CASE("contractions of one input are slices of one", "[egraph]") {
  const RandomGraph apart = with_input({3, 16}, [](Graph& g, NodeId x) {
    Random random(5);
    const NodeId a = product_of(g, x, 4, random), b = product_of(g, x, 6, random);
    return concat(g, {map(g, Op::Exp, {b}), map(g, Op::Neg, {a})}, 1);
  });
  ImproveOptions options;
  options.worth = 1;
  ImproveReport report;
  const Graph better = improve(apart.graph, some_machine(), options, &report);
  CHECK(report.saturation.joined == 2);
  CHECK(count_of(better, Op::ReduceSum) == 1);
  CHECK(count_of(better, Op::Slice) == 2);
  CHECK(compare_outputs(apart, better) == "");
}

// Layers of a sum of products, a scale, a bias and a residual.
TEST_CASE("nodes and candidates grow with the graph and no faster", "[egraph]") {
  const auto layers = [](int count) {
    return with_input({6, 8}, [&](Graph& g, NodeId x) {
      Random random(11);
      for (int i = 0; i < count; ++i) {
        const NodeId scaled =
            map(g, Op::Mul,
                {product_of(g, x, 8, random), constant(g, DType::F32, {6, 8}, 1.5)});
        x = map(g, Op::Add,
                {x, map(g, Op::Max, {scaled, constant(g, DType::F32, {6, 8}, 0)})});
      }
      return x;
    });
  };
  ImproveOptions options;
  // Views of the residuals tie all layers into one part, which takes all candidates.
  options.saturate.families = {Family::Rules, Family::Reversed, Family::Factor,
                               Family::Scale, Family::Split,    Family::Join};
  ImproveReport small, large;
  improve(layers(40).graph, some_machine(), options, &small);
  improve(layers(400).graph, some_machine(), options, &large);
  CHECK(large.optimal);
  CHECK(large.saturation.iterations <= small.saturation.iterations + 1);
  CHECK(large.saturation.nodes <= 11 * small.saturation.nodes);
  CHECK(large.candidates <= 12 * small.candidates);
}
