// A pattern is read once into a tree (regex_tree.h), by recursive descent.
#include "compiler/support/text.h"
#include "importer/text/regex_tree.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string_view>

namespace svod::importer {

using namespace regex;

namespace {

CharacterSet normalize(CharacterSet set) {
  std::ranges::sort(set, {}, &Range::low);
  CharacterSet out;
  for (const Range& range : set)
    if (!out.empty() && range.low <= out.back().high + 1)
      out.back().high = std::max(out.back().high, range.high);
    else
      out.push_back(range);
  return out;
}

CharacterSet complement(const CharacterSet& set) {
  CharacterSet out;
  uint32_t next = 0;
  for (const Range& range : normalize(set)) {
    if (range.low > next) out.push_back({next, range.low - 1});
    next = range.high + 1;
  }
  if (next <= kLastCharacter) out.push_back({next, kLastCharacter});
  return out;
}

// The classes of [[:name:]], and those of \d and the like.
const CharacterSet* named_class(std::string_view name) {
  static const std::map<std::string_view, CharacterSet> classes{
      {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
      {"alpha", {{'A', 'Z'}, {'a', 'z'}}},
      {"ascii", {{0, 127}}},
      {"blank", {{'\t', '\t'}, {' ', ' '}}},
      {"cntrl", {{0, 31}, {127, 127}}},
      {"digit", {{'0', '9'}}},
      {"graph", {{'!', '~'}}},
      {"lower", {{'a', 'z'}}},
      {"print", {{' ', '~'}}},
      {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
      {"space", {{'\t', '\r'}, {' ', ' '}}},
      {"upper", {{'A', 'Z'}}},
      {"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
      {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
      // \s is [[:space:]] without the vertical tab.
      {"perl space", {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}}},
  };
  const auto found = classes.find(name);
  return found == classes.end() ? nullptr : &found->second;
}

TreePointer make_tree(Tree::Kind kind) {
  auto tree = std::make_unique<Tree>();
  tree->kind = kind;
  return tree;
}

struct Flags {
  bool any_case = false, many_lines = false, dot_takes_newline = false;
};

class Parser {
public:
  Parser(std::string_view pattern, const RegexLimits& limits)
      : rest_(pattern), limits_(limits) {}
  TreePointer run() {
    TreePointer tree = choice(0);
    if (!rest_.empty()) malformed("a ')' without its '('");
    return tree;
  }

private:
  [[noreturn]] void malformed(const std::string& what) const {
    throw RegexFailure{what, true};
  }
  [[noreturn]] void refused(const std::string& what) const {
    throw RegexFailure{what, false};
  }
  bool at(std::string_view text) const { return rest_.starts_with(text); }
  bool eat(std::string_view text) {
    if (!at(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  uint32_t character();
  TreePointer choice(int depth);
  TreePointer sequence(int depth);
  TreePointer repeated(int depth);
  TreePointer atom(int depth);
  TreePointer group(int depth);
  bool read_flags();
  TreePointer escape();
  TreePointer literal_run();
  std::optional<CharacterSet> class_escape();
  uint32_t character_escape();
  uint32_t hexadecimal();
  TreePointer bracket();
  CharacterSet bracket_item();
  bool counts(int& least, int& most);
  std::optional<int> whole_number();
  TreePointer of_set(CharacterSet set) const;

  std::string_view rest_;
  const RegexLimits& limits_;
  Flags flags_;
};

uint32_t Parser::character() {
  const Utf8Character first = rest_.empty() ? Utf8Character{} : decode_utf8(rest_, 0);
  if (!is_well_formed(first)) malformed("it is not UTF-8");
  rest_.remove_prefix(first.size);
  return first.value;
}

// Both cases of ASCII letters where the pattern asks for that.
TreePointer Parser::of_set(CharacterSet set) const {
  if (flags_.any_case) {
    CharacterSet more;
    for (const Range& range : set) {
      if (range.high > 127 && range.high < kLastCharacter)
        refused("letters beyond ASCII without regard to case");
      for (uint32_t c = range.low; c <= std::min(range.high, 127u); ++c) {
        const uint32_t folded = c | 32;
        if (folded >= 'a' && folded <= 'z') more.push_back({c ^ 32, c ^ 32});
      }
    }
    set.insert(set.end(), more.begin(), more.end());
  }
  TreePointer tree = make_tree(Tree::Kind::Set);
  tree->set = normalize(std::move(set));
  return tree;
}

TreePointer Parser::choice(int depth) {
  if (depth > limits_.depth) refused("its groups are nested too deeply");
  const Flags outside = flags_;
  TreePointer tree = make_tree(Tree::Kind::Choice);
  do tree->parts.push_back(sequence(depth));
  while (eat("|"));
  flags_ = outside; // what a group sets ends with it
  return tree;
}

TreePointer Parser::sequence(int depth) {
  TreePointer tree = make_tree(Tree::Kind::Sequence);
  while (!rest_.empty() && !at("|") && !at(")")) tree->parts.push_back(repeated(depth));
  return tree;
}

std::optional<int> Parser::whole_number() {
  int value = 0, digits = 0;
  for (; !rest_.empty() && rest_[0] >= '0' && rest_[0] <= '9'; ++digits) {
    value = std::min(10 * value + rest_[0] - '0', 1'000'000);
    rest_.remove_prefix(1);
  }
  return digits > 0 ? std::optional(value) : std::nullopt;
}

// {n}, {n,} or {n,m}; anything else in braces stands for itself.
bool Parser::counts(int& least, int& most) {
  const std::string_view before = rest_;
  rest_.remove_prefix(1);
  if (const auto first = whole_number()) {
    least = most = *first;
    if (eat(",")) most = whole_number().value_or(-1);
    if (eat("}")) return true;
  }
  rest_ = before;
  return false;
}

TreePointer Parser::repeated(int depth) {
  const std::string_view begin = rest_;
  TreePointer tree = atom(depth);
  const std::string_view taken = begin.substr(0, begin.size() - rest_.size());
  const bool is_flags =
      taken.starts_with("(?") && taken.find_first_of("<:)") + 1 == taken.size();
  for (bool repeats = false;; repeats = true) {
    int least = 0, most = -1;
    if (eat("*") || eat("+") || eat("?")) {
      const char sign = *(rest_.data() - 1);
      least = sign == '+';
      most = sign == '?' ? 1 : -1;
    } else if (!at("{") || !counts(least, most)) {
      return tree;
    }
    if (repeats) malformed("a repetition of a repetition");
    if (is_flags) malformed("a repetition of nothing");
    if (least > limits_.repeats || most > limits_.repeats)
      refused("it repeats more than " + std::to_string(limits_.repeats) + " times");
    if (most >= 0 && most < least) malformed("a repetition of least over most");
    eat("?"); // lazy: the same texts match
    TreePointer outer = make_tree(Tree::Kind::Repeat);
    outer->least = least;
    outer->most = most;
    outer->parts.push_back(std::move(tree));
    tree = std::move(outer);
  }
}

// (?flags) or (?flags:; true: a group opens.
bool Parser::read_flags() {
  Flags flags = flags_;
  bool value = true;
  while (!rest_.empty()) {
    const char c = rest_[0];
    rest_.remove_prefix(1);
    if (c == 'i')
      flags.any_case = value;
    else if (c == 'm')
      flags.many_lines = value;
    else if (c == 's')
      flags.dot_takes_newline = value;
    else if (c == '-' && value) {
      if (at(":") || at(")")) malformed("a '-' of a group without a flag");
      value = false;
    } else if (c == ':' || c == ')') {
      flags_ = flags;
      return c == ':';
    } else if (c != 'U') {
      malformed("an unknown flag of a group");
    }
  }
  malformed("a group has no end");
}

TreePointer Parser::group(int depth) {
  const Flags outside = flags_;
  if (eat("?")) {
    if (eat("P<") || (!at("<=") && !at("<!") && eat("<"))) {
      const size_t end = rest_.find('>');
      if (end == 0 || end == std::string_view::npos) malformed("a group has a bad name");
      rest_.remove_prefix(end + 1);
    } else if (at("=") || at("!") || at("<")) {
      malformed("look-around is not in the syntax");
    } else if (!read_flags()) {
      return make_tree(Tree::Kind::Empty); // for what follows in this group
    }
  }
  TreePointer tree = choice(depth + 1);
  if (!eat(")")) malformed("a group has no end");
  flags_ = outside;
  return tree;
}

TreePointer Parser::atom(int depth) {
  const auto assertion = [](Assertion which) {
    TreePointer tree = make_tree(Tree::Kind::Assert);
    tree->assertion = which;
    return tree;
  };
  if (eat("(")) return group(depth);
  if (at("[")) return bracket();
  if (eat("^"))
    return assertion(flags_.many_lines ? Assertion::LineBegin : Assertion::TextBegin);
  if (eat("$"))
    return assertion(flags_.many_lines ? Assertion::LineEnd : Assertion::TextEnd);
  if (eat("\\A")) return assertion(Assertion::TextBegin);
  if (eat("\\z")) return assertion(Assertion::TextEnd);
  if (eat("\\b")) return assertion(Assertion::WordEdge);
  if (eat("\\B")) return assertion(Assertion::NoWordEdge);
  int least = 0, most = 0;
  if (at("*") || at("+") || at("?") || (at("{") && counts(least, most)))
    malformed("a repetition of nothing");
  if (eat(".")) {
    TreePointer tree = make_tree(Tree::Kind::Set);
    tree->set = complement(flags_.dot_takes_newline ? CharacterSet{}
                                                    : CharacterSet{{'\n', '\n'}});
    return tree;
  }
  if (at("\\")) return escape();
  const uint32_t c = character();
  return of_set({{c, c}});
}

TreePointer Parser::literal_run() {
  TreePointer tree = make_tree(Tree::Kind::Sequence);
  while (!rest_.empty() && !eat("\\E")) {
    const uint32_t c = character();
    tree->parts.push_back(of_set({{c, c}}));
  }
  return tree;
}

TreePointer Parser::escape() {
  if (eat("\\Q")) return literal_run();
  if (auto set = class_escape()) return of_set(std::move(*set));
  const uint32_t c = character_escape();
  return of_set({{c, c}});
}

std::optional<CharacterSet> Parser::class_escape() {
  struct Row {
    std::string_view text, name;
    bool negated;
  };
  static constexpr Row kRows[] = {
      {"\\d", "digit", false}, {"\\D", "digit", true},       {"\\w", "word", false},
      {"\\W", "word", true},   {"\\s", "perl space", false}, {"\\S", "perl space", true}};
  for (const Row& row : kRows)
    if (eat(row.text))
      return row.negated ? complement(*named_class(row.name)) : *named_class(row.name);
  if (at("\\p") || at("\\P") || at("\\C"))
    refused("the class " + std::string(rest_.substr(0, 2)));
  return std::nullopt;
}

uint32_t Parser::hexadecimal() {
  const bool braces = eat("{");
  uint32_t value = 0;
  int digits = 0;
  for (; !rest_.empty() && digits < (braces ? 8 : 2); ++digits) {
    const char c = rest_[0], lower = static_cast<char>(c | 32);
    if (c >= '0' && c <= '9')
      value = 16 * value + static_cast<uint32_t>(c - '0');
    else if (lower >= 'a' && lower <= 'f')
      value = 16 * value + static_cast<uint32_t>(lower - 'a' + 10);
    else
      break;
    rest_.remove_prefix(1);
    if (value > kLastCharacter) malformed("a character beyond Unicode");
  }
  if (digits == 0 || (!braces && digits != 2) || (braces && !eat("}")))
    malformed("a malformed \\x");
  return value;
}

uint32_t Parser::character_escape() {
  rest_.remove_prefix(1);
  if (rest_.empty()) malformed("a '\\' at its end");
  static constexpr std::string_view kFrom = "nrtfva", kTo = "\n\r\t\f\v\a";
  const char c = rest_[0];
  if (const size_t i = kFrom.find(c); i != std::string_view::npos) {
    rest_.remove_prefix(1);
    return static_cast<uint8_t>(kTo[i]);
  }
  if (eat("x")) return hexadecimal();
  if (c >= '0' && c <= '7') {
    if (c != '0' && (rest_.size() < 2 || rest_[1] < '0' || rest_[1] > '7'))
      malformed("a back reference");
    uint32_t value = 0;
    for (int i = 0; i < 3 && !rest_.empty() && rest_[0] >= '0' && rest_[0] <= '7'; ++i) {
      value = 8 * value + static_cast<uint32_t>(rest_[0] - '0');
      rest_.remove_prefix(1);
    }
    return value;
  }
  const bool plain = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
  if (plain && static_cast<uint8_t>(c) < 128)
    malformed(std::string("the escape \\") + c + " is not in the syntax");
  if (static_cast<uint8_t>(c) >= 128)
    malformed("an escape of a letter beyond ASCII is not in the syntax");
  return character();
}

// One character or one class inside brackets.
CharacterSet Parser::bracket_item() {
  if (at("[:")) {
    const size_t end = rest_.find(":]");
    if (end == std::string_view::npos) malformed("a class without its end");
    std::string_view name = rest_.substr(2, end - 2);
    const bool negated = name.starts_with("^");
    if (negated) name.remove_prefix(1);
    const CharacterSet* set = named_class(name);
    if (!set || name == "perl space") malformed("an unknown class in brackets");
    rest_.remove_prefix(end + 2);
    return negated ? complement(*set) : *set;
  }
  if (auto set = class_escape()) return *set;
  const uint32_t c = at("\\") ? character_escape() : character();
  return {{c, c}};
}

TreePointer Parser::bracket() {
  rest_.remove_prefix(1);
  const bool negated = eat("^");
  CharacterSet set;
  for (bool first = true; first || !at("]"); first = false) {
    if (rest_.empty()) malformed("a '[' without its ']'");
    CharacterSet item = bracket_item();
    const bool single = item.size() == 1 && item[0].low == item[0].high;
    if (single && at("-") && !at("-]")) {
      eat("-");
      if (rest_.empty()) malformed("a '[' without its ']'");
      const CharacterSet last = bracket_item();
      if (last.size() != 1 || last[0].low != last[0].high || last[0].low < item[0].low)
        malformed("a range of characters without an order");
      item[0].high = last[0].low;
    }
    set.insert(set.end(), item.begin(), item.end());
  }
  eat("]");
  TreePointer tree = of_set(std::move(set));
  if (negated) tree->set = complement(tree->set);
  return tree;
}

} // namespace

TreePointer regex::parse_tree(const std::string& pattern, const RegexLimits& limits) {
  return Parser(pattern, limits).run();
}

} // namespace svod::importer
