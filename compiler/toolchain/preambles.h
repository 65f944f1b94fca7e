// The text that kernels begin with, parsed once per process: a precompiled header that
// never sees a disk.
#pragma once

#include "compiler/support/digest.h"

#include <llvm/ADT/IntrusiveRefCntPtr.h>

#include <memory>
#include <string_view>

namespace clang {
class CompilerInvocation;
class PrecompiledPreamble;
} // namespace clang
namespace llvm::vfs {
class FileSystem;
}

namespace svod::toolchain {

// For a source that begins with `text`, compiled as `invocation` says. Null while it is
// not worth its making, or somebody else makes it: then the source is parsed whole, to
// the same object. `key` names the pair of flags and text. Thread-safe.
std::shared_ptr<const clang::PrecompiledPreamble>
find_preamble(const Digest& key, std::string_view text,
              const clang::CompilerInvocation& invocation,
              llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> files);

} // namespace svod::toolchain
