// Kernels against the evaluator: random graphs through fusion, planning, emission and the
// compiler, on this machine.
#include "compiler/pipeline.h"
#include "tests/support/random_graph.h"
#include "tests/support/run_kernels.h"

#include <catch2/catch.hpp>

using namespace svod;
using namespace svod::test;

static std::string check_graph(const RandomGraph& random) {
  Hooks hooks;
  hooks.target = *find_target("native");
  Kernels kernels = compile(random.graph, hooks);
  KernelRun run = run_kernels(kernels, hooks.target, random.inputs);
  if (!run.error.empty()) return "does not compile: " + run.error;
  Evaluated want = evaluate(random.graph, random.inputs);
  if (want.failed != kNoNode) return run.status == 0 ? "an index error went unnoticed" : "";
  if (run.status != 0) return "status " + std::to_string(run.status);
  for (size_t i = 0; i < want.outputs.size(); ++i) {
    double tolerance = random.tolerance[random.graph.outputs()[i].node];
    std::string what = compare_tensors(run.outputs[i], want.outputs[i],
                                       std::max(tolerance, 1e-5), std::max(tolerance, 1e-5));
    if (!what.empty()) return "output " + std::to_string(i) + ": " + what;
  }
  return "";
}

TEST_CASE("kernels compute what the evaluator computes", "[kernels]") {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    RandomGraph random = random_graph(seed);
    std::string what = check_graph(random);
    INFO("seed " << seed);
    REQUIRE(what == "");
  }
}
