// Lists are texts of words with a space between them, in which all but plain characters
// are written as %XX: so a reader needs nothing but where a text ends.
#include "packager/packed_with.h"

#include "packager/report/json.h"
#include "packager/report/json_reader.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <sstream>

namespace svod::packager {

namespace {

struct KeptOption {
  std::string_view name;
  Keep keep;
};
// Those that begin with --limit- are kept, too. The others say where something is
// written, how it is tried and what is told.
constexpr KeptOption kKept[] = {
    {"--shape", Keep::Value},         {"--entry", Keep::Value},
    {"--dim", Keep::Value},           {"--state", Keep::Value},
    {"--image", Keep::Value},         {"--with", Keep::Value},
    {"--value", Keep::Value},         {"--string-bytes", Keep::Value},
    {"--target", Keep::Value},        {"--cpu", Keep::Value},
    {"--threads", Keep::Value},       {"-O", Keep::Value},
    {"--accuracy", Keep::Value},      {"--search-budget", Keep::Value},
    {"--max-ram", Keep::Value},       {"--max-weights", Keep::Value},
    {"--weights", Keep::Value},       {"--allow-newer-ir", Keep::Value},
    {"--shape-from", Keep::Name},     {"--custom-op", Keep::Name},
    {"--device", Keep::Name},         {"--tune", Keep::Name},
    {"--tuning", Keep::Name},         {"--max-flash", Keep::Name},
    {"--replace-kernel", Keep::Name}, {"--schedule", Keep::Name},
};

bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("-_=.,:;/+@[]").find(c) != std::string_view::npos;
}

constexpr std::string_view kHex = "0123456789abcdef";

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) {
    if (!out.empty()) out += ' ';
    for (char c : word) {
      const auto byte = static_cast<uint8_t>(c);
      if (is_plain(c))
        out += c;
      else
        ((out += '%') += kHex[byte >> 4]) += kHex[byte & 15];
    }
  }
  return out;
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string coded; in >> coded;) {
    std::string word;
    for (size_t i = 0; i < coded.size(); i++) {
      uint8_t byte = 0;
      const bool is_code =
          coded[i] == '%' && i + 2 < coded.size() &&
          std::from_chars(&coded[i + 1], &coded[i + 1] + 2, byte, 16).ec == std::errc();
      word += is_code ? static_cast<char>(byte) : coded[i];
      if (is_code) i += 2;
    }
    out.push_back(std::move(word));
  }
  return out;
}

} // namespace

std::optional<Keep> kept(const std::string& name) {
  if (name.starts_with("--limit-")) return Keep::Value;
  const auto* row = std::ranges::find(kKept, name, &KeptOption::name);
  return row == std::end(kKept) ? std::nullopt : std::optional(row->keep);
}

// A program is a file like any other: words that no pack keeps would be options of its
// choosing.
std::string unknown_value(const PackedWith& packed) {
  for (const std::string& word : packed.options) {
    const std::string name =
        word.starts_with("-O") ? "-O" : word.substr(0, word.find('='));
    if (kept(name) == Keep::Value) continue;
    const bool is_shown = !name.empty() && std::ranges::all_of(name, is_plain);
    return is_shown ? name : "an option that is none";
  }
  return "";
}

void write_packed_with(JsonWriter& json, const PackedWith& packed) {
  json.begin_object().pair("stub", packed.stub);
  json.pair("programs", joined(packed.programs));
  json.pair("unsearched", joined(packed.unsearched));
  json.pair("options", joined(packed.options)).end_object();
}

std::optional<PackedWith> read_packed_with(std::string_view manifest) {
  const auto members = json_members(manifest);
  if (!members || !members->contains("packed_with")) return std::nullopt;
  const auto packed = json_members(members->at("packed_with"));
  if (!packed) return std::nullopt;
  const auto text = [&](const char* name) -> std::string {
    const auto at = packed->find(name);
    if (at == packed->end()) return "";
    const std::string_view quoted = at->second;
    const size_t begin = quoted.find('"'), end = quoted.rfind('"');
    return begin < end ? std::string(quoted.substr(begin + 1, end - begin - 1)) : "";
  };
  PackedWith out;
  out.stub = text("stub");
  out.programs = words_of(text("programs"));
  out.unsearched = words_of(text("unsearched"));
  out.options = words_of(text("options"));
  return out;
}

} // namespace svod::packager
