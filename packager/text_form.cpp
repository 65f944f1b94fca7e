#include "packager/text_form.h"

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

std::string kernels_text(const Options& options, const codegen::Kernels& kernels,
                         std::string& error) {
  std::string out;
  toolchain::Compiler compiler = package_compiler();
  for (const codegen::KernelSource& kernel : kernels.sources) {
    out += "// " + kernel.symbol + "\n";
    if (options.emit == Output::Cpp) {
      out += kernel.text + "\n";
      continue;
    }
    auto level = std::ranges::find(options.target.levels, kernel.level, &Level::suffix);
    toolchain::Source source;
    source.text = kernel.text;
    source.flags = kernel.flags;
    toolchain::CompileResult result =
        compiler.compile(options.target, *level, source, toolchain::Emit::Assembly);
    if (!result.ok) error = result.diagnostics;
    out += std::string(reinterpret_cast<const char*>(result.output.data()),
                       result.output.size());
  }
  return out;
}

} // namespace svod::packager
