// Boards of QEMU that run firmware of a target: what starts them, where memory lies, and
// the code before main().
#pragma once

#include "compiler/support/target.h"

#include <string>

namespace svod::packager {

struct EmulatedBoard {
  const char* triple;             // of targets, what it begins with
  const char* emulator;           // a program of PATH
  std::vector<std::string> words; // before -kernel IMAGE
  const char* script;             // of the linker
  const char* start;              // C: the board's own part of start_text()
  const char* compiler;           // of a user's toolchain: who has floats in software
  // Of -icount: how long an instruction takes, as a power of two nanoseconds, and how far
  // the board's counter goes in that time.
  const char* icount;
  double counts;
};

// None: no board of QEMU runs it.
const EmulatedBoard* find_board(const Target& target);

// C: calls main() and ends with what it returns; svod_now() reads the board's counter.
std::string start_text(const EmulatedBoard& board);
// C, before a test that counts: its SVOD_NOW.
constexpr const char* kBoardCounter = "#include <stdint.h>\nuint64_t svod_now(void);\n"
                                      "#define SVOD_NOW svod_now()\n";

} // namespace svod::packager
