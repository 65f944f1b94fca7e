// Mends how LLVM 19 compares vectors of floats with zero on Armv8.1-M.
#pragma once

namespace llvm {
class PassBuilder;
}

namespace svod::toolchain {

void mend_mve_compares(llvm::PassBuilder& builder);

} // namespace svod::toolchain
