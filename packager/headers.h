// What lies beside a packed library: NAME.h for C, NAME.hpp for C++, and with
// --pkg-config NAME.pc; beside a module NAME.mjs.
#pragma once

#include "packager/artefact/header_file.h"
#include "packager/options.h"

namespace svod::packager {

// Of a layout, where it has any; what cannot be made fails with its first file.
void make_folders(const Options& options);

std::vector<std::string> header_paths(const Options& options);
// In the order of their paths.
std::vector<std::string> header_texts(const Options& options, const HeaderFacts& facts);

} // namespace svod::packager
