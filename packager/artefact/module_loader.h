// The JavaScript beside a WebAssembly module: an ES module whose load() gives an object
// with run(), for Node and browsers.
#pragma once

#include "packager/artefact/header_file.h"

namespace svod::packager {

// `module`: the file's name, which lies beside the loader.
std::string module_loader_text(const HeaderFacts& facts, const std::string& module);

} // namespace svod::packager
