// PTX as LLVM prints it, completed.
#pragma once

#include <string>

namespace svod::toolchain {

// With the number of threads of a block at each entry, which the driver's compiler counts
// registers by: Clang takes no such attribute from plain C++.
std::string with_block_threads(std::string ptx, int threads);

} // namespace svod::toolchain
