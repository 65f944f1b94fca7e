// A kernel is a number to the user; the nodes it was made from are what they know.
#include "packager/artefact/compile_faults.h"

#include <set>

namespace svod::packager {

static void add_nodes(const plan::Plan& plan, const plan::Step& step, uint32_t program,
                      std::set<std::string>& names) {
  for (const plan::Step& part : step.joined) add_nodes(plan, part, program, names);
  if (step.kind != plan::StepKind::LaunchProgram || step.program != program) return;
  for (int32_t source : step.sources) names.insert(plan.graph.source_name(source));
}

std::string kernel_in_model(const codegen::Kernels& kernels,
                            const codegen::KernelSource& kernel) {
  std::set<std::string> names;
  for (const plan::Step& step : kernels.plan.steps)
    add_nodes(kernels.plan, step, kernel.program, names);
  constexpr size_t kMostNames = 8;
  std::string list;
  size_t told = 0;
  for (const std::string& name : names) {
    if (told++ == kMostNames) break;
    list += (list.empty() ? "'" : ", '") + name + "'";
  }
  if (names.size() > kMostNames)
    list += " and " + std::to_string(names.size() - kMostNames) + " more";
  return kernel.symbol + (list.empty() ? "" : " (ONNX nodes " + list + ")");
}

std::string compile_fault(const codegen::Kernels& kernels,
                          const codegen::KernelSource& kernel,
                          const std::string& diagnostics) {
  return diagnostics + "kernel " + kernel_in_model(kernels, kernel) +
         " does not compile; another -O or --cpu makes another text of it, "
         "--replace-kernel " +
         kernel.symbol +
         "=FILE takes yours. Please report it with what --emit=cpp prints\n";
}

} // namespace svod::packager
