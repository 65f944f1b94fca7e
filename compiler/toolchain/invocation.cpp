// The driver assumes that the process ends after one compile and never frees; undoing
// that keeps 300 compiles at the memory of one.
#include "compiler/toolchain/invocation.h"

#include <clang/Frontend/Utils.h>
#include <clang/Lex/PreprocessorOptions.h>

#include <map>
#include <mutex>

namespace svod::toolchain {

static std::shared_ptr<clang::CompilerInvocation>
run_driver(const std::vector<std::string>& flags, clang::DiagnosticsEngine& engine,
           llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> files) {
  std::vector<const char*> args{"clang"};
  for (const std::string& flag : flags) args.push_back(flag.c_str());
  clang::CreateInvocationOptions options;
  options.Diags = &engine;
  options.VFS = std::move(files);
  auto out = std::shared_ptr(clang::createInvocation(args, options));
  if (!out) return nullptr;
  out->getFrontendOpts().DisableFree = false;
  out->getCodeGenOpts().DisableFree = false;
  out->getCodeGenOpts().ClearASTBeforeBackend = false;
  // Texts belong to whoever compiles.
  out->getPreprocessorOpts().RetainRemappedFileBuffers = true;
  return out;
}

static Digest digest_of(const std::vector<std::string>& flags) {
  DigestWriter out;
  for (const std::string& flag : flags) out.text(flag);
  return out.finish();
}

Invocation make_invocation(const std::vector<std::string>& flags,
                           clang::DiagnosticsEngine& engine,
                           llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> files) {
  static std::mutex mutex;
  static std::map<std::vector<std::string>, Invocation> known;
  auto copy = [](const Invocation& one) {
    return Invocation{std::make_shared<clang::CompilerInvocation>(*one.options),
                      one.flags};
  };
  {
    std::scoped_lock lock(mutex);
    if (auto at = known.find(flags); at != known.end()) return copy(at->second);
  }
  Invocation made{run_driver(flags, engine, std::move(files)), digest_of(flags)};
  if (!made.options) return made;
  std::scoped_lock lock(mutex);
  known.try_emplace(flags, made);
  return copy(made);
}

} // namespace svod::toolchain
