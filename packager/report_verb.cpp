// svod-pack report A.json B.json -o FILE.html: what changed between two packs, as a page.
#include "packager/output_file.h"
#include "packager/report/json_reader.h"
#include "packager/report/page.h"
#include "packager/verbs.h"

#include <fstream>
#include <iterator>

namespace svod::packager {

// The text of a file that --json of a pack wrote.
static std::optional<std::string> read_pack_json(const std::string& path,
                                                 const Console& console, Exit& exit) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) {
    console.error(path + ": cannot be read");
    exit = Exit::File;
    return std::nullopt;
  }
  const auto members = json_members(text);
  bool whole = members.has_value();
  for (const char* key : {"model", "predicted", "bytes", "kernels", "time_ms", "command"})
    whole = whole && members->contains(key);
  if (whole) return text;
  console.error(path + ": is not what --json of a pack writes");
  exit = Exit::Usage;
  return std::nullopt;
}

Exit report_verb(const Options& options, const Console& console) {
  Exit exit = Exit::Done;
  const auto before = read_pack_json(options.model, console, exit);
  const auto after = read_pack_json(options.other, console, exit);
  if (!before || !after) return exit;
  std::string error;
  std::optional<OutputFile> file = OutputFile::create(options.output, error);
  if (file && file->write(comparison_text(*before, *after), error) &&
      (options.dry_run || file->commit(error)))
    return Exit::Done;
  console.error(options.output + ": " + error);
  return Exit::File;
}

} // namespace svod::packager
