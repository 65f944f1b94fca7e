// Pieces of text that all mappings of a GPU's kernels use.
#pragma once

#include "compiler/ir/dtype.h"

#include <string>

namespace svod::codegen {

inline std::string text_of(int64_t number) { return std::to_string(number) + "u"; }

inline constexpr const char* kUnrolled = "#pragma clang loop unroll(full)";

// The neighbours of a thread's part that are read from shared memory at once.
inline int run_of(int64_t positions, DType dtype) {
  constexpr int kBytes = 16;
  int run = 1;
  while (positions % (2 * run) == 0 && 2 * run * byte_size(dtype) <= kBytes) run *= 2;
  return run;
}

} // namespace svod::codegen
