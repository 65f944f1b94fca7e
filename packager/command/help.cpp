// --help and --man: usage, then options under the headings of their sets.
#include "packager/command/help.h"

#include "packager/command/option_table.h"
#include "packager/version.h"

#include <algorithm>

namespace svod::packager {

extern const char kText_copyright[]; // packager/install/copyright

namespace {

constexpr size_t kTextColumn = 30, kWidth = 96;

std::string usage_of(const VerbRow& row) {
  std::string out = "svod-pack";
  if (row.verb != Verb::Pack) out += std::string(" ") + row.word;
  if (*row.operand != 0) out += std::string(" ") + row.operand;
  return out + " [OPTIONS]";
}

// "-o,--output FILE", "--json[=FILE]".
std::string names_of(const OptionText& option) {
  std::string out = option.short_name;
  if (!option.long_name.empty()) out += (out.empty() ? "" : ",") + option.long_name;
  if (option.type.empty()) return out;
  if (option.type.starts_with("[")) return out + "[=" + option.type.substr(1);
  return out + " " + option.type;
}

// `text` broken into lines that fit beside a column.
std::string wrapped(const std::string& text, size_t column) {
  std::string out;
  size_t width = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    if (width > 0 && column + width + 1 + (end - at) > kWidth) {
      out += "\n" + std::string(column, ' ');
      width = 0;
    } else if (width > 0) {
      out += " ";
      ++width;
    }
    out += text.substr(at, end - at);
    width += end - at;
    at = end + 1;
  }
  return out;
}

std::string row_text(const std::string& name, const std::string& text) {
  std::string out = "  " + name;
  if (out.size() + 1 > kTextColumn) out += "\n";
  const size_t used = out.ends_with("\n") ? 0 : out.size();
  return out + std::string(kTextColumn - used, ' ') + wrapped(text, kTextColumn) + "\n";
}

std::string roff(std::string text) {
  for (size_t at = 0; (at = text.find_first_of("\\-", at)) != std::string::npos; at += 2)
    text.insert(at, "\\");
  // A line may end behind each of many choices.
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 3)
    text.insert(at + 1, "\\:");
  return text;
}

std::string roff_options(const VerbRow& row) {
  std::string out, heading;
  for (const OptionText& option : options_of(row.verb)) {
    if (option.heading.empty()) continue;
    if (option.heading != heading) out += ".SS " + (heading = option.heading) + "\n";
    out += ".TP\n.B " + roff(names_of(option)) + "\n" + roff(option.text) + ".\n";
  }
  return out;
}

// What stands in the table of docs/usage.md, too: a script's writer needs it in a man
// page.
constexpr char kExits[] =
    ".SH EXIT STATUS\n"
    "0 done; 1 the model is invalid; 2 usage; 3 the model is valid and not supported;\n"
    "4 a file, the cache or a permission; 5 a bug of svod\\-pack; 6 the compiler or "
    "linker\n"
    "failed; 7 verify found a difference; 8 a budget is exceeded; 130 interrupted.\n"
    "With any status but 0 there is no output file, and an older one is untouched.\n";
constexpr char kEnvironment[] =
    ".SH ENVIRONMENT\n"
    ".TP\n.B SVOD_CACHE_DIR\nFolder of the cache, before $XDG_CACHE_HOME/svod and "
    "~/.cache/svod.\n"
    ".TP\n.B SVOD_CACHE_REMOTE, SVOD_CACHE_REMOTE_MODE\nWhat \\-\\-cache\\-remote and "
    "\\-\\-cache\\-remote\\-mode say, where they say nothing.\n"
    ".TP\n.B SVOD_CACHE_CA\nFile of certificates (PEM) that a grpcs:// server is held "
    "against; the system's otherwise.\n"
    ".TP\n.B NO_COLOR, CLICOLOR_FORCE\nNo colour, or colour without a terminal.\n"
    ".TP\n.B TMPDIR\nFolder of temporary files.\n";

} // namespace

std::string help_text(Verb verb) {
  const VerbRow& row = row_of(verb);
  std::string out =
      wrapped(std::string(row.summary) + ".", 0) + "\nUsage: " + usage_of(row) + "\n";
  if (verb == Verb::Pack) {
    out += "\nVerbs, each with its own --help:\n";
    for (const VerbRow& other : verb_rows())
      out += row_text(std::string(other.word) + " " + other.operand, other.summary);
  }
  std::string heading;
  for (const OptionText& option : options_of(verb)) {
    if (option.heading.empty()) continue;
    if (option.heading != heading) out += "\n" + (heading = option.heading) + ":\n";
    out += row_text(names_of(option), option.text);
  }
  return out;
}

std::string man_page() {
  std::string out =
      ".TH SVOD\\-PACK 1 \"\" \"svod\\-pack " + std::string(kVersion) +
      "\"\n.ad l\n.SH NAME\nsvod\\-pack \\- packs ONNX models into self\\-contained "
      "programs and libraries\n.SH SYNOPSIS\n";
  for (const VerbRow& row : verb_rows()) out += ".B " + roff(usage_of(row)) + "\n.br\n";
  out += ".SH DESCRIPTION\n";
  for (const VerbRow& row : verb_rows())
    out += ".TP\n.B " + roff(std::string(row.word) + " " + row.operand) + "\n" +
           roff(row.summary) + ".\n";
  for (const VerbRow& row : verb_rows()) {
    std::string word = row.word;
    std::ranges::transform(word, word.begin(),
                           [](char c) { return c == '-' ? c : c - 'a' + 'A'; });
    out += ".SH OPTIONS OF " + roff(word) + "\n" + roff_options(row);
  }
  return out + kExits + kEnvironment;
}

std::string licences() {
  return std::string(
             "In a packed program or library: code that svod-pack wrote, under its "
             "own licence\n(Apache-2.0 WITH LLVM-exception), and your model; its "
             "--licenses says the same.\n"
             "In svod-pack itself:\n\n") +
         kText_copyright;
}

} // namespace svod::packager
