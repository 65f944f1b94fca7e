// Folders as other build systems want a library: the archive, its headers and the files
// that tell a build system about them.
#pragma once

#include "packager/options.h"

#include <string>
#include <utility>
#include <vector>

namespace svod::packager {

struct LayoutFiles {
  std::string library;                                    // path within the folder
  std::string headers;                                    // folder within the folder
  std::vector<std::pair<std::string, std::string>> texts; // path and content
};

LayoutFiles layout_files(const Options& options);

} // namespace svod::packager
