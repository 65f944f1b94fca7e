// What a user is told of a kernel that the compiler fails on, in words of the model.
#pragma once

#include "compiler/codegen/kernels.h"

#include <string>

namespace svod::packager {

// "k3_base (ONNX nodes 'conv1', 'relu1')".
std::string kernel_in_model(const codegen::Kernels& kernels,
                            const codegen::KernelSource& kernel);

// The compiler's words, then whose kernel it is and what to do.
std::string compile_fault(const codegen::Kernels& kernels,
                          const codegen::KernelSource& kernel,
                          const std::string& diagnostics);

} // namespace svod::packager
