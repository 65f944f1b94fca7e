// The tree of a pattern as instructions. Characters become sequences of byte ranges, so
// that nothing behind knows of UTF-8; a counted repetition is written out, which the
// limit on instructions bounds.
#include "importer/text/regex_tree.h"

#include <algorithm>

namespace svod::importer {

using namespace regex;

namespace {

// Writes instructions from the back: each is given what follows it.
class Writer {
public:
  Writer(const RegexLimits& limits) : limits_(limits) {}
  uint32_t add(Instruction instruction) {
    if (code.size() >= limits_.instructions)
      throw RegexFailure{"it is too large: more than " +
                             std::to_string(limits_.instructions) + " steps",
                         false};
    code.push_back(instruction);
    return static_cast<uint32_t>(code.size() - 1);
  }
  uint32_t write(const Tree& tree, uint32_t next);
  std::vector<Instruction> code;

private:
  using Kind = Instruction::Kind;
  uint32_t bytes(uint32_t low, uint32_t high, uint32_t next) {
    return add({Kind::Bytes,
                static_cast<uint8_t>(low),
                static_cast<uint8_t>(high),
                {},
                next,
                0});
  }
  uint32_t split(uint32_t a, uint32_t b) { return add({Kind::Split, 0, 0, {}, a, b}); }
  uint32_t either(uint32_t a, uint32_t b) { return a == kNone ? b : split(a, b); }
  uint32_t repeat(const Tree& tree, uint32_t next);
  uint32_t characters(const CharacterSet& set, uint32_t next);
  uint32_t encoded(uint32_t low, uint32_t high, uint32_t next);
  static constexpr uint32_t kNone = ~0u;
  const RegexLimits& limits_;
};

// The characters low..high, all of one length of encoding.
uint32_t Writer::encoded(uint32_t low, uint32_t high, uint32_t next) {
  if (high < 0x80) return bytes(low, high, next);
  const int tails = high < 0x800 ? 1 : high < 0x10000 ? 2 : 3;
  // Split until all bytes behind the first differing one take their full range.
  for (int i = 1; i <= tails; ++i) {
    const uint32_t mask = (1u << (6 * i)) - 1;
    if ((low & ~mask) == (high & ~mask)) continue;
    if ((low & mask) != 0)
      return either(encoded(low, low | mask, next),
                    encoded((low | mask) + 1, high, next));
    if ((high & mask) != mask)
      return either(encoded(low, (high & ~mask) - 1, next),
                    encoded(high & ~mask, high, next));
  }
  uint32_t at = next;
  for (int i = 0; i < tails; ++i)
    at = bytes(0x80 | (low >> (6 * i) & 0x3f), 0x80 | (high >> (6 * i) & 0x3f), at);
  const uint32_t mark = tails == 1 ? 0xc0 : tails == 2 ? 0xe0 : 0xf0;
  return bytes(mark | low >> (6 * tails), mark | high >> (6 * tails), at);
}

uint32_t Writer::characters(const CharacterSet& set, uint32_t next) {
  static constexpr uint32_t kEnds[] = {0x7f, 0x7ff, 0xffff, kLastCharacter};
  uint32_t at = kNone;
  for (const Range& range : set) {
    uint32_t low = range.low;
    for (uint32_t end : kEnds) {
      const uint32_t high = std::min(end, range.high);
      if (low > high) continue;
      at = either(at, encoded(low, high, next));
      low = high + 1;
    }
  }
  return at == kNone ? add({Kind::Fail, 0, 0, {}, 0, 0}) : at;
}

uint32_t Writer::repeat(const Tree& tree, uint32_t next) {
  const Tree& part = *tree.parts[0];
  uint32_t at = next;
  if (tree.most < 0) {
    const uint32_t again = split(0, next);
    const uint32_t body = write(part, again);
    code[again].next = body;
    at = again;
  } else {
    for (int i = tree.least; i < tree.most; ++i) at = split(write(part, at), next);
  }
  for (int i = 0; i < tree.least; ++i) at = write(part, at);
  return at;
}

uint32_t Writer::write(const Tree& tree, uint32_t next) {
  switch (tree.kind) {
  case Tree::Kind::Empty:
    return next;
  case Tree::Kind::Set:
    return characters(tree.set, next);
  case Tree::Kind::Assert:
    return add({Kind::Assert, 0, 0, tree.assertion, next, 0});
  case Tree::Kind::Repeat:
    return repeat(tree, next);
  case Tree::Kind::Sequence:
    for (auto part = tree.parts.rbegin(); part != tree.parts.rend(); ++part)
      next = write(**part, next);
    return next;
  case Tree::Kind::Choice: {
    uint32_t at = kNone;
    for (auto part = tree.parts.rbegin(); part != tree.parts.rend(); ++part)
      at = at == kNone ? write(**part, next) : split(write(**part, next), at);
    return at;
  }
  }
  return next;
}

} // namespace

std::vector<Instruction> parse_regex(const std::string& pattern,
                                     const RegexLimits& limits) {
  if (pattern.size() > limits.pattern_bytes)
    throw RegexFailure{
        "it has more than " + std::to_string(limits.pattern_bytes) + " bytes", false};
  const TreePointer tree = parse_tree(pattern, limits);
  Writer writer(limits);
  const uint32_t match = writer.add({Instruction::Kind::Match, 0, 0, {}, 0, 0});
  // The first instruction is number 0 for the reader: its place is exchanged.
  const uint32_t first = writer.write(*tree, match);
  writer.add({Instruction::Kind::Split, 0, 0, {}, first, first});
  std::vector<Instruction> code = std::move(writer.code);
  const auto last = static_cast<uint32_t>(code.size() - 1);
  std::swap(code[0], code[last]);
  for (Instruction& i : code)
    for (uint32_t* target : {&i.next, &i.other})
      if (*target == 0 || *target == last) *target = last - *target;
  return code;
}

} // namespace svod::importer
