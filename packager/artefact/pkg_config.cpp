// A library that the linker finds by -l is named so; any other file is named whole.
#include "packager/artefact/pkg_config.h"

#include "packager/version.h"

namespace svod::packager {

std::string pkg_config_text(const std::string& name, const std::string& library,
                            const std::string& model_sha256) {
  const size_t dot = library.rfind('.');
  const std::string suffix = dot == std::string::npos ? "" : library.substr(dot);
  const bool found_by_name =
      library.starts_with("lib") && (suffix == ".a" || suffix == ".so");
  const std::string libs = found_by_name
                               ? "-L\"${libdir}\" -l" + library.substr(3, dot - 3)
                               : "\"${libdir}/" + library + "\"";
  return "libdir=${pcfiledir}\nincludedir=${pcfiledir}\n\nName: " + name +
         "\nDescription: ONNX model of SHA-256 " + model_sha256 +
         ", packed by svod-pack\nVersion: " + kVersion + "\nLibs: " + libs +
         "\nCflags: -I\"${includedir}\"\n";
}

} // namespace svod::packager
