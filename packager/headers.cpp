// The headers have the library's name; the .pc file that of the C functions, by which
// pkg-config is asked.
#include "packager/headers.h"

#include "packager/artefact/module_loader.h"
#include "packager/artefact/pkg_config.h"
#include "packager/artefact/wrapper_file.h"

#include <filesystem>

namespace svod::packager {

std::vector<std::string> header_paths(const Options& options) {
  const std::filesystem::path output(options.output);
  std::vector<std::string> paths;
  if (options.emit == Output::Module)
    return {std::filesystem::path(output).replace_extension(".mjs").string()};
  for (const char* suffix : {".h", ".hpp"})
    paths.push_back(std::filesystem::path(output).replace_extension(suffix).string());
  if (options.pkg_config)
    paths.push_back((output.parent_path() / (options.name + ".pc")).string());
  return paths;
}

std::vector<std::string> header_texts(const Options& options, const HeaderFacts& facts) {
  const std::filesystem::path output(options.output);
  if (options.emit == Output::Module)
    return {module_loader_text(facts, output.filename().string())};
  const std::string header =
      std::filesystem::path(output).replace_extension(".h").filename().string();
  std::vector<std::string> texts = {
      header_text(facts),
      wrapper_text(options.name, header, facts.contents->entries.front())};
  if (options.pkg_config)
    texts.push_back(pkg_config_text(options.name, output.filename().string(),
                                    facts.contents->model.hex()));
  return texts;
}

} // namespace svod::packager
