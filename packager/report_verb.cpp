// svod-pack report A.json B.json -o FILE.html: what changed between two packs, as a page.
// Of one file, what a program measured of its kernels.
#include "packager/output_file.h"
#include "packager/report/json_reader.h"
#include "packager/report/page.h"
#include "packager/report/predicted.h"
#include "packager/verbs.h"

#include <fstream>
#include <iterator>

namespace svod::packager {

using Keys = std::initializer_list<const char*>;

// The text of a file with an object that has these keys; `what` else it is not.
static std::optional<std::string> read_json(const std::string& path, Keys keys,
                                            const char* what, const Console& console,
                                            Exit& exit) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) {
    console.error(path + ": cannot be read");
    exit = Exit::File;
    return std::nullopt;
  }
  const auto members = json_members(text);
  bool whole = members.has_value();
  for (const char* key : keys) whole = whole && members->contains(key);
  if (whole) return text;
  console.error(path + ": is not what " + what);
  exit = Exit::Usage;
  return std::nullopt;
}

static std::optional<std::string> comparison_page(const Options& options,
                                                  const Console& console, Exit& exit) {
  constexpr const char* kWhat = "--json of a pack writes";
  const Keys keys = {"model", "predicted", "bytes", "kernels", "time_ms", "command"};
  const auto before = read_json(options.model, keys, kWhat, console, exit);
  const auto after = read_json(options.other, keys, kWhat, console, exit);
  if (!before || !after) return std::nullopt;
  return comparison_text(*before, *after);
}

// What the packer knows of the machine that a level of this one's programs stands for;
// "null": it is no such level.
static std::string machine_of(const std::string& profile) {
  const std::string_view level = json_members(profile)->at("level");
  for (const Level& own : default_target().levels) {
    if (level != "\"" + own.suffix + "\"") continue;
    JsonWriter json;
    write_machine(json, own);
    return json.text();
  }
  return "null";
}

static std::optional<std::string> profile_page(const Options& options,
                                               const Console& console, Exit& exit) {
  const auto profile =
      read_json(options.model, {"kernels", "total_us", "level", "threads", "unit"},
                "--profile=json of a program prints", console, exit);
  if (!profile) return std::nullopt;
  return profile_text(*profile, machine_of(*profile));
}

Exit report_verb(const Options& options, const Console& console) {
  Exit exit = Exit::Done;
  const auto page = options.other.empty() ? profile_page(options, console, exit)
                                          : comparison_page(options, console, exit);
  if (!page) return exit;
  std::string error;
  std::optional<OutputFile> file = OutputFile::create(options.output, error);
  if (file && file->write(*page, error) && (options.dry_run || file->commit(error)))
    return Exit::Done;
  console.error(options.output + ": " + error);
  return Exit::File;
}

} // namespace svod::packager
