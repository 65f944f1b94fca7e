#include "packager/artefact/kernel_jobs.h"

#include "compiler/support/check.h"

#include <algorithm>

namespace svod::packager {

toolchain::CompileJob kernel_job(const Target& target,
                                 const codegen::KernelSource& kernel,
                                 const std::vector<std::string>& flags) {
  auto level = std::ranges::find(target.levels, kernel.level, &Level::suffix);
  SVOD_CHECK(level != target.levels.end()) << "kernel of unknown level";
  toolchain::Source source;
  source.text = kernel.text;
  source.flags = flags;
  source.flags.insert(source.flags.end(), kernel.flags.begin(), kernel.flags.end());
  source.flags = package_flags(std::move(source.flags));
  // A module's linker takes the objects as they are: of functions of one name it keeps
  // the first, and the parts of each sequence have the same names.
  if (target.kind == TargetKind::Wasm) {
    source.flags.push_back("-Dsvod_kernel=" + kernel.symbol);
    source.flags.push_back("-Dbody=body_of_" + kernel.symbol);
  }
  source.prelude_bytes = kernel.prelude_bytes;
  source.only_computes = true;
  return {&*level, std::move(source), kernel.symbol};
}

} // namespace svod::packager
