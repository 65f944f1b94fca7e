// A kernel of a hundred lines begins with a thousand that all have; those cost 11 ms,
// loading what was made of them 1 ms, making it 20 ms.
#include "compiler/toolchain/preambles.h"

#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/PrecompiledPreamble.h>
#include <clang/Frontend/TextDiagnosticBuffer.h>
#include <clang/Lex/Lexer.h>
#include <clang/Serialization/PCHContainerOperations.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/VirtualFileSystem.h>

#include <map>
#include <mutex>

namespace svod::toolchain {

namespace {

using Preamble = std::shared_ptr<const clang::PrecompiledPreamble>;

// Below it, parsing the text each time is as fast.
constexpr unsigned kUsesWorthOne = 3;

struct Entry {
  unsigned uses = 0;
  Preamble made;
};

struct Table {
  std::mutex mutex;
  std::map<Digest, Entry> entries;
};

Table& table() {
  static Table one;
  return one;
}

} // namespace

static Preamble make(std::string_view text, const clang::CompilerInvocation& invocation,
                     llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> files) {
  const auto buffer = llvm::MemoryBuffer::getMemBufferCopy(text);
  clang::TextDiagnosticBuffer ignored; // the kernel's own compile tells what is wrong
  auto engine = clang::CompilerInstance::createDiagnostics(new clang::DiagnosticOptions,
                                                           &ignored, false);
  clang::PreambleCallbacks callbacks;
  auto made = clang::PrecompiledPreamble::Build(
      invocation, buffer.get(), clang::PreambleBounds(unsigned(text.size()), true),
      *engine, std::move(files), std::make_shared<clang::PCHContainerOperations>(), true,
      "", callbacks);
  if (!made) return nullptr;
  return std::make_shared<clang::PrecompiledPreamble>(std::move(*made));
}

// Whoever comes while one is made does not wait: a crash of Clang in the maker would
// never wake it.
std::shared_ptr<const clang::PrecompiledPreamble>
find_preamble(const Digest& key, std::string_view text,
              const clang::CompilerInvocation& invocation,
              llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> files) {
  Table& all = table();
  {
    std::scoped_lock lock(all.mutex);
    Entry& entry = all.entries[key];
    if (entry.made || ++entry.uses != kUsesWorthOne) return entry.made;
  }
  Preamble made = make(text, invocation, std::move(files));
  std::scoped_lock lock(all.mutex);
  all.entries[key].made = made;
  return made;
}

} // namespace svod::toolchain
