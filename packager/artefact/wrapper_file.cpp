// A struct of constants and types. Sizes stand in it as numbers, so that the compiler
// knows every span; what is the C header's already comes from its macros.
#include "packager/artefact/wrapper_file.h"

#include "compiler/ir/dtype.h"
#include "compiler/support/check.h"
#include "packager/artefact/stub_sources.h"

#include <algorithm>
#include <array>
#include <sstream>

namespace svod::packager {

namespace {

// Words of C++20 that a C name may be, and those that std's headers make macros of.
constexpr std::array kTaken = {
    "alignas",       "alignof",     "and",
    "and_eq",        "asm",         "auto",
    "bitand",        "bitor",       "bool",
    "break",         "case",        "catch",
    "char",          "char16_t",    "char32_t",
    "char8_t",       "class",       "co_await",
    "co_return",     "co_yield",    "compl",
    "concept",       "const",       "const_cast",
    "consteval",     "constexpr",   "constinit",
    "continue",      "decltype",    "default",
    "delete",        "do",          "double",
    "dynamic_cast",  "else",        "enum",
    "explicit",      "export",      "extern",
    "false",         "float",       "for",
    "friend",        "goto",        "if",
    "inline",        "int",         "long",
    "mutable",       "namespace",   "new",
    "noexcept",      "not",         "not_eq",
    "nullptr",       "operator",    "or",
    "or_eq",         "private",     "protected",
    "public",        "register",    "reinterpret_cast",
    "requires",      "return",      "short",
    "signed",        "sizeof",      "static",
    "static_assert", "static_cast", "std",
    "struct",        "svod",        "switch",
    "template",      "this",        "thread_local",
    "throw",         "true",        "try",
    "typedef",       "typeid",      "typename",
    "union",         "unsigned",    "using",
    "virtual",       "void",        "volatile",
    "wchar_t",       "while",       "xor",
    "xor_eq",
};

// How an element lies in a caller's memory, by its type's name.
struct ElementRow {
  const char* dtype;
  const char* type;
};
constexpr ElementRow kElements[] = {
    {"bool", "bool"},
    {"i8", "std::int8_t"},
    {"u8", "std::uint8_t"},
    {"i16", "std::int16_t"},
    {"u16", "std::uint16_t"},
    {"i32", "std::int32_t"},
    {"u32", "std::uint32_t"},
    {"i64", "std::int64_t"},
    {"u64", "std::uint64_t"},
    {"f32", "float"},
    {"f64", "double"},
    {"f16", "svod::Float16"},
    {"bf16", "svod::BFloat16"},
    {"c64", "std::array<float, 2>"},
    {"c128", "std::array<double, 2>"},
};

std::string element_of(const ImageTensor& tensor, uint64_t& count) {
  const std::string dtype = onnx_type_text(tensor.onnx_type);
  count = tensor.elements();
  const auto row = std::ranges::find(kElements, dtype, &ElementRow::dtype);
  if (row != std::end(kElements)) return row->type;
  const bool bytes =
      tensor.bytes == count && tensor.onnx_type != info(DType::String).onnx;
  count = tensor.bytes;
  if (tensor.onnx_type == info(DType::String).onnx) return "svod::Character";
  return bytes ? "svod::Float8" : "svod::Packed";
}

void write_tensors(std::ostream& out, const char* kind,
                   std::span<const ImageTensor> tensors) {
  out << "  using " << kind << "s = svod::Tensors<";
  for (size_t i = 0; i < tensors.size(); i++) {
    uint64_t count = 0;
    const std::string type = element_of(tensors[i], count);
    out << (i > 0 ? ",\n                                " : "") << "svod::Tensor<" << type
        << ", " << count;
    for (int64_t dim : tensors[i].dims) out << ", " << dim;
    out << ">";
  }
  out << ">;\n  static constexpr std::array<const char*, " << tensors.size() << "> "
      << kind << "_names = {";
  for (size_t i = 0; i < tensors.size(); i++)
    out << (i > 0 ? ", " : "") << c_literal(tensors[i].name);
  out << "};\n";
}

void write_init(std::ostream& out, const std::string& prefix) {
  const std::string macro = macro_prefix(prefix);
  out << "  static constexpr std::size_t made_bytes = " << macro << "_MADE_BYTES;\n"
      << "  static constexpr std::size_t init_scratch_bytes = " << macro
      << "_INIT_SCRATCH_BYTES;\n"
      << "  static int init(void* arena, void* weights, void* scratch) noexcept {\n"
      << "    return " << prefix << "_init(arena, weights, scratch);\n  }\n";
}

void write_device(std::ostream& out, const std::string& prefix) {
  out << "  static int open(void* arena, int place) noexcept {\n"
      << "    return " << prefix << "_open(arena, place);\n  }\n"
      << "  static void close(void* arena) noexcept { " << prefix << "_close(arena); }\n"
      << "  static bool runs_on_device(void* arena) noexcept {\n"
      << "    return " << prefix << "_runs_on_device(arena) != 0;\n  }\n"
      << "  static const char* device_text(void* arena) noexcept {\n"
      << "    return " << prefix << "_device_text(arena);\n  }\n"
      << "  static int run_device(void* arena, const void* const* in, void* const* out,\n"
      << "                        void* stream) noexcept {\n"
      << "    return " << prefix << "_run_device(arena, in, out, stream);\n  }\n"
      << "  static int finish_device(void* arena) noexcept {\n"
      << "    return " << prefix << "_finish_device(arena);\n  }\n";
}

std::string_view generic_text() {
  for (const StubFile& file : stub_files()) {
    if (file.name == "runtime_stub/model.hpp") return file.text;
  }
  SVOD_CHECK(false) << "the packer lacks model.hpp";
  return {};
}

} // namespace

std::string wrapper_type(const std::string& prefix) {
  const bool taken =
      std::ranges::any_of(kTaken, [&](const char* word) { return prefix == word; });
  return taken ? prefix + "_model" : prefix;
}

std::string wrapper_text(const HeaderFacts& facts, const std::string& header) {
  const ImageEntry& entry = facts.contents->entries.front();
  const std::string& prefix = facts.prefix;
  const std::string macro = macro_prefix(prefix);
  std::ostringstream out;
  out << generic_text() << "\n#ifndef " << macro << "_SVOD_HPP\n#define " << macro
      << "_SVOD_HPP\n\n#include " << c_literal(header) << "\n\n"
      << "struct " << wrapper_type(prefix) << " {\n";
  write_tensors(out, "input", callers(entry.inputs));
  write_tensors(out, "output", callers(entry.outputs));
  out << "  static constexpr std::size_t arena_bytes = " << macro << "_ARENA_BYTES;\n"
      << "  static constexpr std::size_t arena_align = " << macro << "_ARENA_ALIGN;\n"
      << "  static constexpr std::size_t stack_bytes = " << macro << "_STACK_BYTES;\n\n"
      << "  static int run(void* arena, std::size_t bytes, const void* const* in,\n"
      << "                 void* const* out) noexcept {\n"
      << "    return " << prefix << "_run_sized(arena, bytes, in, out);\n  }\n"
      << "  static const char* status_text(int status) noexcept {\n"
      << "    return " << prefix << "_status_text(status);\n  }\n";
  if (!entry.states.empty())
    out << "  static void reset(void* arena) noexcept { " << prefix
        << "_reset(arena); }\n";
  if (facts.init_scratch) write_init(out, prefix);
  if (facts.device) write_device(out, prefix);
  out << "  static const char* info() noexcept { return " << prefix << "_info(); }\n"
      << "};\n\n#endif\n";
  return out.str();
}

} // namespace svod::packager
