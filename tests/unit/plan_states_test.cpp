// Tensors that stay from run to run: where they lie, and which kernels a plan leaves out.
#include "compiler/ir/build.h"
#include "compiler/ir/digest.h"
#include "compiler/pipeline.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace svod;

namespace {

plan::Plan plan_of(const Graph& graph) {
  CompileOptions options;
  options.target = *find_target("x86-64-v3");
  return compile(graph, options).plan;
}

// Also of those that are too short to be launched by themselves.
size_t launches(const std::vector<plan::Step>& steps) {
  size_t out = 0;
  for (const plan::Step& step : steps)
    if (step.kind == plan::StepKind::LaunchProgram)
      out += step.joined.empty() ? 1 : launches(step.joined);
  return out;
}

// A window of `rows` rows in each of three parts, which gets `grown` new ones; its sum
// over them.
Graph window(int64_t rows, int64_t grown, StateLink link) {
  Graph g;
  const NodeId past = g.add_input("past", DType::F32, {3, rows, 16});
  const NodeId fresh = g.add_input("x", DType::F32, {3, grown, 16});
  const NodeId now = concat(g, {past, fresh}, 1);
  g.add_output("now", now);
  g.add_output("sum", reduce(g, Op::ReduceSum, now, {1}));
  g.add_state(link);
  return g;
}

// A state that each run multiplies; `also`: it leaves the model, too.
Graph running(bool also) {
  Graph g;
  const NodeId state = g.add_input("s", DType::F32, {40, 16});
  const NodeId x = g.add_input("x", DType::F32, {40, 16});
  const NodeId next = map(g, Op::Mul, {state, x});
  g.add_output("next", next);
  g.add_output("y", reduce(g, Op::ReduceSum, map(g, Op::Exp, {next}), {0}));
  if (also) g.add_output("also", next);
  g.add_state({0, 0});
  return g;
}

} // namespace

TEST_CASE("a window moves on through its memory and is not copied", "[plan][states]") {
  const plan::Plan plan = plan_of(window(20, 2, {0, 0, 1, 2, 4}));
  REQUIRE(plan.states.size() == 1);
  const plan::State& state = plan.states[0];
  CHECK(state.kind == plan::State::Kind::Moves);
  CHECK(state.period == 4);
  CHECK(state.parts == 3);
  CHECK(state.bytes == 3 * (20 + 4 * 2) * 16 * 4);
  CHECK(state.step == 2 * 16 * 4);
  // One kernel writes the new rows, another one sums; without a state a third one copies.
  CHECK(launches(plan.steps) == 2);
  Graph alone = window(20, 2, {0, 0, 1, 2, 4});
  alone.set_states({});
  CHECK(launches(plan_of(alone).steps) == 3);
}

TEST_CASE("other states have two places that take turns", "[plan][states]") {
  for (const bool also : {false, true}) {
    const plan::Plan plan = plan_of(running(also));
    REQUIRE(plan.states.size() == 1);
    CHECK(plan.states[0].kind == plan::State::Kind::Turns);
    CHECK(plan.states[0].bytes == 40 * 16 * 4);
    CHECK(plan.states[0].places() == 2);
  }
}

TEST_CASE(
    "a state that is scattered into is changed where it lies, unless it is read later",
    "[plan][states]") {
  for (const bool reads : {false, true}) {
    Graph g;
    const NodeId cache = g.add_input("cache", DType::F32, {64, 16});
    const NodeId at = g.add_input("at", DType::I64, {1, 16});
    const NodeId x = g.add_input("x", DType::F32, {1, 16});
    const NodeId next = scatter(g, cache, at, x, 0, Combiner::Set);
    g.add_output("next", next);
    const NodeId sum = reduce(g, Op::ReduceSum, next, {0});
    // Of the old rows, as many as the new sum says: it comes behind the change.
    g.add_output("y", reads ? map(g, Op::Mul, {expand(g, sum, {64, 16}), cache}) : sum);
    g.add_state({0, 0});
    const plan::Plan plan = plan_of(g);
    REQUIRE(plan.states.size() == 1);
    CHECK(plan.states[0].kind ==
          (reads ? plan::State::Kind::Turns : plan::State::Kind::Place));
  }
}

TEST_CASE("a window that leaves the model as another output has no room of its own",
          "[plan][states]") {
  Graph g = window(20, 2, {0, 0, 1, 2, 4});
  g.add_output("seen", g.outputs()[0].node);
  const plan::Plan plan = plan_of(g);
  REQUIRE(plan.states.size() == 1);
  CHECK(plan.states[0].kind == plan::State::Kind::Turns);
  CHECK(plan.states[0].bytes == 3 * 20 * 16 * 4);
  CHECK(plan.graph[plan.graph.outputs()[0].node].shape == Shape{3, 20, 16});
}

TEST_CASE("a state that nobody reads, and one that is what it was", "[plan][states]") {
  Graph g;
  g.add_input("unread", DType::F32, {8});
  const NodeId kept = g.add_input("kept", DType::F32, {8});
  const NodeId x = g.add_input("x", DType::F32, {8});
  g.add_output("square", map(g, Op::Mul, {x, x}));
  g.add_output("kept", kept);
  g.add_state({0, 0});
  g.add_state({1, 1});
  const plan::Plan plan = plan_of(g);
  REQUIRE(plan.states.size() == 2);
  for (const plan::State& state : plan.states) CHECK(state.bytes == 32);
}

TEST_CASE("states are a part of a graph's digest", "[plan][states][digest]") {
  const Graph a = window(20, 2, {0, 0, 1, 2, 4});
  Graph b = window(20, 2, {0, 0, 1, 2, 4});
  CHECK(graph_digest(a) == graph_digest(b));
  b.set_states({{0, 0, 1, 2, 5}});
  CHECK_FALSE(graph_digest(a) == graph_digest(b));
  b.set_states({});
  CHECK_FALSE(graph_digest(a) == graph_digest(b));
}
