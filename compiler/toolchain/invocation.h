// Flags as Clang's front end takes them.
#pragma once

#include "compiler/support/digest.h"

#include <clang/Basic/Diagnostic.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <llvm/Support/VirtualFileSystem.h>

#include <memory>
#include <string>
#include <vector>

namespace svod::toolchain {

struct Invocation {
  std::shared_ptr<clang::CompilerInvocation> options; // null for flags that are refused
  Digest flags;
};

// What the driver makes of `flags`, which name the source and the output. The driver runs
// once per process for equal flags; why it refuses them is told to `engine`. Thread-safe;
// the options are the caller's.
Invocation make_invocation(const std::vector<std::string>& flags,
                           clang::DiagnosticsEngine& engine,
                           llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> files);

} // namespace svod::toolchain
