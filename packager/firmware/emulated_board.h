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

// C: calls main() and ends with what it returns. Where SVOD_PROFILE is defined as the
// number of programs, svod_profile() counts what each of them took, and a line of
// "PROFILE program count", both hexadecimal, is printed for each in the end.
std::string start_text(const EmulatedBoard& board);

} // namespace svod::packager
