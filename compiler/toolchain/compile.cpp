// Clang as a function. The driver turns ordinary flags into a front-end invocation, a
// file system in memory holds the source and the few headers, the object goes into a
// string.
//
// The driver assumes that the process ends after one compile and never frees; undoing
// that keeps 300 compiles at the memory of one. A small vector kernel takes about 10 ms;
// headers are what would be slow (arm_neon.h alone 74 ms), so there are none.
//
// No stack protector, no shadow-stack marks, no zeroed locals in kernels: they hold no
// secrets, call nothing and index by constants or checked values, while zeroing a tile
// buffer costs what computing it costs. What hardens a program is in the link: see
// link.cpp.
#include "compiler/toolchain/compile.h"

#include "compiler/support/digest.h"
#include "compiler/toolchain/guarded.h"

#include <clang/Basic/Version.h>
#include <clang/CodeGen/CodeGenAction.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <clang/Frontend/Utils.h>
#include <clang/Lex/PreprocessorOptions.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/VirtualFileSystem.h>
#include <llvm/Support/raw_ostream.h>

namespace svod::toolchain {

// Every compile sees its source under this name, so that a kernel's name is not in its
// object.
static const char* const kMain = "/svod/source";

Compiler::Compiler(std::vector<SourceFile> headers) : headers_(std::move(headers)) {
  for (const SourceFile& header : freestanding_headers()) headers_.push_back(header);
  DigestWriter digest;
  for (const SourceFile& header : headers_) {
    digest.text(header.name);
    digest.text(header.text);
  }
  identity_ = clang::getClangFullVersion() + " headers " + digest.finish().hex();
}

std::string Compiler::identity() const { return identity_; }

// Code of a Linux program runs at any address; what it refers to in other objects is in
// the same program, so no address goes through a table that somebody would have to fill
// at start. Firmware and modules are placed by their linker.
static std::vector<std::string> flags_of_kind(const Target& target) {
  if (target.kind == TargetKind::Linux)
    return {"-fPIC", "-fvisibility=hidden", "-Xclang",
            "-fapply-global-visibility-to-externs"};
  // What arm-none-eabi-gcc uses; its linker warns of every object that differs.
  if (target.triple.starts_with("thumb"))
    return {"-fno-pic", "-fvisibility=hidden", "-fshort-enums"};
  return {"-fno-pic", "-fvisibility=hidden"};
}

std::vector<std::string> Compiler::flags(const Target& target, const Level& level,
                                         const Source& source) {
  std::vector<std::string> out{"--target=" + target.triple};
  if (source.name.ends_with(".c"))
    out.insert(out.end(), {"-x", "c", "-std=c11"});
  else
    out.insert(out.end(), {"-x", "c++", "-std=c++20", "-fno-exceptions", "-fno-rtti",
                           "-fno-threadsafe-statics"});
  out.insert(out.end(),
             {"-O3", "-ffreestanding", "-nostdinc", "-fwrapv", "-ffp-contract=off",
              "-fno-math-errno", "-fno-stack-protector", "-ffunction-sections",
              "-fdata-sections", "-fno-unwind-tables", "-fno-asynchronous-unwind-tables",
              "-fno-ident", "-fomit-frame-pointer", "-w"});
  for (const std::string& flag : flags_of_kind(target)) out.push_back(flag);
  out.insert(out.end(), level.flags.begin(), level.flags.end());
  out.insert(out.end(), source.flags.begin(), source.flags.end());
  return out;
}

using FileSystem = llvm::IntrusiveRefCntPtr<llvm::vfs::InMemoryFileSystem>;

static FileSystem file_system(const std::vector<SourceFile>& headers,
                              const Source& source) {
  FileSystem files = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  auto add = [&](const std::string& path, const std::string& text) {
    files->addFile(path, 0, llvm::MemoryBuffer::getMemBuffer(text, path));
  };
  for (const SourceFile& header : headers) add("/svod/" + header.name, header.text);
  add(kMain, source.text);
  return files;
}

static std::shared_ptr<clang::CompilerInvocation>
invocation(std::vector<std::string> flags, Emit emit, clang::DiagnosticsEngine& engine,
           const FileSystem& files) {
  flags.insert(flags.begin(), "clang");
  flags.insert(flags.end(),
               {emit == Emit::Object ? "-c" : "-S", "-I/svod", kMain, "-o", "-"});
  std::vector<const char*> args;
  for (const std::string& flag : flags) args.push_back(flag.c_str());
  clang::CreateInvocationOptions options;
  options.Diags = &engine;
  options.VFS = files;
  std::shared_ptr<clang::CompilerInvocation> out = clang::createInvocation(args, options);
  if (!out) return nullptr;
  out->getFrontendOpts().DisableFree = false;
  out->getCodeGenOpts().DisableFree = false;
  out->getCodeGenOpts().ClearASTBeforeBackend = false;
  return out;
}

namespace {

// All that one compile lives in. It is on the heap because Clang registers clean-ups that
// run after a crash, when the frames that crashed are gone.
struct Work {
  Work(llvm::raw_ostream& messages, const FileSystem& files)
      : printer(messages, options.get()),
        engine(
            clang::CompilerInstance::createDiagnostics(options.get(), &printer, false)) {
    compiler.setDiagnostics(engine.get());
    compiler.setFileManager(new clang::FileManager(clang::FileSystemOptions(), files));
    compiler.setVerboseOutputStream(messages);
  }

  llvm::IntrusiveRefCntPtr<clang::DiagnosticOptions> options =
      llvm::makeIntrusiveRefCnt<clang::DiagnosticOptions>();
  clang::TextDiagnosticPrinter printer;
  llvm::IntrusiveRefCntPtr<clang::DiagnosticsEngine> engine;
  clang::CompilerInstance compiler;
  clang::EmitObjAction object;
  clang::EmitAssemblyAction assembly;
};

} // namespace

static bool run(const std::vector<std::string>& flags, Emit emit, const FileSystem& files,
                llvm::raw_ostream& messages, llvm::SmallVectorImpl<char>& output) {
  Work work(messages, files);
  auto invoked = invocation(flags, emit, *work.engine, files);
  if (!invoked) return false;
  work.compiler.setInvocation(invoked);
  work.compiler.setOutputStream(std::make_unique<llvm::raw_svector_ostream>(output));
  if (emit == Emit::Object) return work.compiler.ExecuteAction(work.object);
  return work.compiler.ExecuteAction(work.assembly);
}

CompileResult Compiler::compile(const Target& target, const Level& level,
                                const Source& source, Emit emit) const {
  initialize_llvm();
  CompileResult result;
  llvm::raw_string_ostream messages(result.diagnostics);
  llvm::SmallVector<char, 0> output;
  std::string failure = run_guarded([&] {
    FileSystem files = file_system(headers_, source);
    result.ok = run(flags(target, level, source), emit, files, messages, output);
  });
  if (!failure.empty()) {
    result.ok = false;
    result.diagnostics += failure + '\n';
  }
  const auto bytes = std::as_bytes(std::span(output.data(), output.size()));
  if (result.ok) result.output.assign(bytes.begin(), bytes.end());
  return result;
}

} // namespace svod::toolchain
