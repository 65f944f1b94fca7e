// Graph -> Kernels.
#include "compiler/pipeline.h"

#include "compiler/fuse.h"
#include "compiler/optimize/schedule_kernel.h"
#include "compiler/rewrite/integer_contractions.h"
#include "compiler/rewrite/simplify.h"
#include "compiler/select/contract_products.h"

namespace svod {

codegen::Kernels compile(const Graph& graph, const CompileOptions& options,
                         Passes& passes) {
  const Target& target = options.target;
  // Shapes and element types are final: nothing below asks about them again.
  check("import", graph);
  Graph integers = passes.run("integer-contractions", [&] {
    const bool dots = target.levels[0].dots != 0;
    return rewrite::integer_contractions(graph, {!options.exact, dots});
  });
  rewrite::SimplifyReport report;
  Graph simple = passes.run("simplify", [&] {
    rewrite::SimplifyOptions rules;
    rules.change_rounding = !options.exact;
    return rewrite::simplify(integers, rules, &report);
  });
  passes.note_end("simplify", report.end);
  FusedGraph fused = fuse(simple, target, options.exact || options.small, passes);
  passes.run("contractions", [&] { return chosen_algorithms(fused); });
  fused = passes.run("contract-products", [&] {
    if (!options.exact) select::contract_products(fused);
    return std::move(fused);
  });
  // Beyond this point no node moves between kernels.
  plan::Plan planned = passes.run("plan", [&] { return plan::plan(std::move(fused)); });
  // Beyond this point every buffer has its offset; nothing allocates.
  plan::Plan scheduled =
      passes.run("schedule", [&] { return schedule(std::move(planned), target); });
  // Beyond this point nothing is chosen.
  return passes.run("emit", [&] { return codegen::emit(std::move(scheduled), target); });
}

plan::Plan schedule(plan::Plan plan, const Target& target) {
  for (ScheduledKernel& program : plan.programs)
    optimize::schedule_levels(program, target);
  return plan;
}

codegen::Kernels compile(const Graph& graph, const CompileOptions& options) {
  Passes passes;
  return compile(graph, options, passes);
}

} // namespace svod
