// What is said about kernels: where they come from, why they end, what the gate makes of
// it; and that no fusion loses an output.
#include "compiler/explain/cut_work.h"
#include "compiler/explain/explain.h"
#include "compiler/fuse.h"
#include "compiler/ir/build.h"
#include "compiler/pipeline.h"
#include "compiler/rewrite/simplify.h"
#include "tests/support/layer_graphs.h"
#include "tests/support/model_graph.h"
#include "tests/support/random_tensor.h"
#include "tests/support/sweep.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

using namespace svod;
using namespace svod::test;
using explain::Account;
using explain::Verdict;

namespace {

struct Explained {
  FusedGraph fused;
  codegen::Kernels kernels;
  Account account;
};

Explained explained(const Graph& g) {
  Explained out;
  CompileOptions options;
  options.target = *find_target("x86-64");
  options.fused = &out.fused;
  out.kernels = compile(g, options);
  out.account = explain::explain(out.fused, out.kernels.plan, options.target.machine());
  return out;
}

// Each node of the graph that no constant can replace is its own ONNX node.
Graph with_sources(const Graph& from) {
  Graph g;
  for (uint32_t b = 0; b < from.blob_count(); ++b) g.add_blob(from.blob(b));
  for (uint32_t b = 0; b < from.body_count(); ++b) g.add_body(from.body(b));
  std::vector<NodeId> now(from.size());
  size_t input = 0;
  for (NodeId n = 0; n < from.size(); ++n) {
    if (from[n].op == Op::Input) {
      now[n] = g.add_input(from.inputs()[input++].name, from[n].dtype, from[n].shape);
      continue;
    }
    Node node = from[n];
    for (NodeId& in : node.inputs) in = now[in];
    g.open_source("n" + std::to_string(n));
    now[n] = g.intern(std::move(node));
    g.close_source();
  }
  for (const GraphOutput& output : from.outputs())
    g.add_output(output.name, now[output.node]);
  return g;
}

} // namespace

// SEEDS row 12: rewrites merge where a node comes from, and every kernel knows it.
TEST_CASE("explain: every kernel names the nodes it comes from", "[explain]") {
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    INFO("seed " << seed);
    const Graph g = with_sources(model_graph(seed).graph);
    const Explained e = explained(g);
    std::set<std::string> named;
    for (const explain::KernelAccount& k : e.account.kernels) {
      CHECK(!k.nodes.empty());
      named.insert(k.nodes.begin(), k.nodes.end());
    }
    // What the values are made of that are still there after all rewrites.
    for (NodeId n : e.fused.graph.live_nodes()) {
      if (!explain::is_computed(e.fused.graph, n)) continue;
      INFO("%" << n << " " << info(e.fused.graph[n].op).text);
      CHECK(!e.fused.graph.sources(n).empty());
      for (int32_t source : e.fused.graph.sources(n))
        CHECK(named.count(e.fused.graph.source_names()[static_cast<size_t>(source)]) ==
              1);
    }
  }
}

TEST_CASE("explain: a rewrite keeps both of what it makes one of", "[explain]") {
  Graph g;
  const NodeId x = g.add_input("x", DType::F32, {4, 8});
  g.open_source("first");
  NodeId y = broadcast_map(g, Op::Add, {x, constant(g, DType::F32, {1}, 1)});
  g.close_source();
  g.open_source("second");
  y = broadcast_map(g, Op::Add, {y, constant(g, DType::F32, {1}, 2)});
  g.close_source();
  g.add_output("y", y);
  const Explained e = explained(g);
  REQUIRE(e.account.kernels.size() == 1);
  CHECK(e.account.kernels[0].nodes == std::vector<std::string>{"first", "second"});
  // They are no part of what the graph is: its plan is that of one without names.
  CHECK(plan::print(e.kernels.plan).find("first") == std::string::npos);
}

// SEEDS section 3: the fusion that the gate was made for dropped an output.
TEST_CASE("explain: no fusion drops an output", "[explain][property][sweep]") {
  for (uint64_t seed = 1; seed <= swept(200, 60); ++seed) {
    INFO("seed " << seed);
    RandomGraph random = random_graph(seed);
    Graph& g = random.graph;
    // Values between others leave, too, and one leaves twice.
    Random draw(seed);
    const std::vector<NodeId> live = g.live_nodes();
    for (int i = 0; i < 4; ++i) {
      const NodeId n = live[static_cast<size_t>(draw.below(std::ssize(live)))];
      if (g[n].op != Op::Result && !has_body(g[n].op))
        g.add_output("more" + std::to_string(i), n);
    }
    g.add_output("again", g.outputs()[0].node);
    const FusedGraph fused = fuse(rewrite::simplify(g), *find_target("x86-64"));
    std::multiset<int32_t> stored;
    for (const Buffer& b : fused.buffers)
      stored.insert(b.outputs.begin(), b.outputs.end());
    REQUIRE(stored.size() == g.outputs().size());
    for (int32_t i = 0; i < std::ssize(g.outputs()); ++i) CHECK(stored.count(i) == 1);
    const plan::Plan plan =
        plan::plan(FusedGraph(fused), find_target("x86-64")->machine());
    std::set<uint32_t> slots;
    for (const plan::Slot& slot : plan.slots)
      if (slot.slot_class == plan::SlotClass::Output) slots.insert(slot.io);
    CHECK(slots.size() == g.outputs().size());
  }
}

TEST_CASE("explain: an activation behind a convolution saves a pass", "[explain]") {
  const Account account = explained(bottleneck_layer()).account;
  size_t epilogues = 0;
  for (const explain::KernelAccount& k : account.kernels)
    for (const Verdict& v : k.taken_in) {
      CHECK(v.made);
      if (v.kind != explain::FusionKind::Epilogue) continue;
      ++epilogues;
      CHECK(v.gate);
      CHECK(v.gain_ns > 0);
      CHECK(v.apart.launches == v.fused.launches + 1);
      CHECK(v.apart.all().written > v.fused.all().written);
    }
  CHECK(epilogues >= 3); // bias and activation, of what is no step of an algorithm
  CHECK(account.run.launches < account.unfused.launches);
  CHECK(account.saved_ns > 0);
}

TEST_CASE("explain: what would be computed often is stored, and the gate agrees",
          "[explain]") {
  Graph g;
  const NodeId x = g.add_input("x", DType::F32, {64, 128});
  const NodeId y = g.add_input("y", DType::F32, {128, 64});
  g.add_output("z", matmul(g, map(g, Op::Erf, {x}), y));
  const Account account = explained(g).account;
  const auto erf = std::ranges::find(account.kernels, StoreReason::Often,
                                     &explain::KernelAccount::reason);
  REQUIRE(erf != account.kernels.end());
  REQUIRE(erf->border);
  CHECK(erf->border->evaluations == 64);
  CHECK(erf->border->gain_ns < 0);
  CHECK(erf->border->agrees());
  CHECK(erf->border->open);
  CHECK(erf->readers.size() == 1);
}

TEST_CASE("explain: views are judged by how they lie", "[explain]") {
  Graph g;
  const NodeId x = g.add_input("x", DType::F32, {4, 1, 6, 5});
  using explain::lies_as_viewed;
  CHECK(lies_as_viewed(g, reshape(g, x, {24, 5})));
  CHECK(lies_as_viewed(g, permute(g, x, {1, 0, 2, 3})));
  CHECK(!lies_as_viewed(g, permute(g, x, {0, 1, 3, 2})));
  CHECK(lies_as_viewed(g, slice_axis(g, x, 0, 1, 2)));
  CHECK(!lies_as_viewed(g, slice_axis(g, x, 2, 1, 2)));
  CHECK(lies_as_viewed(g, slice_axis(g, slice_axis(g, x, 0, 1, 1), 2, 1, 2)));
  CHECK(!lies_as_viewed(g, slice(g, x, {0, 0, 0, 4}, {1, 1, 1, -1}, {4, 1, 6, 5})));
  CHECK(!lies_as_viewed(g, expand(g, x, {4, 3, 6, 5})));
  // An output that is a view moves its elements in a kernel, and counts as one.
  g.add_output("y", permute(g, x, {0, 1, 3, 2}));
  const Explained e = explained(g);
  CHECK(e.account.run.launches == 1);
  CHECK(e.account.unfused.launches == 1);
  CHECK(e.account.unfused.all().written == 4 * 6 * 5 * 4);
}
