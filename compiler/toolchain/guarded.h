// Runs a piece of LLVM so that its abort ("Cannot select ...") becomes an error text
// instead of the end of this process. What the piece had allocated is lost then.
#pragma once

#include <functional>
#include <string>

namespace svod::toolchain {

// Empty when `work` came back, else what LLVM said before it gave up.
std::string run_guarded(const std::function<void()>& work);

// Registers the code generators we use, once per process.
void initialize_llvm();

} // namespace svod::toolchain
