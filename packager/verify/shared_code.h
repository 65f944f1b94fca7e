// Code that was compiled here and runs in this process.
#pragma once

#include "compiler/toolchain/link.h"
#include "packager/verify/mapped_object.h"

#include <optional>

namespace svod::packager {

// A shared object that is loaded as long as this lives.
class SharedCode {
public:
  // On failure nothing is found in it, and diagnostics() says why.
  SharedCode(const Target& target, const toolchain::LinkInputs& inputs);

  // Null: there is none of that name.
  template <class Function> Function* find(const char* name) const {
    return reinterpret_cast<Function*>(object_ ? object_->find(name) : nullptr);
  }
  const std::string& diagnostics() const { return diagnostics_; }

private:
  std::optional<MappedObject> object_;
  std::string diagnostics_;
};

} // namespace svod::packager
