#include "packager/output_fault.h"

namespace svod::packager {

namespace {

// Suffixes that promise what is not made; a script that asked for them meant another tool
// or another target.
struct ForeignSuffix {
  const char *suffix, *what, *instead;
};
constexpr ForeignSuffix kForeign[] = {
    {".dll", "a Windows library", ".so"}, {".dylib", "a macOS library", ".so"},
    {".lib", "a Windows library", ".a"},  {".obj", "a Windows object", ".o"},
    {".exe", "a Windows program", ""},    {".bin", "a raw memory image", ".a"},
    {".hex", "a memory image", ".a"},     {".c", "C source", ".a"},
    {".h", "a C header", ".a"},           {".py", "a Python module", ".so"},
    {".onnx", "an ONNX model", ""},
};

// What is made and what the name says must agree, unless --emit says which one counts.
std::string suffix_fault(const Options& options) {
  for (const ForeignSuffix& row : kForeign) {
    if (!options.output.ends_with(row.suffix)) continue;
    std::string instead = *row.instead != 0 ? "the suffix " + std::string(row.instead)
                                            : "a name without suffix";
    return "--output: " + options.output + " is named like " + row.what +
           ", and svod-pack makes ELF files for " + options.target.triple + "; take " +
           instead + ", or say --emit to have this name";
  }
  return "";
}

// Text for vectors is Clang's own.
std::string source_fault(const Options& options) {
  const Level& level = options.target.levels.front();
  const bool bare = options.target.kind == TargetKind::Source ||
                    options.target.kind == TargetKind::Bare;
  if (bare && !level.has_vectors()) return "";
  return "--emit=source: target " + options.target.alias +
         (bare ? " has vectors, which are written for our own compiler"
               : " runs an operating system") +
         "; leave --target out, or name a core of a microcontroller without "
         "vectors, like cortex-m4";
}

// What the target has no form of.
std::string kind_fault(const Options& options) {
  const std::string alias = "--emit: target " + options.target.alias;
  const TargetKind kind = options.target.kind;
  if (options.emit == Output::Source) return source_fault(options);
  if (kind == TargetKind::Source)
    return alias + " is for --emit=source (-o NAME.cpp) only";
  if (kind == TargetKind::Wasm && options.emit != Output::Module)
    return alias + " has modules only (-o NAME.wasm)";
  if (kind != TargetKind::Wasm && options.emit == Output::Module)
    return alias + " has no modules; their target is --target wasm32";
  if (kind != TargetKind::Bare) return "";
  if (options.emit == Output::Executable) return alias + " has static libraries only";
  if (options.emit == Output::Shared) return alias + " has no shared objects";
  return "";
}

} // namespace

std::string output_fault(const Options& options, bool emit_given) {
  if (options.is_text()) return "";
  if (!emit_given)
    if (std::string fault = suffix_fault(options); !fault.empty()) return fault;
  return kind_fault(options);
}

} // namespace svod::packager
