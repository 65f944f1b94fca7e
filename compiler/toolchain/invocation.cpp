// The driver assumes that the process ends after one compile and never frees; undoing
// that keeps 300 compiles at the memory of one.
#include "compiler/toolchain/invocation.h"

#include <clang/Frontend/Utils.h>
#include <clang/Lex/PreprocessorOptions.h>

#include <map>
#include <mutex>

namespace svod::toolchain {

using Invocation = std::shared_ptr<clang::CompilerInvocation>;

static Invocation run_driver(const std::vector<std::string>& flags,
                             clang::DiagnosticsEngine& engine,
                             llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> files) {
  std::vector<const char*> args{"clang"};
  for (const std::string& flag : flags) args.push_back(flag.c_str());
  clang::CreateInvocationOptions options;
  options.Diags = &engine;
  options.VFS = std::move(files);
  Invocation out = clang::createInvocation(args, options);
  if (!out) return nullptr;
  out->getFrontendOpts().DisableFree = false;
  out->getCodeGenOpts().DisableFree = false;
  out->getCodeGenOpts().ClearASTBeforeBackend = false;
  // Texts belong to whoever compiles.
  out->getPreprocessorOpts().RetainRemappedFileBuffers = true;
  return out;
}

Invocation make_invocation(const std::vector<std::string>& flags,
                           clang::DiagnosticsEngine& engine,
                           llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> files) {
  static std::mutex mutex;
  static std::map<std::vector<std::string>, Invocation> known;
  {
    std::scoped_lock lock(mutex);
    if (auto at = known.find(flags); at != known.end())
      return std::make_shared<clang::CompilerInvocation>(*at->second);
  }
  Invocation made = run_driver(flags, engine, std::move(files));
  if (!made) return nullptr;
  std::scoped_lock lock(mutex);
  known.try_emplace(flags, made);
  return std::make_shared<clang::CompilerInvocation>(*made);
}

} // namespace svod::toolchain
