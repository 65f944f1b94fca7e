// The file is gone from its folder before anything of it runs.
#include "packager/verify/shared_code.h"

#include <filesystem>

#include <unistd.h>

namespace svod::packager {

SharedCode::SharedCode(const Target& target, const toolchain::LinkInputs& inputs) {
  std::error_code error;
  std::string path =
      (std::filesystem::temp_directory_path(error) / "svod-code-XXXXXX").string();
  const int file = error ? -1 : mkstemp(path.data());
  if (file < 0) {
    diagnostics_ = path + " cannot be written";
    return;
  }
  close(file);
  const toolchain::LinkResult linked =
      toolchain::link_shared(target, inputs, "code", path);
  diagnostics_ = linked.diagnostics;
  if (linked.ok) object_.emplace(path, diagnostics_);
  unlink(path.c_str());
}

} // namespace svod::packager
