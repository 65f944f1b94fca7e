#include "packager/make_rule.h"

#include <filesystem>

namespace svod::packager {

std::string make_rule(const Options& options, const Front& front) {
  auto escape = [](const std::string& path) {
    std::string out;
    for (char c : path) {
      if (c == ' ' || c == '#') out += '\\';
      if (c == '$') out += '$';
      out += c;
    }
    return out;
  };
  std::string out = escape(options.output) + ": " + escape(options.model);
  std::filesystem::path folder = std::filesystem::path(options.model).parent_path();
  for (const std::string& file : front.model.external_files) {
    out += " \\\n  " + escape((folder / file).string());
  }
  for (const std::string& file : options.custom_ops) out += " \\\n  " + escape(file);
  if (!options.schedule.empty()) out += " \\\n  " + escape(options.schedule);
  // With --tune it is written.
  if (!options.tuning.empty() && !options.tune_minutes)
    out += " \\\n  " + escape(options.tuning);
  return out + "\n";
}

} // namespace svod::packager
