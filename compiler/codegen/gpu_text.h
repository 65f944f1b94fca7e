// Pieces of text that all mappings of a GPU's kernels use.
#pragma once

#include "compiler/ir/dtype.h"

#include <string>

namespace svod::codegen {

inline std::string text_of(int64_t number) { return std::to_string(number) + "u"; }

// What is not certain of a place in blocks: text, empty where all is.
inline std::string bounded(const std::string& name, int64_t extent, int64_t block) {
  return extent % block == 0 ? "" : name + " < " + text_of(extent);
}

inline std::string both(const std::string& a, const std::string& b) {
  return a.empty() || b.empty() ? a + b : a + " && " + b;
}

inline constexpr const char* kUnrolled = "#pragma clang loop unroll(full)";

// The neighbours of a thread's part that are read from shared memory at once.
inline int run_of(int64_t positions, DType dtype) {
  constexpr int kBytes = 16;
  int run = 1;
  while (positions % (2 * run) == 0 && 2 * run * byte_size(dtype) <= kBytes) run *= 2;
  return run;
}

} // namespace svod::codegen
