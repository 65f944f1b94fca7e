// A pattern as a tree: what its syntax says, before it becomes instructions. Internal to
// this folder.
#pragma once

#include "importer/text/regex_parse.h"

#include <memory>

namespace svod::importer::regex {

inline constexpr uint32_t kLastCharacter = 0x10ffff;

struct Range {
  uint32_t low, high;
};
using CharacterSet = std::vector<Range>; // ascending, apart, after normalize()

struct Tree {
  enum class Kind : uint8_t { Empty, Set, Sequence, Choice, Repeat, Assert } kind;
  CharacterSet set;
  Assertion assertion{};
  int least = 0, most = -1; // of Repeat; -1: no end
  std::vector<std::unique_ptr<Tree>> parts;
};
using TreePointer = std::unique_ptr<Tree>;

// Throws RegexFailure.
TreePointer parse_tree(const std::string& pattern, const RegexLimits& limits);

} // namespace svod::importer::regex
