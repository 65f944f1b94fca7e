// The headers have the library's name; the .pc file that of the C functions, by which
// pkg-config is asked.
#include "packager/headers.h"

#include "packager/artefact/module_loader.h"
#include "packager/artefact/pkg_config.h"
#include "packager/artefact/wrapper_file.h"
#include "packager/firmware/layouts.h"

#include <filesystem>

namespace svod::packager {

static std::vector<std::string> layout_paths(const Options& options) {
  const LayoutFiles files = layout_files(options);
  const std::filesystem::path folder = options.layout_folder;
  std::vector<std::string> paths;
  for (const char* suffix : {".h", ".hpp"})
    paths.push_back(folder / files.headers / (options.name + suffix));
  for (const auto& [path, text] : files.texts) paths.push_back(folder / path);
  return paths;
}

// svod::Model has one arena; source comes with one header.
static bool has_wrapper(const Options& options) {
  return options.pools.empty() && options.emit != Output::Source;
}

void make_folders(const Options& options) {
  if (options.layout == FolderLayout::None) return;
  std::vector<std::string> paths = layout_paths(options);
  paths.push_back(options.output);
  std::error_code error;
  for (const std::string& path : paths)
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
}

std::vector<std::string> header_paths(const Options& options) {
  const std::filesystem::path output(options.output);
  std::vector<std::string> paths;
  if (options.emit == Output::Module)
    return {std::filesystem::path(output).replace_extension(".mjs").string()};
  if (options.layout != FolderLayout::None) return layout_paths(options);
  for (const char* suffix : {".h", ".hpp"})
    if (has_wrapper(options) || suffix == std::string_view(".h"))
      paths.push_back(std::filesystem::path(output).replace_extension(suffix).string());
  if (options.pkg_config)
    paths.push_back((output.parent_path() / (options.name + ".pc")).string());
  return paths;
}

std::vector<std::string> header_texts(const Options& options, const HeaderFacts& facts) {
  const std::filesystem::path output(options.output);
  if (options.emit == Output::Module)
    return {module_loader_text(facts, output.filename().string())};
  const bool folder = options.layout != FolderLayout::None;
  const std::string header =
      folder ? options.name + ".h"
             : std::filesystem::path(output).replace_extension(".h").filename().string();
  std::vector<std::string> texts = {header_text(facts)};
  if (has_wrapper(options)) texts.push_back(wrapper_text(facts, header));
  if (folder)
    for (auto& [path, text] : layout_files(options).texts) texts.push_back(text);
  if (options.pkg_config)
    texts.push_back(pkg_config_text(options.name, output.filename().string(),
                                    facts.contents->model.hex()));
  return texts;
}

} // namespace svod::packager
