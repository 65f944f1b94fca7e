// Mends what LLVM 19 gets wrong of vectors on Armv8.1-M: comparisons of floats with zero,
// and conversions that scale.
#pragma once

namespace llvm {
class PassBuilder;
}

namespace svod::toolchain {

void mend_mve(llvm::PassBuilder& builder);

} // namespace svod::toolchain
