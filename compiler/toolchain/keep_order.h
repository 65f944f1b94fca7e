// Keeps the instructions of a kernel in the order of its text, on the Arm cores where
// that takes fewer registers than the order of LLVM: of 32 bits, and of 64 for products
// of bytes.
#pragma once

#include <string_view>

namespace llvm {
class PassBuilder;
}

namespace svod::toolchain {

bool keeps_order(std::string_view triple, bool small);
void keep_order(llvm::PassBuilder& builder);

} // namespace svod::toolchain
