// A fuzz target: takes any bytes, and ends without a fault. What a target claims beside
// that, it claims by must().
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

namespace svod::fuzz {

using Bytes = std::span<const uint8_t>;

#define FUZZ_TARGET(part, name, bytes, share, reads) void fuzz_##name(Bytes);
#include "tests/fuzz/targets.def"

// Not an assertion of the code that is fuzzed, but of what the target compares.
inline void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "NOT TRUE: %s\n", what);
  std::abort();
}

inline void must(bool holds, const std::string& what) { must(holds, what.c_str()); }

} // namespace svod::fuzz
