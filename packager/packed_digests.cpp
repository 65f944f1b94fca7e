// What of a pack decides its output: the options by their words, the code by digests.
#include "packager/artefact/stub_jobs.h"
#include "packager/artefact/stub_sources.h"
#include "packager/command/option_table.h"
#include "packager/packed_with.h"

#include <algorithm>
#include <map>

namespace svod::packager {

namespace {

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

} // namespace svod::packager
