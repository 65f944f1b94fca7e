// Kernels against the evaluator: random graphs through fusion, planning, emission and the
// compiler, on this machine.
#include "compiler/ir/print.h"
#include "compiler/pipeline.h"
#include "compiler/support/check.h"
#include "tests/support/random_graph.h"
#include "tests/support/run_kernels.h"

#include <catch2/catch.hpp>

using namespace svod;
using namespace svod::test;

namespace {

std::string kernel_fault(const RandomGraph& random, const Target& target) {
  Hooks hooks;
  hooks.target = target;
  std::optional<Kernels> kernels;
  try {
    kernels = compile(random.graph, hooks);
  } catch (const InternalError& error) {
    return error.what();
  }
  KernelRun run = run_kernels(*kernels, target, random.inputs);
  if (!run.error.empty()) return "does not compile: " + run.error;
  Evaluated want = evaluate(random.graph, random.inputs);
  if (want.failed != kNoNode)
    return run.status == 0 ? "an index error went unnoticed" : "";
  if (run.status != 0) return "status " + std::to_string(run.status);
  for (size_t i = 0; i < want.outputs.size(); ++i) {
    // Where every order of operations gives the same bits, kernels must give them too.
    double tolerance = random.tolerance[random.graph.outputs()[i].node];
    std::string what =
        compare_tensors(run.outputs[i], want.outputs[i], tolerance, tolerance);
    if (!what.empty()) return "output " + std::to_string(i) + ": " + what;
  }
  return "";
}

// How many of the seeds [first, last] fail; each is reported with the smallest graph
// found.
int failures(uint64_t first, uint64_t last, const Target& target,
             const RandomGraphOptions& options = {}) {
  int count = 0;
  for (uint64_t seed = first; seed <= last; ++seed) {
    RandomGraph random = random_graph(seed, options);
    std::string what = kernel_fault(random, target);
    if (what.empty()) continue;
    ++count;
    RandomGraph small = shrink(random, [&](const RandomGraph& graph) {
      return !kernel_fault(graph, target).empty();
    });
    UNSCOPED_INFO("seed " << seed << ": " << what
                          << "\nshrunk: " << kernel_fault(small, target) << '\n'
                          << print_graph(small.graph));
  }
  return count;
}

RandomGraphOptions large() {
  RandomGraphOptions options;
  options.nodes = 12;
  options.max_elements = 6000;
  options.large = true;
  return options;
}

} // namespace

TEST_CASE("kernels compute what the evaluator computes", "[kernels][property]") {
  CHECK(failures(1, 12, *find_target("native")) == 0);
  CHECK(failures(1, 8, *find_target("native"), large()) == 0);
}

TEST_CASE("kernels of many graphs compute what the evaluator computes",
          "[kernels][property][long]") {
  CHECK(failures(13, 200, *find_target("native")) == 0);
  CHECK(failures(9, 150, *find_target("native"), large()) == 0);
}

TEST_CASE("kernels of the weakest level compute what the evaluator computes",
          "[kernels][property][long]") {
  CHECK(failures(301, 330, *find_target("x86-64-v2")) == 0);
  CHECK(failures(301, 330, *find_target("x86-64-v2"), large()) == 0);
}
