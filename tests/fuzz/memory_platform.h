// platform.h for a packed program that is a function of its bytes: files are in memory,
// each of exactly its size and in a block of the heap, so that a sanitizer sees every
// read beyond; what it writes goes nowhere; time passes with each look at it.
#pragma once

#include "tests/fuzz/target.h"

#include <string_view>
#include <vector>

namespace svod::fuzz {

struct MemoryFile {
  std::string path; // empty: standard input
  Bytes content;
};

// Runs the program; its exit code, which must be one of its table. `part`: a file is a
// part of the program, which may be damaged then.
int run_program(const std::vector<std::string>& words,
                const std::vector<MemoryFile>& files, bool part = false);

} // namespace svod::fuzz
