// Clang parses the file as a kernel is parsed, without any header of this machine. An
// operator is a function with the annotation
//     [[clang::annotate("svod::op", "my.domain", "MyOp", "same(0)")]]
// and its parameters say by type and name what they are: const T* an input, T* an output,
// x_size, x_rank and x_dims measures of the tensor x, everything else an attribute.
#include "compiler/codegen/read_custom_ops.h"

#include "compiler/codegen/check_cpp.h"

#include <clang/AST/Attr.h>
#include <clang/ASTMatchers/ASTMatchFinder.h>
#include <clang/ASTMatchers/ASTMatchers.h>
#include <clang/Basic/FileManager.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <clang/Tooling/Tooling.h>
#include <llvm/Support/VirtualFileSystem.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>

namespace svod::codegen {

namespace {

using namespace clang::ast_matchers;

// Thrown in this file to leave a function; caught where it is matched.
struct Fault {
  clang::SourceLocation at;
  std::string what;
};

std::string type_name(clang::QualType type) { return "'" + type.getAsString() + "'"; }

std::optional<DType> dtype_of(clang::QualType type, const clang::ASTContext& context) {
  const auto* builtin = type.getCanonicalType()->getAs<clang::BuiltinType>();
  if (!builtin) return std::nullopt;
  switch (builtin->getKind()) {
  case clang::BuiltinType::Bool:
    return DType::Bool;
  case clang::BuiltinType::Float:
    return DType::F32;
  case clang::BuiltinType::Double:
    return DType::F64;
  case clang::BuiltinType::Float16:
    return DType::F16;
  case clang::BuiltinType::BFloat16:
    return DType::BF16;
  // Characters; plain char also has another sign on another target.
  case clang::BuiltinType::Char_S:
  case clang::BuiltinType::Char_U:
  case clang::BuiltinType::WChar_S:
  case clang::BuiltinType::WChar_U:
  case clang::BuiltinType::Char8:
  case clang::BuiltinType::Char16:
  case clang::BuiltinType::Char32:
    return std::nullopt;
  default:
    break;
  }
  if (!builtin->isInteger()) return std::nullopt;
  const bool is_signed = builtin->isSignedInteger();
  switch (context.getTypeSize(builtin)) {
  case 8:
    return is_signed ? DType::I8 : DType::U8;
  case 16:
    return is_signed ? DType::I16 : DType::U16;
  case 32:
    return is_signed ? DType::I32 : DType::U32;
  case 64:
    return is_signed ? DType::I64 : DType::U64;
  default:
    return std::nullopt;
  }
}

const clang::AnnotateAttr* annotation(const clang::Decl& decl, llvm::StringRef name) {
  for (const auto* attribute : decl.specific_attrs<clang::AnnotateAttr>())
    if (attribute->getAnnotation() == name) return attribute;
  return nullptr;
}

// The arguments of svod::op: domain, name, and a shape for each output.
std::vector<std::string> annotation_texts(const clang::AnnotateAttr& attribute) {
  std::vector<std::string> texts;
  for (const clang::Expr* argument : attribute.args()) {
    const auto* text =
        llvm::dyn_cast<clang::StringLiteral>(argument->IgnoreParenImpCasts());
    if (const auto* constant = llvm::dyn_cast<clang::ConstantExpr>(argument))
      text = llvm::dyn_cast<clang::StringLiteral>(
          constant->getSubExpr()->IgnoreParenImpCasts());
    if (!text)
      throw Fault{argument->getBeginLoc(), "an argument of svod::op is no string"};
    texts.push_back(text->getString().str());
  }
  if (texts.size() < 2)
    throw Fault{attribute.getLocation(), "svod::op needs a domain and a name"};
  return texts;
}

// Reads one function.
class FunctionReader {
public:
  FunctionReader(const clang::FunctionDecl& function, const clang::ASTContext& context)
      : function_(function), context_(context) {}

  CustomOp read(const clang::AnnotateAttr& attribute) {
    check_kind();
    std::vector<std::string> texts = annotation_texts(attribute);
    op_.domain = texts[0] == "ai.onnx" ? "" : texts[0], op_.name = texts[1];
    op_.shapes.assign(texts.begin() + 2, texts.end());
    op_.function = "::" + function_.getQualifiedNameAsString();
    for (const clang::ParmVarDecl* parameter : function_.parameters())
      read_parameter(*parameter);
    check_shapes(attribute);
    return std::move(op_);
  }

private:
  void check_kind() const {
    const clang::SourceLocation at = function_.getLocation();
    if (llvm::isa<clang::CXXMethodDecl>(function_))
      throw Fault{at, "an operator is a free function, no member of a class"};
    if (function_.isTemplated() || function_.isVariadic())
      throw Fault{at, "an operator is no template and has no '...'"};
    if (function_.isInAnonymousNamespace())
      throw Fault{at, "an operator's function has a name, also its namespaces"};
    if (!function_.getReturnType()->isVoidType())
      throw Fault{at, "an operator returns void; its results are parameters T*"};
  }

  void read_parameter(const clang::ParmVarDecl& declared) {
    CustomParameter parameter;
    parameter.name = declared.getName().str();
    const clang::QualType type = declared.getType();
    if (measures(parameter, declared)) {
      // Its type was checked there.
    } else if (const auto* pointer = type->getAs<clang::PointerType>()) {
      const clang::QualType element = pointer->getPointeeType();
      const std::optional<DType> dtype = dtype_of(element, context_);
      if (!dtype || element.isVolatileQualified())
        throw Fault{declared.getLocation(), "parameter '" + parameter.name +
                                                "' points to " + type_name(element) +
                                                ", which is no element type of a tensor"};
      parameter.dtype = *dtype;
      parameter.type = spelled(element);
      parameter.kind = element.isConstQualified() ? CustomParameter::Kind::Input
                                                  : CustomParameter::Kind::Output;
      if (annotation(declared, "svod::attribute")) read_list(parameter, declared);
    } else {
      read_number(parameter, declared);
    }
    op_.parameters.push_back(std::move(parameter));
  }

  // As a cast in the same file may name it: int64_t is another type on another target.
  std::string spelled(clang::QualType type) const {
    return type.getUnqualifiedType().getAsString(context_.getPrintingPolicy());
  }

  // x_size, x_rank, x_dims of a parameter x before it.
  bool measures(CustomParameter& parameter, const clang::ParmVarDecl& declared) {
    using Kind = CustomParameter::Kind;
    static constexpr std::pair<std::string_view, Kind> kEndings[] = {
        {"_size", Kind::Size}, {"_rank", Kind::Rank}, {"_dims", Kind::Dims}};
    for (const auto& [ending, kind] : kEndings) {
      if (!parameter.name.ends_with(ending)) continue;
      const std::string of =
          parameter.name.substr(0, parameter.name.size() - ending.size());
      const auto found = std::ranges::find(op_.parameters, of, &CustomParameter::name);
      if (found == op_.parameters.end() || found->kind == Kind::Number) continue;
      if (found->kind == Kind::Numbers && kind != Kind::Size) continue;
      parameter.kind = kind;
      parameter.of = static_cast<size_t>(found - op_.parameters.begin());
      clang::QualType type = declared.getType();
      if (kind == Kind::Dims && type->isPointerType()) type = type->getPointeeType();
      const bool fits = dtype_of(type, context_) == DType::I64 &&
                        declared.getType()->isPointerType() == (kind == Kind::Dims);
      if (!fits)
        throw Fault{declared.getLocation(),
                    "parameter '" + parameter.name + "' must be " +
                        (kind == Kind::Dims ? "const int64_t*" : "int64_t")};
      return true;
    }
    return false;
  }

  static void read_list(CustomParameter& parameter, const clang::ParmVarDecl& declared) {
    const bool fits = parameter.kind == CustomParameter::Kind::Input &&
                      (parameter.dtype == DType::I64 || parameter.dtype == DType::F32);
    if (!fits)
      throw Fault{declared.getLocation(),
                  "attribute '" + parameter.name +
                      "' must be const int64_t* or const float* to be a list"};
    parameter.kind = CustomParameter::Kind::Numbers;
  }

  void read_number(CustomParameter& parameter, const clang::ParmVarDecl& declared) {
    const std::optional<DType> dtype = dtype_of(declared.getType(), context_);
    const bool small = dtype == DType::F16 || dtype == DType::BF16;
    if (!dtype || small || parameter.name.empty())
      throw Fault{declared.getLocation(),
                  "parameter '" + parameter.name + "' has type " +
                      type_name(declared.getType()) +
                      "; a tensor is a pointer to its elements, an attribute a named "
                      "number (float, double, bool or an integer)"};
    parameter.dtype = *dtype;
    parameter.type = spelled(declared.getType());
    if (!declared.hasDefaultArg()) return;
    clang::Expr::EvalResult value;
    const clang::Expr* argument = declared.getInit();
    if (!argument || !argument->EvaluateAsRValue(value, context_) ||
        !(value.Val.isInt() || value.Val.isFloat()))
      throw Fault{declared.getLocation(),
                  "the default of '" + parameter.name + "' is no constant"};
    parameter.fallback = value.Val.isInt()
                             ? static_cast<double>(value.Val.getInt().getExtValue())
                             : value.Val.getFloat().convertToDouble();
  }

  void check_shapes(const clang::AnnotateAttr& attribute) {
    using Kind = CustomParameter::Kind;
    const auto count = [&](Kind kind) {
      return static_cast<size_t>(
          std::ranges::count(op_.parameters, kind, &CustomParameter::kind));
    };
    if (count(Kind::Output) == 0 || count(Kind::Input) == 0)
      throw Fault{function_.getLocation(),
                  "an operator has at least one input (const T*) and one output (T*)"};
    if (op_.shapes.size() > count(Kind::Output))
      throw Fault{attribute.getLocation(), "svod::op has more shapes than outputs"};
    op_.shapes.resize(count(Kind::Output), "declared");
    for (const std::string& shape : op_.shapes) {
      bool good = shape == "declared";
      for (size_t i = 0; i < count(Kind::Input); ++i)
        good = good || shape == "same(" + std::to_string(i) + ")";
      if (!good)
        throw Fault{attribute.getLocation(),
                    "shape \"" + shape +
                        "\" is neither \"declared\" nor \"same(I)\" with I an input"};
    }
  }

  const clang::FunctionDecl& function_;
  const clang::ASTContext& context_;
  CustomOp op_;
};

class Reader : public MatchFinder::MatchCallback {
public:
  explicit Reader(std::vector<std::string>& faults) : faults_(faults) {}
  std::vector<CustomOp> ops;

  void run(const MatchFinder::MatchResult& match) override {
    const auto* function = match.Nodes.getNodeAs<clang::FunctionDecl>("function");
    const clang::AnnotateAttr* attribute = annotation(*function, "svod::op");
    if (!attribute) return;
    try {
      ops.push_back(FunctionReader(*function, *match.Context).read(*attribute));
      ops.back().line =
          match.SourceManager->getPresumedLoc(function->getLocation()).getLine();
    } catch (const Fault& fault) {
      const clang::PresumedLoc place = match.SourceManager->getPresumedLoc(
          match.SourceManager->getExpansionLoc(fault.at));
      const std::string where = place.isValid()
                                    ? std::to_string(place.getLine()) + ":" +
                                          std::to_string(place.getColumn()) + ": "
                                    : "";
      faults_.push_back(where + fault.what);
    }
  }

private:
  std::vector<std::string>& faults_;
};

// A name for messages and #line: no folder, and nothing that would end a string.
std::string plain_name(const std::string& path) {
  std::string name = path.substr(path.find_last_of('/') + 1);
  for (char& c : name)
    if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\') c = '_';
  return name;
}

// Whether the text is C++; its operators are in `reader` then.
bool parse(const std::string& text, Reader& reader, std::string& messages) {
  auto memory = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  memory->addFile("/svod/source", 0, llvm::MemoryBuffer::getMemBuffer(text));
  const std::vector<SourceFile> headers = freestanding_headers();
  for (const SourceFile& header : headers)
    memory->addFile("/svod/" + header.name, 0,
                    llvm::MemoryBuffer::getMemBuffer(header.text));
  auto files =
      llvm::makeIntrusiveRefCnt<clang::FileManager>(clang::FileSystemOptions(), memory);
  MatchFinder finder;
  finder.addMatcher(
      functionDecl(isDefinition(), hasAttr(clang::attr::Annotate)).bind("function"),
      &reader);
  llvm::raw_string_ostream stream(messages);
  auto options = llvm::makeIntrusiveRefCnt<clang::DiagnosticOptions>();
  options->ShowPresumedLoc = true; // as #line names them
  clang::TextDiagnosticPrinter printer(stream, options.get());
  clang::tooling::ToolInvocation tool(
      {"clang", "-fsyntax-only", "-x", "c++", "-std=c++20", "-w",
       "-fno-caret-diagnostics", "-ffreestanding", "-nostdinc", "-I/svod",
       "/svod/source"},
      clang::tooling::newFrontendActionFactory(&finder)->create(), files.get());
  tool.setDiagnosticConsumer(&printer);
  return tool.run();
}

} // namespace

std::vector<CustomOp> read_custom_ops(const std::string& path, const std::string& text,
                                      std::vector<std::string>& faults) {
  const std::string name = plain_name(path);
  const std::string numbered = "#line 1 \"" + name + "\"\n" + text + "\n";
  std::vector<std::string> found;
  Reader reader(found);
  std::string messages;
  const bool compiles = parse(numbered, reader, messages);
  // That it does not compile is said once, by the messages.
  for (const std::string& fault : check_cpp(numbered))
    if (!fault.starts_with("does not compile")) found.push_back(fault);
  for (const std::string& fault : found) faults.push_back(name + ":" + fault);
  if (!compiles) faults.push_back(messages);
  if (faults.empty() && reader.ops.empty())
    faults.push_back(name + ": no function has the annotation svod::op");
  const auto shared = std::make_shared<const std::string>(numbered);
  for (CustomOp& op : reader.ops) op.file = name, op.text = shared;
  return std::move(reader.ops);
}

} // namespace svod::codegen
