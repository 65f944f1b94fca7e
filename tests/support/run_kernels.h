// Runs compiled kernels in this process: compiled and linked to a shared object, loaded,
// and called step by step as the stub would. Kernels for a GPU run as simt.h says.
#pragma once

#include "compiler/codegen/kernels.h"
#include "compiler/ir/evaluate.h"

namespace svod::test {

struct KernelRun {
  std::vector<Tensor> outputs;
  int status = 0;                  // of the first kernel that failed
  std::string error;               // of compiler or linker
  std::vector<std::string> faults; // of a GPU's threads, see simt.h
};

// Whether AddressSanitizer's runtime is in this process, built in or preloaded. Kernels
// are compiled for it then, and buffers do not share memory.
bool kernels_are_watched();

// Kernels for a GPU as a shared object of this processor with the runtime of simt.h: a
// kernel k3_sm_80 is a thread's function of that name, and k3_sm_80_shared lists what its
// block shares. What went wrong, or nothing.
std::string link_gpu_kernels(const codegen::Kernels& kernels, const Target& device,
                             const std::string& path);

KernelRun run_kernels(const codegen::Kernels& kernels, const Target& target,
                      const std::vector<Tensor>& inputs);

} // namespace svod::test
