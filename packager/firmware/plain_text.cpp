// Three passes over lines. The first decides preprocessor conditions: the compiler is not
// Clang, no processor has vectors, and a macro of ours that no line before has defined is
// not defined. What depends on anything else stays for the compiler that reads the file.
// The second one turns pragmas of loops into macros, the third spells words.
#include "packager/firmware/plain_text.h"

#include "compiler/support/check.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

namespace svod::packager {

namespace {

// Macros that are known not to be defined, by their beginnings: compilers and
// instructions with texts of their own.
constexpr std::string_view kAbsent[] = {"__clang__",
                                        "__SSE",
                                        "__AVX",
                                        "__F16C__",
                                        "__FMA__",
                                        "__ARM_NEON",
                                        "__aarch64__",
                                        "__wasm_",
                                        "__ARM_FEATURE_MVE",
                                        "__ARM_FEATURE_DOTPROD",
                                        "__ARM_FEATURE_MATMUL",
                                        "__riscv",
                                        "__SIZEOF_POINTER__"};
// Instructions that gcc and clang have by the same name.
constexpr std::string_view kOfCores[] = {"__ARM_FEATURE_SIMD32", "__ARM_FEATURE_SAT",
                                         "__ARM_FEATURE_DSP"};

bool begins_like_any(std::string_view name, auto& table) {
  return std::ranges::any_of(table,
                             [&](std::string_view row) { return name.starts_with(row); });
}

using Truth = std::optional<bool>; // none: the reader of the file knows

// A condition of the preprocessor: ! && || ( ) defined(NAME), anything else is unknown
// unless it begins with a macro that is absent.
class Condition {
public:
  // `defined`: macros of lines before, and whether those are there for all readers.
  Condition(std::string_view text, const std::map<std::string, bool>& defined,
            bool portable)
      : text_(text), defined_(defined), portable_(portable) {}
  Truth value() { return either(); }

private:
  // Values with this word between them, of which one that is `decisive` decides.
  Truth joined(std::string_view word, bool decisive, Truth (Condition::*next)()) {
    Truth out = (this->*next)();
    while (take(word)) {
      const Truth right = (this->*next)();
      if (out == Truth(decisive) || right == Truth(decisive))
        out = decisive;
      else if (!out || !right)
        out = std::nullopt;
    }
    return out;
  }
  Truth either() { return joined("||", true, &Condition::both); }
  Truth both() { return joined("&&", false, &Condition::one); }
  Truth one() {
    if (take("!")) {
      const Truth inner = one();
      return inner ? Truth(!*inner) : inner;
    }
    if (take("(")) {
      const Truth inner = either();
      SVOD_CHECK(take(")")) << "a condition's parenthesis is open: " << text_;
      return inner;
    }
    return take("defined(") ? defined_macro() : comparison();
  }
  Truth defined_macro() {
    const std::string name = word();
    SVOD_CHECK(take(")")) << "not one macro: " << text_;
    return is_defined(name);
  }
  // NAME >= 4 and the like, up to what ends it.
  Truth comparison() {
    skip_spaces();
    const size_t start = at_;
    int depth = 0;
    for (; at_ < text_.size(); ++at_) {
      const std::string_view rest = text_.substr(at_);
      if (depth == 0 &&
          (rest.starts_with("&&") || rest.starts_with("||") || rest.starts_with(")")))
        break;
      depth += rest[0] == '(' ? 1 : rest[0] == ')' ? -1 : 0;
    }
    const std::string_view name = text_.substr(start, at_ - start);
    return begins_like_any(name, kAbsent) ? Truth(false) : std::nullopt;
  }
  Truth is_defined(const std::string& name) const {
    if (name == "SVOD_PLAIN") return true;
    if (name == "SVOD_PORTABLE") return portable_;
    if (begins_like_any(name, kAbsent) || (portable_ && begins_like_any(name, kOfCores)))
      return false;
    const auto found = defined_.find(name);
    if (found == defined_.end())
      return name.starts_with("SVOD_") ? Truth(false) : std::nullopt;
    return found->second ? Truth(true) : std::nullopt;
  }

  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(std::string_view token) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  std::string word() {
    const size_t start = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      ++at_;
    return std::string(text_.substr(start, at_ - start));
  }

  std::string_view text_;
  const std::map<std::string, bool>& defined_;
  bool portable_;
  size_t at_ = 0;
};

class Directives {
public:
  explicit Directives(bool portable) : portable_(portable) {}

  std::string resolved(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      while (line.starts_with("#") && line.ends_with("\\")) {
        std::string next;
        std::getline(lines, next);
        line = line.substr(0, line.find_last_not_of(" \\") + 1) + " " +
               next.substr(std::min(next.find_first_not_of(' '), next.size()));
      }
      take(line);
    }
    SVOD_CHECK(open_.empty()) << "an #if without its end";
    return out_;
  }

private:
  // One #if up to its #endif.
  struct Chain {
    bool above = true;    // lines around it are taken
    bool taking = false;  // those of the branch that is read
    bool decided = false; // a branch holds: the others are not taken
    bool written = false; // a directive is left for the compiler
  };

  bool taking() const { return open_.empty() || open_.back().taking; }
  void write(const std::string& line) { out_ += line + "\n"; }

  void branch(Chain& chain, const std::string& condition) {
    chain.taking = false;
    if (!chain.above || chain.decided) return;
    const Truth holds = Condition(condition, defined_, portable_).value();
    if (holds == Truth(false)) return;
    chain.taking = true;
    chain.decided = holds.has_value();
    if (!holds)
      write((chain.written ? "#elif " : "#if ") + condition);
    else if (chain.written)
      write("#else");
    chain.written = chain.written || !holds;
  }

  void take(const std::string& line) {
    if (const auto condition = opened(line)) {
      open_.push_back({.above = taking()});
      branch(open_.back(), *condition);
    } else if (line.starts_with("#elif ")) {
      branch(open_.back(), line.substr(6));
    } else if (line.starts_with("#else")) {
      Chain& chain = open_.back();
      chain.taking = chain.above && !chain.decided;
      if (chain.taking && chain.written) write("#else");
      chain.decided = true;
    } else if (line.starts_with("#endif")) {
      if (open_.back().written) write("#endif");
      open_.pop_back();
    } else if (taking()) {
      if (line.starts_with("#define "))
        defined_[line.substr(8, line.find_first_of(" (", 8) - 8)] =
            std::ranges::none_of(open_, &Chain::written);
      write(line);
    }
  }

  // What a line asks that opens a chain.
  static std::optional<std::string> opened(const std::string& line) {
    if (line.starts_with("#ifdef ")) return "defined(" + line.substr(7) + ")";
    if (line.starts_with("#ifndef ")) return "!defined(" + line.substr(8) + ")";
    if (line.starts_with("#if ")) return line.substr(4);
    return std::nullopt;
  }

  bool portable_;
  std::map<std::string, bool> defined_;
  std::vector<Chain> open_;
  std::string out_;
};

// A pragma that Clang reads in front of a loop, as a macro; nothing where it says no more
// than the language.
std::string loop_macro(std::string_view pragma) {
  constexpr std::string_view kCount = "unroll_count(";
  if (pragma.find("unroll(full)") != std::string_view::npos) return "SVOD_UNROLL(64)";
  if (pragma.find("unroll(disable)") != std::string_view::npos) return "SVOD_NO_UNROLL";
  if (const size_t at = pragma.find(kCount); at != std::string_view::npos) {
    const std::string_view rest = pragma.substr(at + kCount.size());
    return "SVOD_UNROLL(" + std::string(rest.substr(0, rest.find(')'))) + ")";
  }
  return "";
}

// Some maps do not say their operand's type.
std::string with_macros(const std::string& text) {
  constexpr std::string_view kPragma = "#pragma clang ";
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  typedef ") && line.ends_with(" T;")) // of a map's operand
      line.insert(2, "[[maybe_unused]] ");
    const size_t start = line.find_first_not_of(' ');
    if (start == std::string::npos || !line.substr(start).starts_with(kPragma)) {
      out += line + "\n";
      continue;
    }
    const std::string macro = loop_macro(line);
    if (!macro.empty()) out += line.substr(0, start) + macro + "\n";
  }
  return out;
}

struct WordRow {
  std::string_view word, instead;
  bool gnu = false; // stays where gcc and clang are the readers
};
constexpr WordRow kWords[] = {
    {"inline __attribute__((always_inline))", "SVOD_ALWAYS_INLINE"},
    {"static __attribute__((noinline))", "SVOD_NEVER_INLINE"},
    {"inline __attribute__((noinline))", "SVOD_NEVER_INLINE"},
    {"__restrict ", "SVOD_RESTRICT "},
    {"__INT8_TYPE__", "int8_t"},
    {"__INT16_TYPE__", "int16_t"},
    {"__INT32_TYPE__", "int32_t"},
    {"__INT64_TYPE__", "int64_t"},
    {"__UINT8_TYPE__", "uint8_t"},
    {"__UINT16_TYPE__", "uint16_t"},
    {"__UINT32_TYPE__", "uint32_t"},
    {"__UINT64_TYPE__", "uint64_t"},
    {"__INTPTR_TYPE__", "intptr_t"},
    {"__UINTPTR_TYPE__", "uintptr_t"},
    {"__builtin_memcpy", "memcpy", true},
    {"__builtin_memmove", "memmove", true},
    {"__builtin_huge_val()", "HUGE_VAL", true},
    {"__builtin_nan(\"\")", "double(NAN)", true},
    {"__builtin_sqrtf", "sqrtf", true},
    {"__builtin_sqrt", "sqrt", true},
    {"__builtin_fmaf", "fmaf", true},
    {"__builtin_fma", "fma", true},
};

} // namespace

std::string plain_text(const std::string& text, bool portable) {
  std::string out = with_macros(Directives(portable).resolved(text));
  for (const WordRow& row : kWords) {
    if (row.gnu && !portable) continue;
    for (size_t at = 0; (at = out.find(row.word, at)) != std::string::npos;
         at += row.instead.size())
      out.replace(at, row.word.size(), row.instead);
  }
  return out;
}

} // namespace svod::packager
