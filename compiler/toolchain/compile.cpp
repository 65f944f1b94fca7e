// Clang as a function. The driver turns ordinary flags into a front-end invocation, a
// file system in memory holds the source and the few headers, the object goes into a
// string. Headers are what would be slow (arm_neon.h alone takes 74 ms), so there are
// none; what kernels share is precompiled.
//
// No stack protector, no shadow-stack marks, no zeroed locals in kernels: they hold no
// secrets, call nothing and index by constants or checked values, while zeroing a tile
// buffer costs what computing it costs. What hardens a program is in the link: see
// link.cpp.
#include "compiler/toolchain/compile.h"

#include "compiler/codegen/computation_check.h"
#include "compiler/support/digest.h"
#include "compiler/toolchain/guarded.h"
#include "compiler/toolchain/invocation.h"
#include "compiler/toolchain/keep_order.h"
#include "compiler/toolchain/mend_mve.h"
#include "compiler/toolchain/preambles.h"

#include <clang/Basic/Version.h>
#include <clang/CodeGen/CodeGenAction.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/MultiplexConsumer.h>
#include <clang/Frontend/PrecompiledPreamble.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/VirtualFileSystem.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <optional>

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
  if (target.kind == TargetKind::Gpu) return {};
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

// Some passes of -O3 look for what emitted kernels do not have: values that a loop stores
// and loads in its next turn, memory written twice, branches that follow from others.
// They change no byte of any kernel and took up to a third of the optimizer's time, most
// of it asking which of a thousand accesses of a tile may meet.
static constexpr std::string_view kIdlePasses[] = {
    "LoopLoadEliminationPass", "DSEPass", "MemCpyOptPass", "ConstraintEliminationPass"};

static void skip_idle_passes(llvm::PassBuilder& builder) {
  builder.getPassInstrumentationCallbacks()->registerShouldRunOptionalPassCallback(
      [](llvm::StringRef pass, const llvm::Any&) {
        return std::ranges::find(kIdlePasses, std::string_view(pass)) ==
               std::end(kIdlePasses);
      });
}

using FileSystem = llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem>;

static FileSystem file_system(const std::vector<SourceFile>& headers,
                              const Source& source) {
  auto files = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  auto add = [&](const std::string& path, const std::string& text) {
    files->addFile(path, 0, llvm::MemoryBuffer::getMemBuffer(text, path));
  };
  for (const SourceFile& header : headers) add("/svod/" + header.name, header.text);
  add(kMain, source.text);
  return files;
}

namespace {

// Compiles, and looks at the tree on the way when a check is given.
template <class Action> class CheckedAction : public Action {
public:
  codegen::ComputationCheck* check = nullptr;

protected:
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance& compiler,
                                                        llvm::StringRef file) override {
    auto emits = Action::CreateASTConsumer(compiler, file);
    if (check == nullptr || !emits) return emits;
    std::vector<std::unique_ptr<clang::ASTConsumer>> both;
    both.push_back(check->consumer(compiler));
    both.push_back(std::move(emits));
    return std::make_unique<clang::MultiplexConsumer>(std::move(both));
  }
};

constexpr unsigned kMostErrors = 20; // of one text, as Clang's own -ferror-limit

// All that one compile lives in. It is on the heap because Clang registers clean-ups that
// run after a crash, when the frames that crashed are gone.
struct Work {
  explicit Work(llvm::raw_ostream& messages)
      : printer(messages, options.get()),
        engine(
            clang::CompilerInstance::createDiagnostics(options.get(), &printer, false)) {
    engine->setErrorLimit(kMostErrors);
    compiler.setDiagnostics(engine.get());
    compiler.setVerboseOutputStream(messages);
  }

  llvm::IntrusiveRefCntPtr<clang::DiagnosticOptions> options =
      llvm::makeIntrusiveRefCnt<clang::DiagnosticOptions>();
  clang::TextDiagnosticPrinter printer;
  llvm::IntrusiveRefCntPtr<clang::DiagnosticsEngine> engine;
  std::shared_ptr<const clang::PrecompiledPreamble> preamble;
  std::unique_ptr<llvm::MemoryBuffer> text;
  clang::CompilerInstance compiler;
  CheckedAction<clang::EmitObjAction> object;
  CheckedAction<clang::EmitAssemblyAction> assembly;
  std::optional<codegen::ComputationCheck> check;
};

} // namespace

// The source as it is, or behind what is precompiled of it.
static FileSystem with_preamble(Work& work, const Source& source,
                                const Invocation& invocation, FileSystem files) {
  if (source.prelude_bytes == 0) return files;
  const auto prelude = std::string_view(source.text).substr(0, source.prelude_bytes);
  DigestWriter key;
  key.text(invocation.flags.hex());
  key.text(prelude);
  work.preamble = find_preamble(key.finish(), prelude, *invocation.options, files);
  if (!work.preamble) return files;
  work.text = llvm::MemoryBuffer::getMemBuffer(source.text, kMain);
  work.preamble->AddImplicitPreamble(*invocation.options, files, work.text.get());
  return files;
}

static bool run(const std::vector<std::string>& flags, Emit emit, const Source& source,
                FileSystem files, Work& work, llvm::SmallVectorImpl<char>& output) {
  const Invocation invocation = make_invocation(flags, *work.engine, files);
  if (!invocation.options) return false;
  if (source.prelude_bytes != 0) // an emitted kernel
    invocation.options->getCodeGenOpts().PassBuilderCallbacks.emplace_back(
        skip_idle_passes);
  if (invocation.options->getTargetOpts().Triple.starts_with("thumbv8.1m"))
    invocation.options->getCodeGenOpts().PassBuilderCallbacks.emplace_back(mend_mve);
  if (keeps_order(invocation.options->getTargetOpts().Triple,
                  invocation.options->getCodeGenOpts().OptimizeSize != 0))
    invocation.options->getCodeGenOpts().PassBuilderCallbacks.emplace_back(keep_order);
  files = with_preamble(work, source, invocation, files);
  work.compiler.setFileManager(new clang::FileManager(clang::FileSystemOptions(), files));
  work.compiler.setInvocation(invocation.options);
  work.compiler.setOutputStream(std::make_unique<llvm::raw_svector_ostream>(output));
  if (emit == Emit::Object) return work.compiler.ExecuteAction(work.object);
  return work.compiler.ExecuteAction(work.assembly);
}

// The pass of LLVM 19 that makes Armv8.1-M's low-overhead loops crashes on some kernels.
// Without those instructions a loop counts and branches as on older cores.
static std::vector<std::string> without_crashing_pass(const Target& target) {
  if (!target.triple.starts_with("thumbv8")) return {};
  return {"-Xclang", "-target-feature", "-Xclang", "-lob"};
}

CompileResult Compiler::compile(const Target& target, const Level& level,
                                const Source& source, Emit emit) const {
  initialize_llvm();
  std::vector<std::string> arguments = flags(target, level, source);
  arguments.insert(arguments.end(),
                   {emit == Emit::Object ? "-c" : "-S", "-I/svod", kMain, "-o", "-"});
  bool crashed = false;
  CompileResult result = compile_with(arguments, source, emit, crashed);
  const std::vector<std::string> other = without_crashing_pass(target);
  if (!crashed || other.empty()) return result;
  arguments.insert(arguments.end(), other.begin(), other.end());
  CompileResult second = compile_with(arguments, source, emit, crashed);
  if (!second.ok) return result;
  second.remedy = "is compiled without low-overhead loops, on which the compiler crashed";
  return second;
}

CompileResult Compiler::compile_with(const std::vector<std::string>& arguments,
                                     const Source& source, Emit emit,
                                     bool& crashed) const {
  CompileResult result;
  llvm::raw_string_ostream messages(result.diagnostics);
  llvm::SmallVector<char, 0> output;
  std::string failure = run_guarded([&] {
    auto work = std::make_unique<Work>(messages);
    if (source.only_computes) {
      work->check.emplace(freestanding_headers());
      work->object.check = work->assembly.check = &*work->check;
    }
    result.ok =
        run(arguments, emit, source, file_system(headers_, source), *work, output);
    if (!work->check) return;
    const std::vector<std::string> faults = work->check->findings();
    if (faults.empty()) return;
    result.ok = false;
    result.diagnostics += "more than a computation: " + faults[0] + '\n';
  });
  crashed = !failure.empty();
  if (crashed) {
    result.ok = false;
    result.diagnostics += failure + '\n';
  }
  const auto bytes = std::as_bytes(std::span(output.data(), output.size()));
  if (result.ok) result.output.assign(bytes.begin(), bytes.end());
  return result;
}

} // namespace svod::toolchain
