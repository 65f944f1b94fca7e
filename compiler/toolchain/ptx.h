// PTX as LLVM prints it, completed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace svod::toolchain {

// With the number of threads of a block at each entry, which the driver's compiler counts
// registers by: Clang takes no such attribute from plain C++.
std::string with_block_threads(std::string ptx, int threads);

// One module with the kernels of several. Each is a text and a word that no other has,
// which sets apart what is local to the texts. Of their versions and targets the latest
// counts, which runs what the others ask for.
struct PtxText {
  std::string_view text, name;
};
std::string one_module(const std::vector<PtxText>& texts);

// What a text is made for: sm_90a. Empty: it does not say.
std::string target_of(std::string_view ptx);

} // namespace svod::toolchain
