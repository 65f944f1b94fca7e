// The file is gone from its folder before anything of it runs.
#include "packager/verify/shared_code.h"

#include <filesystem>
#include <utility>

#include <dlfcn.h>
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
  if (linked.ok) handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (linked.ok && handle_ == nullptr) diagnostics_ = dlerror();
  unlink(path.c_str());
}

SharedCode::~SharedCode() {
  if (handle_ != nullptr) dlclose(handle_);
}

SharedCode::SharedCode(SharedCode&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)),
      diagnostics_(std::move(other.diagnostics_)) {}

void* SharedCode::find_symbol(const char* name) const {
  return handle_ == nullptr ? nullptr : dlsym(handle_, name);
}

} // namespace svod::packager
