// Boards of QEMU that run firmware of a target: what starts them, where memory lies, and
// the code before main().
#pragma once

#include "compiler/support/target.h"

namespace svod::packager {

struct EmulatedBoard {
  const char* triple;             // of targets, what it begins with
  const char* emulator;           // a program of PATH
  std::vector<std::string> words; // before -kernel IMAGE
  const char* script;             // of the linker
  const char* start;              // C: calls main and ends with what it returns
  const char* compiler;           // of a user's toolchain: who has floats in software
};

// None: no board of QEMU runs it.
const EmulatedBoard* find_board(const Target& target);

} // namespace svod::packager
