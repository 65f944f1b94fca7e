// The emitter can only write what its tables hold; this check does not trust that. It
// walks the tree that Clang makes of each text. What the linker would refuse later (an
// undefined symbol) is refused here with a line number, and what it would not refuse
// (state, assembly, a jump to a computed address) is found as well.
//
// A compile hands its own tree over, so no text is parsed twice. Walked is what the text
// declares, and what it makes of templates that come from a precompiled preamble: the
// preamble's other text is ours, the same for every kernel, and read by a test.
#include "compiler/codegen/check_cpp.h"

#include "compiler/codegen/computation_check.h"

#include <clang/ASTMatchers/ASTMatchFinder.h>
#include <clang/ASTMatchers/ASTMatchers.h>
#include <clang/Basic/Builtins.h>
#include <clang/Basic/FileManager.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/FrontendActions.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <clang/Lex/PPCallbacks.h>
#include <clang/Lex/Preprocessor.h>
#include <clang/Tooling/Tooling.h>
#include <llvm/Support/VirtualFileSystem.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <string_view>

namespace svod::codegen {

using namespace clang::ast_matchers;

// The library has no matcher for asm("...") between functions.
static const internal::VariadicDynCastAllOfMatcher<clang::Decl, clang::FileScopeAsmDecl>
    kFileScopeAsm;

// Builtins of the C library, and those for each lane of a vector, that are instructions
// or constants where the target has floats at all, or functions that every program
// brings along; names as after __builtin_ or __builtin_elementwise_. All others are calls
// of a library that is not there.
static constexpr std::string_view kInstructions[] = {
    "abs",     "add_sat",   "bitreverse", "canonicalize", "ceil",      "copysign",
    "fabs",    "floor",     "fma",        "fmax",         "fmin",      "huge_val",
    "inf",     "labs",      "llabs",      "max",          "maximum",   "memcmp",
    "memcpy",  "memmove",   "memset",     "min",          "minimum",   "nan",
    "nans",    "nearbyint", "popcount",   "rint",         "roundeven", "sqrt",
    "sub_sat", "trunc"};

static bool needs_library(const clang::FunctionDecl& builtin, llvm::StringRef name) {
  const bool each_lane = name.consume_front("__builtin_elementwise_");
  const clang::Builtin::Context& builtins = builtin.getASTContext().BuiltinInfo;
  if (!each_lane && !builtins.isLibFunction(builtin.getBuiltinID())) return false;
  name.consume_front("__builtin_");
  const auto instruction = [](llvm::StringRef text) {
    return std::ranges::find(kInstructions, std::string_view(text)) !=
           std::end(kInstructions);
  };
  // sqrt, sqrtf and sqrtl are one.
  return !instruction(name) &&
         !((name.ends_with("f") || name.ends_with("l")) && instruction(name.drop_back()));
}

namespace {

class Findings : public MatchFinder::MatchCallback {
public:
  void run(const MatchFinder::MatchResult& match) override {
    const clang::SourceManager& sources = *match.SourceManager;
    if (const auto* call = match.Nodes.getNodeAs<clang::CallExpr>("call"))
      check_call(*call, sources);
    if (const auto* variable = match.Nodes.getNodeAs<clang::VarDecl>("variable"))
      check_variable(*variable, sources, *match.Context);
    if (const auto* statement = match.Nodes.getNodeAs<clang::Stmt>("asm"))
      add(statement->getBeginLoc(), sources, "inline assembly");
    if (const auto* file = match.Nodes.getNodeAs<clang::Decl>("file asm"))
      add(file->getBeginLoc(), sources, "inline assembly at file scope");
  }

  void add(clang::SourceLocation at, const clang::SourceManager& sources,
           const std::string& text) {
    const clang::PresumedLoc place = sources.getPresumedLoc(sources.getExpansionLoc(at));
    std::string where = place.isValid() ? std::to_string(place.getLine()) + ":" +
                                              std::to_string(place.getColumn())
                                        : std::string("?");
    lines.push_back(where + ": " + text);
  }

  std::vector<std::string> lines;

private:
  void check_call(const clang::CallExpr& call, const clang::SourceManager& sources) {
    if (call.isTypeDependent() || call.isValueDependent())
      return; // seen once instantiated
    const clang::FunctionDecl* callee = call.getDirectCallee();
    if (!callee) return add(call.getBeginLoc(), sources, "call through a pointer");
    // A builtin spelt as such mostly becomes instructions; a library name such as memcpy
    // is a call.
    const llvm::StringRef name =
        callee->getIdentifier() ? callee->getName() : llvm::StringRef("operator");
    if (callee->getBuiltinID() != 0 && name.starts_with("__")) {
      if (needs_library(*callee, name))
        add(call.getBeginLoc(), sources,
            "call of '" + name.str() +
                "', which is a function of the C library, and there is none; write it "
                "out in arithmetic, or leave it to an operator of the model around this "
                "one");
      return;
    }
    if (callee->isTrivial() || callee->isDefined()) return;
    // Named in a template that nothing instantiates; its own template is here.
    const clang::FunctionDecl* pattern = callee->getTemplateInstantiationPattern();
    if (pattern != nullptr && pattern->isDefined()) return;
    add(call.getBeginLoc(), sources,
        "call of '" + callee->getQualifiedNameAsString() +
            "', which is not defined here");
  }

  void check_variable(const clang::VarDecl& variable, const clang::SourceManager& sources,
                      const clang::ASTContext& context) {
    if (variable.getType().isConstant(context) || variable.isConstexpr()) return;
    add(variable.getLocation(), sources,
        "variable '" + variable.getQualifiedNameAsString() + "' is writable and global");
  }
};

class IncludeCheck : public clang::PPCallbacks {
public:
  IncludeCheck(Findings& findings, const clang::SourceManager& sources,
               const std::vector<SourceFile>& headers)
      : findings_(findings), sources_(sources), headers_(headers) {}

  void InclusionDirective(clang::SourceLocation at, const clang::Token&,
                          llvm::StringRef name, bool, clang::CharSourceRange,
                          clang::OptionalFileEntryRef, llvm::StringRef, llvm::StringRef,
                          const clang::Module*, bool,
                          clang::SrcMgr::CharacteristicKind) override {
    if (std::ranges::find(headers_, name.str(), &SourceFile::name) == headers_.end())
      findings_.add(at, sources_, "#include of '" + name.str() + "'");
  }

private:
  Findings& findings_;
  const clang::SourceManager& sources_;
  const std::vector<SourceFile>& headers_;
};

// Clang hands over each declaration of the text, and each function when it has been made
// of a template.
class CheckConsumer : public clang::ASTConsumer {
public:
  explicit CheckConsumer(MatchFinder& finder) : finder_(finder) {}

  bool HandleTopLevelDecl(clang::DeclGroupRef group) override {
    declared_.insert(declared_.end(), group.begin(), group.end());
    return true;
  }

  void HandleTranslationUnit(clang::ASTContext& context) override {
    const std::vector<clang::Decl*> scope = context.getTraversalScope();
    context.setTraversalScope(declared_);
    finder_.matchAST(context);
    context.setTraversalScope(scope);
  }

private:
  MatchFinder& finder_;
  std::vector<clang::Decl*> declared_;
};

class CheckAction : public clang::ASTFrontendAction {
public:
  explicit CheckAction(ComputationCheck& check) : check_(check) {}

  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance& compiler,
                                                        llvm::StringRef) override {
    return check_.consumer(compiler);
  }

private:
  ComputationCheck& check_;
};

} // namespace

struct ComputationCheck::State {
  std::vector<SourceFile> headers;
  Findings findings;
  MatchFinder finder;
};

ComputationCheck::ComputationCheck(std::vector<SourceFile> headers)
    : state_(std::make_unique<State>()) {
  state_->headers = std::move(headers);
  MatchFinder& finder = state_->finder;
  finder.addMatcher(callExpr().bind("call"), &state_->findings);
  finder.addMatcher(varDecl(hasGlobalStorage()).bind("variable"), &state_->findings);
  finder.addMatcher(asmStmt().bind("asm"), &state_->findings);
  finder.addMatcher(kFileScopeAsm().bind("file asm"), &state_->findings);
}

ComputationCheck::~ComputationCheck() = default;

std::unique_ptr<clang::ASTConsumer>
ComputationCheck::consumer(clang::CompilerInstance& compiler) {
  compiler.getPreprocessor().addPPCallbacks(std::make_unique<IncludeCheck>(
      state_->findings, compiler.getSourceManager(), state_->headers));
  return std::make_unique<CheckConsumer>(state_->finder);
}

std::vector<std::string> ComputationCheck::findings() const {
  std::vector<std::string> once;
  for (const std::string& line : state_->findings.lines)
    if (std::ranges::find(once, line) == once.end()) once.push_back(line);
  return once;
}

static std::vector<std::string> command_line(const std::vector<std::string>& flags) {
  std::vector<std::string> out{"clang",
                               "-fsyntax-only",
                               "-x",
                               "c++",
                               "-std=c++20",
                               "-w",
                               "-fno-caret-diagnostics",
                               "-ffreestanding",
                               "-nostdinc",
                               "-I/svod"};
  out.insert(out.end(), flags.begin(), flags.end());
  out.push_back("/svod/source");
  return out;
}

std::vector<std::string> check_cpp(const std::string& text,
                                   const std::vector<std::string>& flags,
                                   const std::vector<SourceFile>& own_headers) {
  std::vector<SourceFile> headers = freestanding_headers();
  headers.insert(headers.end(), own_headers.begin(), own_headers.end());
  auto memory = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  memory->addFile("/svod/source", 0, llvm::MemoryBuffer::getMemBuffer(text));
  for (const SourceFile& header : headers)
    memory->addFile("/svod/" + header.name, 0,
                    llvm::MemoryBuffer::getMemBuffer(header.text));
  auto files =
      llvm::makeIntrusiveRefCnt<clang::FileManager>(clang::FileSystemOptions(), memory);

  ComputationCheck check(headers);
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  auto options = llvm::makeIntrusiveRefCnt<clang::DiagnosticOptions>();
  clang::TextDiagnosticPrinter printer(stream, options.get());
  clang::tooling::ToolInvocation tool(command_line(flags),
                                      std::make_unique<CheckAction>(check), files.get());
  tool.setDiagnosticConsumer(&printer);
  const bool compiles = tool.run();
  std::vector<std::string> out = check.findings();
  if (!compiles) out.push_back("does not compile: " + messages);
  return out;
}

} // namespace svod::codegen
