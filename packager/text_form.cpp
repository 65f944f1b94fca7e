#include "packager/text_form.h"

#include "compiler/support/bytes.h"
#include "packager/artefact/compile_faults.h"
#include "packager/artefact/device_parts.h"
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
    if (options.target.kind == TargetKind::Gpu) {
      const bool custom = kernels.plan.programs[kernel.program].call() != nullptr;
      out += custom ? "// C++ of its own, which has no form for a GPU\n"
                    : ptx_text(options.target, kernels, kernel, error);
      continue;
    }
    auto level = std::ranges::find(options.target.levels, kernel.level, &Level::suffix);
    toolchain::Source source;
    source.text = kernel.text;
    source.flags = kernel.flags;
    toolchain::CompileResult result =
        compiler.compile(options.target, *level, source, toolchain::Emit::Assembly);
    if (!result.ok) error = compile_fault(kernels, kernel, result.diagnostics);
    out += text_of(result.output);
  }
  return out;
}

} // namespace svod::packager
