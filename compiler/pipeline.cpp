// Graph -> Kernels. `stage` is the one place that times, verifies and prints.
#include "compiler/pipeline.h"

#include "compiler/fuse.h"
#include "compiler/ir/print.h"
#include "compiler/ir/verify.h"
#include "compiler/kernel/verify.h"
#include "compiler/optimize/schedule_kernel.h"
#include "compiler/plan/verify.h"
#include "compiler/rewrite/integer_contractions.h"
#include "compiler/rewrite/simplify.h"
#include "compiler/select/contract_products.h"
#include "compiler/support/check.h"

#include <chrono>

namespace svod {

static std::string text_of(const Graph& graph) { return print_graph(graph); }
static std::string text_of(const FusedGraph& fused) { return print(fused); }
static std::string text_of(const std::vector<ChosenAlgorithm>& chosen) {
  return print(chosen);
}
static std::string text_of(const Plan& plan) { return print(plan); }
static std::string text_of(const Kernels& kernels) {
  std::string out;
  for (const KernelSource& source : kernels.sources)
    out += "// " + source.symbol + "\n" + source.text + "\n";
  return out;
}

// Faults of the stage's result: bugs of ours.
static void check(const std::string& stage, const Graph& graph) {
  std::vector<std::string> faults = verify(graph);
  SVOD_CHECK(faults.empty()) << "after " << stage << ": " << faults[0];
}
static void check(const std::string&, const FusedGraph& fused) { verify(fused); }
static void check(const std::string&, const std::vector<ChosenAlgorithm>&) {}
static void check(const std::string&, const Plan& plan) { verify(plan); }
// Read by check_cpp when they are compiled.
static void check(const std::string&, const Kernels&) {}

template <class F> static auto stage(const std::string& name, Hooks& hooks, F&& work) {
  auto start = std::chrono::steady_clock::now();
  auto result = work();
  std::chrono::duration<double, std::milli> spent =
      std::chrono::steady_clock::now() - start;
  hooks.time_ms[name] = spent.count();
  check(name, result);
  if (hooks.print && (hooks.print_after == name || hooks.print_after == "all"))
    hooks.print(name, text_of(result));
  return result;
}

Kernels compile(const Graph& graph, Hooks& hooks) {
  // Shapes and element types are final: nothing below asks about them again.
  check("import", graph);
  rewrite::SimplifyOptions options;
  options.change_rounding = !hooks.exact;
  Graph simple = stage("simplify", hooks, [&] {
    const bool dots = hooks.target.levels[0].dots != 0;
    return rewrite::simplify(rewrite::integer_contractions(graph, {!hooks.exact, dots}),
                             options);
  });
  FusedGraph fused = stage("fuse", hooks, [&] {
    FusedGraph out = fuse(simple, hooks.target, hooks.exact || hooks.small);
    if (!hooks.exact) contract_products(out);
    return out;
  });
  stage("algorithms", hooks, [&] { return chosen_algorithms(fused); });
  // Beyond this point no node moves between kernels.
  Plan planned = stage("plan", hooks,
                       [&] { return plan(std::move(fused), hooks.target.machine()); });
  // Beyond this point every buffer has its offset; nothing allocates.
  Plan scheduled = stage("schedule", hooks,
                         [&] { return schedule(std::move(planned), hooks.target); });
  // Beyond this point nothing is chosen.
  return stage("emit", hooks, [&] { return emit(std::move(scheduled), hooks.target); });
}

Plan schedule(Plan plan, const Target& target) {
  for (ScheduledKernel& program : plan.programs) schedule_levels(program, target);
  return plan;
}

} // namespace svod
