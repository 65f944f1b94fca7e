#include "packager/report/codes.h"

namespace svod::packager {

namespace {

struct CodeRow {
  std::string_view code;
  Exit exit;
  std::string_view phrase;
};
constexpr CodeRow kCodes[] = {
#define CODE(code, exit, phrase, meaning) {code, Exit::exit, phrase},
#include "packager/report/codes.def"
#undef CODE
};

} // namespace

std::string_view code_of(Severity severity, Exit exit, std::string_view text) {
  constexpr char kLetters[] = {'E', 'W', 'N'};
  const char letter = kLetters[static_cast<size_t>(severity)];
  for (const CodeRow& row : kCodes) {
    const bool of_kind =
        row.code[0] == letter && (severity != Severity::Error || row.exit == exit);
    if (of_kind && text.find(row.phrase) != std::string_view::npos) return row.code;
  }
  return "E0500"; // an error without a reason is a bug
}

} // namespace svod::packager
