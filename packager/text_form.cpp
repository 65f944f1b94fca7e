#include "packager/text_form.h"

#include "compiler/support/bytes.h"
#include "compiler/toolchain/ptx.h"
#include "packager/artefact/compile_faults.h"
#include "packager/artefact/objects.h"

#include <algorithm>

namespace svod::packager {

static constexpr std::pair<Output, const char*> kForms[] = {
    {Output::Graph, "simplify"},
    {Output::Algorithms, "contractions"},
    {Output::Fused, "contract-products"},
    {Output::Plan, "plan"},
    {Output::Schedule, "schedule"}};

const char* pass_of_form(Output form) {
  for (const auto& [of, pass] : kForms)
    if (of == form) return pass;
  return nullptr;
}

// Kernels side by side in one file. Each text is whole, for --replace-kernel takes one by
// itself: the scalar functions that stand first are guarded, all else is in a namespace
// of the kernel's, and svod_kernel, which is what every kernel calls itself, is renamed
// by a line before the one with its name, where a reader cuts.
static std::string named_text(const codegen::KernelSource& kernel) {
  constexpr std::string_view kEnd = "} // namespace scalar\n\n#endif\n";
  const size_t last = kernel.text.rfind(kEnd);
  const size_t own = last == std::string::npos ? 0 : last + kEnd.size();
  return "#undef svod_kernel\n#define svod_kernel " + kernel.symbol + "\n// " +
         kernel.symbol + "\n" + kernel.text.substr(0, own) + "namespace of_" +
         kernel.symbol + " {\n" + kernel.text.substr(own) + "\n} // namespace of_" +
         kernel.symbol + "\n";
}

std::string kernels_text(const Options& options, const codegen::Kernels& kernels,
                         std::string& error) {
  std::string out;
  toolchain::Compiler compiler = package_compiler();
  for (const codegen::KernelSource& kernel : kernels.sources) {
    if (options.emit == Output::Cpp) {
      out += named_text(kernel);
      continue;
    }
    out += "// " + kernel.symbol + "\n";
    auto level = std::ranges::find(options.target.levels, kernel.level, &Level::suffix);
    toolchain::Source source;
    source.text = kernel.text;
    source.flags = kernel.flags;
    const ScheduledKernel& program = kernels.plan.programs[kernel.program];
    const bool gpu = options.target.kind == TargetKind::Gpu;
    if (gpu && program.call()) {
      out += "// a custom operator, which has no form for a GPU\n";
      continue;
    }
    if (gpu) source.flags.push_back("-Dsvod_kernel=" + kernel.symbol);
    toolchain::CompileResult result =
        compiler.compile(options.target, *level, source, toolchain::Emit::Assembly);
    if (!result.ok) error = compile_fault(kernels, kernel, result.diagnostics);
    std::string assembly(text_of(result.output));
    if (gpu) {
      const size_t number = static_cast<size_t>(level - options.target.levels.begin());
      assembly = toolchain::with_block_threads(std::move(assembly),
                                               program.levels[number].gpu->threads);
    }
    out += assembly;
  }
  return out;
}

} // namespace svod::packager
