// Kernels as work for the compiler.
#pragma once

#include "compiler/codegen/kernels.h"
#include "packager/artefact/stub_jobs.h"

namespace svod::packager {

// `flags`: of all kernels, after ours.
toolchain::CompileJob kernel_job(const Target& target,
                                 const codegen::KernelSource& kernel,
                                 const std::vector<std::string>& flags);

} // namespace svod::packager
