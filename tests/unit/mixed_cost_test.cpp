// Steps on both sides of a GPU's plan: when that is worth it, and what it counts.
#include "compiler/ir/build.h"
#include "compiler/mixed_cost.h"
#include "compiler/optimize/io_gate.h"
#include "compiler/pipeline.h"
#include "compiler/plan/io.h"
#include "compiler/plan/place_steps.h"

#include <catch2/catch.hpp>

using namespace svod;

namespace {

// Products on either side of functions, `functions` in a row each on what the one before
// it made; none: nothing stands between. With `apart` a map stands between functions.
Graph network(int64_t rows, int64_t columns, int functions, bool apart = false) {
  Graph g;
  const NodeId v = g.add_input("v", DType::F32, {columns, columns});
  NodeId x = matmul(g, g.add_input("x", DType::F32, {rows, columns}), v);
  for (int i = 0; i < functions; ++i) {
    const std::string text = "void f" + std::to_string(i) + "();";
    const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
    const auto blob = g.add_blob(std::vector<std::byte>(bytes.begin(), bytes.end()));
    if (apart && i != 0) x = map(g, Op::Abs, {x});
    x = rebuild(
        g, {Op::Call, DType::F32, {rows, columns}, {blob, 0, 4 * rows * columns}, {x}});
  }
  g.add_output("y", matmul(g, x, v));
  return g;
}

plan::Plan planned(const Graph& g, const Target& target) {
  CompileOptions options;
  options.target = target;
  return compile(g, options).plan;
}

const Target& device() {
  static const Target out = *find_device("sm_80");
  return out;
}

MixedCost mixed_of(const Graph& g) {
  const Target host = *find_target("x86-64-v3");
  return mixed_cost(planned(g, host), host, 1, planned(g, device()), device());
}

} // namespace

TEST_CASE("mixed cost: a large network is worth copies and waits, a small one is not",
          "[gpu]") {
  CHECK(mixed_of(network(256, 512, 1)).pays);
  CHECK(!mixed_of(network(4, 16, 1)).pays);
}

TEST_CASE("mixed cost: what lies between sides is the gate's price of it", "[gpu]") {
  const Graph g = network(64, 256, 1);
  const plan::Plan there = planned(g, device());
  const plan::Crossings crossings = plan::crossings_of(there);
  CHECK((crossings.graphs == 2 && crossings.copies == 2));
  const Machine machine = device().levels.front().machine;
  const IoProfile all = plan::io_profile(there, machine);
  CHECK(all.syncs == 2); // one for each graph
  constexpr int64_t kTensor = 64 * 256 * 4, kFactor = 256 * 256 * 4;
  CHECK(all.host_bytes == 2 * kTensor + kFactor + 2 * kTensor);
  const double waited = 2 * (machine.sync_ns + machine.added_sync_ns),
               copied = double(all.host_bytes) / machine.host_bytes_per_ns;
  const double kernels = mixed_of(g).there_ns - waited - copied;
  CHECK(kernels >= 2 * machine.launch_ns);
  CHECK(kernels < 10 * machine.launch_ns);
}

TEST_CASE("mixed cost: a turn more is a wait more, functions in a row are none",
          "[gpu]") {
  const MixedCost one = mixed_of(network(64, 256, 1)),
                  row = mixed_of(network(64, 256, 2)),
                  apart = mixed_of(network(64, 256, 2, true));
  CHECK(row.there_ns == Approx(one.there_ns));
  const Machine machine = device().levels.front().machine;
  CHECK(apart.there_ns > one.there_ns + machine.sync_ns);
  CHECK(one.here_ns == Approx(row.here_ns)); // functions are both sides' and do not count
}
