// Machine code of a GPU's kernels, by ptxas of the CUDA toolkit, where there is one.
#pragma once

#include "compiler/toolchain/ptx.h"

#include <cstddef>
#include <string>
#include <vector>

namespace svod::packager {

// ptxas as a path: what --ptxas says, else the one on PATH. Empty: there is none, or
// --ptxas=off asks for none.
std::string find_ptxas(const std::string& option);

// All kernels of one architecture (sm_90) as one module. Empty where ptxas refuses them,
// with its words on stderr: a program goes without.
std::vector<std::byte> assemble(const std::string& ptxas, const std::string& architecture,
                                const std::vector<toolchain::PtxText>& kernels);

} // namespace svod::packager
