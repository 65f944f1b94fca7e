// Code that was compiled here and runs in this process.
#pragma once

#include "compiler/toolchain/link.h"

namespace svod::packager {

// A shared object that is loaded as long as this lives.
class SharedCode {
public:
  // On failure nothing is found in it, and diagnostics() says why.
  SharedCode(const Target& target, const toolchain::LinkInputs& inputs);
  ~SharedCode();
  SharedCode(SharedCode&& other) noexcept;
  SharedCode& operator=(SharedCode&&) = delete;

  // Null: there is none of that name.
  template <class Function> Function* find(const char* name) const {
    return reinterpret_cast<Function*>(find_symbol(name));
  }
  const std::string& diagnostics() const { return diagnostics_; }

private:
  void* find_symbol(const char* name) const;
  void* handle_ = nullptr;
  std::string diagnostics_;
};

} // namespace svod::packager
