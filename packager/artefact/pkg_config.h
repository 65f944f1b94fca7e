// NAME.pc beside a packed library: `PKG_CONFIG_PATH=folder pkg-config --cflags --libs
// NAME`.
#pragma once

#include <string>

namespace svod::packager {

// `library`: its file name. Folders are that of the .pc file, by the variables libdir and
// includedir, so that the files may be moved together.
std::string pkg_config_text(const std::string& name, const std::string& library,
                            const std::string& model_sha256);

} // namespace svod::packager
