// Our regular expressions beside RE2's: a pattern that ours takes RE2 takes, and both
// match the same texts. Ours takes less, and beyond ASCII the two differ where a text is
// no UTF-8.
#include "importer/text/regex.h"
#include "tests/fuzz/target.h"

#include <re2/re2.h>

#include <algorithm>

namespace svod::fuzz {

namespace {

bool matches(const importer::Automaton& automaton, std::string_view text) {
  uint32_t state = 0;
  for (char c : text) {
    const int byte = automaton.classes[static_cast<uint8_t>(c)];
    state = automaton.next[state * static_cast<uint32_t>(automaton.class_count) +
                           static_cast<uint32_t>(byte)];
  }
  return automaton.accepts[state];
}

} // namespace

// A pattern, then a text on each line.
void fuzz_regex(Bytes bytes) {
  const std::string all(bytes.begin(), bytes.end());
  std::string_view rest = all;
  const auto next_line = [&] {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return line;
  };
  const std::string pattern(next_line());
  importer::RegexLimits limits;
  limits.work = 1'000'000;
  const importer::CompiledRegex ours = importer::compile_regex(pattern, limits);
  if (!ours.failure.empty()) return;
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(64 << 20);
  const RE2 theirs(pattern, options);
  must(theirs.ok() || theirs.error_code() == RE2::ErrorPatternTooLarge ||
           theirs.error_code() == RE2::ErrorRepeatSize,
       "RE2 takes the pattern that we take: " + theirs.error());
  if (!theirs.ok()) return;
  for (int lines = 0; lines < 8; ++lines) {
    const std::string_view text = next_line();
    const bool ascii = std::ranges::all_of(text, [](char c) { return c > 0; });
    if (ascii)
      must(matches(ours.automaton, text) ==
               RE2::FullMatch(re2::StringPiece(text.data(), text.size()), theirs),
           "RE2 and we match the same texts");
  }
}

} // namespace svod::fuzz
