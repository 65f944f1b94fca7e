// The first half of compile_regex: a pattern as a program of a nondeterministic
// automaton. Internal to this folder.
#pragma once

#include "importer/text/regex.h"

namespace svod::importer {

// What stands between two bytes of a text, or at its ends.
enum class Assertion : uint8_t {
  TextBegin,
  TextEnd,
  LineBegin,
  LineEnd,
  WordEdge,
  NoWordEdge
};

struct Instruction {
  enum class Kind : uint8_t { Bytes, Split, Assert, Match, Fail } kind;
  uint8_t low = 0, high = 0; // of Bytes
  Assertion assertion{};
  uint32_t next = 0, other = 0; // `other`: of Split
};

struct RegexFailure {
  std::string what;
  bool malformed;
};

// Instruction 0 is the first. Throws RegexFailure.
std::vector<Instruction> parse_regex(const std::string& pattern,
                                     const RegexLimits& limits);

} // namespace svod::importer
