// Regular expressions in RE2's syntax, as deterministic automata over bytes. Text is
// UTF-8; a byte that is none matches no pattern of characters.
//
// Not taken: back references and look-around (RE2 has none either), \p{..} classes, \C,
// and letters beyond ASCII without regard to case.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace svod::importer {

struct RegexLimits {
  size_t pattern_bytes = 4096;
  size_t instructions = 20'000;
  size_t states = 4096;
  uint64_t work = 50'000'000; // steps of the construction
  int depth = 100;            // of groups
  int repeats = 1000;         // in {n,m}
};

// Byte b is of class classes[b]. From state s a byte of class c leads to
// next[s * class_count + c]. State 0 is the first.
struct Automaton {
  int class_count = 0;
  std::vector<uint8_t> classes; // 256
  std::vector<uint32_t> next;
  std::vector<bool> accepts; // when the text ends in this state
  bool looks_around = false; // has assertions: what matches depends on the bytes around
};

// The automaton of whole texts that match; `failure` says why there is none, and
// `malformed` whether the pattern breaks the syntax.
struct CompiledRegex {
  Automaton automaton;
  std::string failure;
  bool malformed = false;
};
CompiledRegex compile_regex(const std::string& pattern, const RegexLimits& limits = {});

} // namespace svod::importer
