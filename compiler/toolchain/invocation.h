// Flags as Clang's front end takes them.
#pragma once

#include <clang/Basic/Diagnostic.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <llvm/Support/VirtualFileSystem.h>

#include <memory>
#include <string>
#include <vector>

namespace svod::toolchain {

// What the driver makes of `flags`, which name the source and the output. The driver runs
// once per process for equal flags. Null, and a word in `engine`, for flags it refuses.
// Thread-safe; the result is the caller's.
std::shared_ptr<clang::CompilerInvocation>
make_invocation(const std::vector<std::string>& flags, clang::DiagnosticsEngine& engine,
                llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> files);

} // namespace svod::toolchain
