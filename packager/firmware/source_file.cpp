// Everything that a library holds, in the order in which it is used: the scalar
// functions and vectors that kernels are written in, the kernels, weights, and the run of
// straight_run.cpp. All but the functions of the header is in a namespace of the model's,
// so several models are several files of one program.
//
// What our own compiler is told by flags is said in the file, as far as a compiler takes
// it there: numbers wrap, memory has no type, and a product and a sum stay two roundings.
#include "packager/firmware/source_file.h"

#include "packager/artefact/compile_faults.h"
#include "packager/artefact/header_file.h"
#include "packager/artefact/stub_sources.h"
#include "packager/artefact/weights.h"
#include "packager/firmware/plain_text.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>

namespace svod::packager {

namespace {

constexpr char kBeginning[] =
    R"(// A packed model, made by svod-pack: compile it with -std=c++20 and -O2 or -Os.
// @WHAT@
//
// @NAME@_WEIGHTS_SECTION may say where the weights lie:
//   -D'@NAME@_WEIGHTS_SECTION=__attribute__((section(".ext_flash")))'
@INCLUDE@
@INCLUDES@
#if __cplusplus < 201709L
#error "this file is C++20: compile it with -std=c++20 or -std=gnu++20"
#endif
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the weights below are little-endian"
#endif

#ifndef @NAME@_WEIGHTS_SECTION
#define @NAME@_WEIGHTS_SECTION
#endif
#if defined(__GNUC__)
#define SVOD_ALWAYS_INLINE inline __attribute__((always_inline))
#define SVOD_NEVER_INLINE static __attribute__((noinline))
#define SVOD_RESTRICT __restrict
#define SVOD_PRAGMA(text) _Pragma(#text)
#else
#define SVOD_ALWAYS_INLINE inline
#define SVOD_NEVER_INLINE static
#define SVOD_RESTRICT
#define SVOD_PRAGMA(text)
#endif
#if defined(__clang__)
#define SVOD_UNROLL(count) SVOD_PRAGMA(clang loop unroll_count(count))
#define SVOD_NO_UNROLL SVOD_PRAGMA(clang loop unroll(disable))
#pragma clang fp contract(off)
#pragma clang diagnostic ignored "-Wpass-failed"
#elif defined(__GNUC__)
#define SVOD_UNROLL(count) SVOD_PRAGMA(GCC unroll count)
#define SVOD_NO_UNROLL SVOD_PRAGMA(GCC unroll 1)
#pragma GCC optimize("wrapv", "no-strict-aliasing", "fp-contract=off", "no-math-errno")
#else
#define SVOD_UNROLL(count)
#define SVOD_NO_UNROLL
#endif

namespace svod_@PREFIX@ {

)";

constexpr char kPortable[] = "It uses nothing that is not C++20.";
constexpr char kGnu[] =
    "For gcc from 10 and clang from 14 on; it needs no library beneath.";
constexpr char kIncludes[] = "\n#include <math.h>\n#include <string.h>\n";

std::string replaced(std::string text, std::string_view word, const std::string& with) {
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += with.size())
    text.replace(at, word.size(), with);
  return text;
}

// A file of the stub, for the place where it stands.
std::string stub_text(std::string_view name) {
  const auto file = std::ranges::find(stub_files(), name, &StubFile::name);
  std::string out;
  std::istringstream lines{std::string(file->text)};
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with("#include") && !line.starts_with("extern \"C\""))
      out += line + "\n";
  return out;
}

class SourceWriter {
public:
  explicit SourceWriter(const SourceFacts& facts) : facts_(facts), run_(facts.run) {}

  std::string write(std::string& error) {
    error = unsupported();
    if (!error.empty()) return "";
    std::string beginning = replaced(kBeginning, "@NAME@", macro_prefix(run_.prefix));
    beginning = replaced(beginning, "@WHAT@", facts_.options.portable ? kPortable : kGnu);
    beginning =
        replaced(beginning, "@INCLUDES@", facts_.options.portable ? kIncludes : "");
    beginning = replaced(beginning, "@PREFIX@", run_.prefix);
    out_ << replaced(beginning, "@INCLUDE@", "#include \"" + header() + "\"");
    std::string text = preludes();
    std::map<std::string, std::string> symbols; // by text
    for (const codegen::KernelSource& kernel : run_.kernels.sources) {
      const auto [at, is_new] = symbols.try_emplace(kernel.text, kernel.symbol);
      if (is_new)
        text += kernel_of(kernel);
      else
        run_.same[kernel.symbol] = at->second;
    }
    for (const char* name : {"runtime_stub/status.h", "runtime_stub/status_text.h",
                             "runtime_stub/firmware.h"})
      text += stub_text(name);
    out_ << plain_text("#define SVOD_PLAIN 1\n" + text, facts_.options.portable);
    write_weights();
    write_manifest();
    const std::string scope = "svod_" + run_.prefix;
    out_ << "} // namespace " << scope << "\n\nusing namespace " << scope << ";\n"
         << plain_text(straight_run_text(run_), facts_.options.portable);
    return out_.str();
  }

private:
  std::string header() const {
    return std::filesystem::path(facts_.options.output)
        .replace_extension(".h")
        .filename()
        .string();
  }

  std::string unsupported() const {
    for (const codegen::KernelSource& kernel : run_.kernels.sources)
      if (run_.kernels.plan.programs[kernel.program].call() != nullptr)
        return "kernel " + kernel_in_model(run_.kernels, kernel) +
               " is a function of its own text, which --emit=source does not take; pack "
               "a "
               "library for a target, or leave the node to your program";
    return "";
  }

  static std::string lanes_of(const codegen::KernelSource& kernel) {
    return "lanes" + std::to_string(kernel.parts.lanes);
  }

  // Scalar functions once, and what stands on vectors once for each length.
  std::string preludes() const {
    codegen::PreludeParts scalar;
    std::map<std::string, codegen::PreludeParts> vectors;
    for (const codegen::KernelSource& kernel : run_.kernels.sources) {
      scalar |= kernel.parts;
      const auto [at, is_new] = vectors.try_emplace(lanes_of(kernel), kernel.parts);
      if (!is_new) at->second |= kernel.parts;
    }
    std::string out = codegen::scalar_prelude(scalar, true);
    for (const auto& [name, parts] : vectors)
      out += "namespace " + name + " {\n" + codegen::lane_prelude(parts) +
             "} // namespace " + name + "\n";
    return out;
  }

  // In a namespace of its own, as every kernel has the same names.
  static std::string kernel_of(const codegen::KernelSource& kernel) {
    constexpr char kEntry[] = "extern \"C\" inline __attribute__((used, "
                              "visibility(\"hidden\"))) ";
    const std::string lanes = lanes_of(kernel);
    std::string text = kernel.text.substr(kernel.prelude_bytes);
    text = replaced(text, kEntry, "static ");
    text = replaced(text, "svod_kernel(", kernel.symbol + "(");
    text = replaced(text, "namespace kernel {\n",
                    "using namespace " + lanes + ";\nusing namespace " + lanes +
                        "::kernel;\n");
    text = replaced(text, "  using namespace kernel;\n", "");
    text = replaced(text, "} // namespace kernel\n", "");
    return "\nnamespace of_" + kernel.symbol + " {\n" + text + "} // namespace of_" +
           kernel.symbol + "\nusing of_" + kernel.symbol + "::" + kernel.symbol + ";\n";
  }

  void write_weights() {
    if (run_.contents.weight_bytes == 0) return;
    out_ << "\nalignas(" << run_.contents.align << ") const uint8_t " << run_.prefix
         << "_weights[" << run_.contents.weight_bytes << "] " << macro_prefix(run_.prefix)
         << "_WEIGHTS_SECTION = {";
    uint64_t at = 0;
    produce_weights(run_.kernels.plan, [&](std::span<const std::byte> bytes) {
      for (std::byte byte : bytes)
        out_ << (at++ % 24 == 0 ? "\n" : "") << static_cast<unsigned>(byte) << ",";
    });
    out_ << "};\n";
  }

  // A line of text for each line of the literal.
  void write_manifest() {
    out_ << "\nconst char " << run_.prefix << "_manifest[] =";
    std::istringstream lines(run_.contents.manifest);
    bool any = false;
    for (std::string line; std::getline(lines, line); any = true)
      out_ << "\n    " << c_literal(line + "\n");
    out_ << (any ? ";\n\n" : " \"\";\n\n");
  }

  const SourceFacts& facts_;
  StraightRun run_;
  std::ostringstream out_;
};

} // namespace

std::string source_text(const SourceFacts& facts, std::string& error) {
  return SourceWriter(facts).write(error);
}

} // namespace svod::packager
