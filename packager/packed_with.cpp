// Lists are texts of words with a space between them, in which all but plain characters
// are written as %XX: so a reader needs nothing but where a text ends.
#include "packager/packed_with.h"

#include "packager/artefact/stub_jobs.h"
#include "packager/artefact/stub_sources.h"
#include "packager/command/option_table.h"
#include "packager/report/json.h"
#include "packager/report/json_reader.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <sstream>

namespace svod::packager {

namespace {

// What an option's value is, for who packs again.
enum class Keep : uint8_t { Value, Name };
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

std::optional<Keep> kept(const std::string& name) {
  if (name.starts_with("--limit-")) return Keep::Value;
  const auto* row = std::ranges::find(kKept, name, &KeptOption::name);
  return row == std::end(kKept) ? std::nullopt : std::optional(row->keep);
}

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

std::string stub_digest(const Target& target) {
  DigestWriter out;
  out.text(package_compiler().identity());
  for (const StubFile& file : stub_files()) {
    out.text(file.name);
    out.text(file.text);
  }
  for (const std::string& flag : stub_flags(target, {})) out.text(flag);
  return out.finish().hex();
}

// Kernels begin with a few preludes, half of all text: each is digested once.
std::vector<std::string> program_digests(const codegen::Kernels& kernels) {
  constexpr size_t kDigits = 16;
  std::map<std::string, Digest> preludes;
  std::vector<DigestWriter> programs(kernels.plan.programs.size());
  for (const codegen::KernelSource& source : kernels.sources) {
    const std::string prelude = source.text.substr(0, source.prelude_bytes);
    const auto [known, added] = preludes.try_emplace(prelude);
    if (added) known->second = sha256(prelude);
    DigestWriter& out = programs[source.program];
    out.text(source.level);
    out.number(source.serves_all);
    out.digest(known->second);
    out.text(std::string_view(source.text).substr(source.prelude_bytes));
    for (const std::string& flag : source.flags) out.text(flag);
  }
  std::vector<std::string> out;
  for (DigestWriter& program : programs)
    out.push_back(program.finish().hex().substr(0, kDigits));
  return out;
}

} // namespace

std::vector<std::string> deciding_words(const std::vector<std::string>& words) {
  const std::vector<OptionText> known = options_of(Verb::Pack);
  std::vector<std::string> out;
  for (size_t i = 0; i < words.size(); i++) {
    std::string name = words[i].substr(0, words[i].find('='));
    std::optional<std::string> value;
    if (words[i].starts_with("-O") && words[i].size() > 2) name = "-O";
    if (words[i].size() > name.size())
      value = words[i].substr(name.size() + (words[i][name.size()] == '=' ? 1 : 0));
    const auto option = std::ranges::find_if(known, [&](const OptionText& text) {
      return name == text.long_name || name == text.short_name;
    });
    if (option == known.end()) continue;
    if (!value && !option->type.empty() && i + 1 < words.size()) value = words[++i];
    const std::optional<Keep> keep = kept(name);
    if (!keep) continue;
    const bool shown = value && *keep == Keep::Value;
    out.push_back(shown ? name + (name == "-O" ? "" : "=") + *value : name);
  }
  // What is found by tuning is in the file then, which alone gives the same program.
  if (std::ranges::find(out, "--tuning") != out.end()) std::erase(out, "--tune");
  return out;
}

PackedWith packed_with(const Options& options, const codegen::Kernels& kernels,
                       const std::set<Digest>& unsearched) {
  PackedWith out;
  out.stub = stub_digest(options.target);
  out.programs = program_digests(kernels);
  for (const Digest& kernel : unsearched) out.unsearched.push_back(kernel.hex());
  out.options = options.deciding;
  return out;
}

std::string unknown_value(const PackedWith& packed) {
  for (const std::string& word : packed.options)
    if (kept(word) == Keep::Name) return word;
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
