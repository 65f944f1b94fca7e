// Vectors are arrays of 64-bit words: they are aligned for every element, and a word of
// text is read by a compiler in an eighth of the time of eight bytes. Devices here are
// little-endian, as the words are.
#include "packager/firmware/testbench.h"

#include "compiler/ir/dtype.h"
#include "packager/artefact/header_file.h"

#include <cstring>
#include <sstream>

namespace svod::packager {

namespace {

constexpr char kParts[] = R"c(
/* Where the lines go: SVOD_TEST_PRINT(text) is yours to define. By default they leave by semihosting on a device
   (a debugger or an emulator prints them) and on stdout elsewhere. */
#ifndef SVOD_TEST_PRINT
#if defined(__linux__) || !(defined(__arm__) || defined(__aarch64__) || defined(__riscv))
#include <stdio.h>
#define SVOD_TEST_PRINT(text) fputs(text, stdout)
#else
static void svod_test_print(const char* text) {
#if defined(__aarch64__)
  register long operation __asm__("x0") = 4;
  register const char* argument __asm__("x1") = text;
  __asm__ volatile("hlt #0xf000" : "+r"(operation) : "r"(argument) : "memory");
#elif defined(__arm__)
  register long operation __asm__("r0") = 4;
  register const char* argument __asm__("r1") = text;
  __asm__ volatile("bkpt 0xab" : "+r"(operation) : "r"(argument) : "memory");
#else
  register long operation __asm__("a0") = 4;
  register const char* argument __asm__("a1") = text;
  __asm__ volatile(".option push\n\t.option norvc\n\t.balign 16\n\t"
                   "slli x0, x0, 0x1f\n\tebreak\n\tsrai x0, x0, 7\n\t.option pop"
                   : "+r"(operation) : "r"(argument) : "memory");
#endif
}
#define SVOD_TEST_PRINT(text) svod_test_print(text)
#endif
#endif

static void print_number(unsigned long number) {
  char text[24];
  int at = 23;
  text[at] = 0;
  do text[--at] = (char)('0' + number % 10);
  while ((number /= 10) != 0);
  SVOD_TEST_PRINT(text + at);
}
)c";

// Relative and absolute, as a packed program's --verify has them.
constexpr char kCompareFloats[] = R"c(
static int near(double found, double expected) {
  const double size = expected < 0 ? -expected : expected;
  const double off = found < expected ? expected - found : found - expected;
  if (found != found || expected != expected) return found != found && expected != expected;
  return found == expected || off <= 1e-5 + 1e-3 * size;
}
)c";

// Numbers are printed in hexadecimal, which needs no division.
constexpr char kCounts[] = R"c(
/* What each kernel takes: SVOD_NOW is yours to define as an expression that reads a counter of the device, of 32 or
   64 bits, that is running: -D'SVOD_NOW=(*(volatile uint32_t*)0xE0001004)' is DWT's count of cycles on a Cortex-M. */
#ifndef SVOD_NOW
#error "define SVOD_NOW as an expression that reads a running counter of the device"
#endif
static uint64_t counts[PROGRAMS], last;
void svod_profile(uint32_t program);
void svod_profile(uint32_t program) {
  const uint64_t took = SVOD_NOW - last;
  if (program < PROGRAMS) counts[program] += sizeof(SVOD_NOW) == 4 ? (uint32_t)took : took;
  last = SVOD_NOW;
}
static void print_counts(void) {
  uint32_t i;
  int k;
  for (i = 0; i < PROGRAMS; ++i) {
    static char text[] = "PROFILE 00000000 0000000000000000\n";
    for (k = 0; k < 8; ++k) text[15 - k] = "0123456789abcdef"[i >> 4 * k & 15];
    for (k = 0; k < 16; ++k) text[32 - k] = "0123456789abcdef"[counts[i] >> 4 * k & 15];
    SVOD_TEST_PRINT(text);
  }
}
)c";

constexpr char kMain[] = R"c(
int main(void) {
  const int status = RUN(arena, inputs, outputs);
  if (status != 0) {
    SVOD_TEST_PRINT("FAIL: ");
    SVOD_TEST_PRINT(STATUS_TEXT(status));
    SVOD_TEST_PRINT("\n");
    return 1;
  }
  if (wrong_outputs() != 0) return 1;
  SVOD_TEST_PRINT("PASS\n");
  return 0;
}
)c";

class TestbenchWriter {
public:
  TestbenchWriter(const std::string& prefix, const std::string& header,
                  const ImageEntry& entry, const TestVectors& vectors, size_t programs)
      : prefix_(prefix), header_(header), entry_(entry), vectors_(vectors),
        programs_(programs) {}

  std::string write() {
    const std::string macro = macro_prefix(prefix_);
    out_ << "/* Self-test of a packed model: runs it once on the inputs below and says "
            "PASS or FAIL.\n   main returns 0 or 1. Made by svod-pack for the library "
            "declared in "
         << header_ << ". */\n#include \"" << header_ << "\"\n"
         << kParts;
    write_data();
    out_ << "\nstatic union {\n  uint64_t align;\n  unsigned char bytes[" << macro
         << "_ARENA_BYTES + " << macro << "_ARENA_ALIGN];\n} memory;\n"
         << "#define RUN " << prefix_ << "_run\n#define STATUS_TEXT " << prefix_
         << "_status_text\n";
    write_comparison();
    if (programs_ > 0) out_ << "\n#define PROGRAMS " << programs_ << "u" << kCounts;
    std::string main = kMain;
    constexpr std::string_view kPassed = "  SVOD_TEST_PRINT(\"PASS";
    if (programs_ > 0) main.insert(main.find(kPassed), "  print_counts();\n");
    main.replace(main.find("RUN(arena"), 9,
                 "RUN(memory.bytes + (" + macro +
                     "_ARENA_ALIGN - (uintptr_t)memory."
                     "bytes % " +
                     macro + "_ARENA_ALIGN) % " + macro + "_ARENA_ALIGN");
    out_ << main;
    return out_.str();
  }

private:
  void write_words(const std::string& name, const std::vector<std::byte>& bytes) {
    out_ << "static const uint64_t " << name << "[] = {";
    for (size_t at = 0; at < bytes.size() || at == 0; at += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
      out_ << (at % 32 == 0 ? "\n  " : " ") << "0x" << std::hex << word << std::dec
           << "u,";
    }
    out_ << "\n};\n";
  }

  void write_list(const char* type, const char* name, const char* part, size_t count) {
    out_ << "static " << type << " const " << name << "[] = {";
    for (size_t i = 0; i < count; ++i) out_ << part << i << ", ";
    out_ << "0};\n";
  }

  void write_data() {
    out_ << "\n";
    for (size_t i = 0; i < vectors_.inputs.size(); ++i)
      write_words("input" + std::to_string(i), vectors_.inputs[i].bytes);
    for (size_t i = 0; i < vectors_.outputs.size(); ++i) {
      const std::string number = std::to_string(i);
      write_words("expected" + number, vectors_.outputs[i].bytes);
      out_ << "static uint64_t output" << number << "[sizeof expected" << number
           << " / sizeof(uint64_t)];\n";
    }
    write_list("const void*", "inputs", "input", vectors_.inputs.size());
    write_list("void*", "outputs", "output", vectors_.outputs.size());
  }

  bool is_float(size_t i) const {
    const int type = entry_.outputs[i].onnx_type;
    return type == info(DType::F32).onnx || type == info(DType::F64).onnx;
  }

  // Elements of other types are equal bytes.
  void write_output(size_t i) {
    const Tensor& tensor = vectors_.outputs[i];
    const std::string number = std::to_string(i);
    const bool floats = is_float(i);
    const char* type = !floats                      ? "unsigned char"
                       : tensor.dtype == DType::F64 ? "double"
                                                    : "float";
    const size_t count =
        floats ? tensor.bytes.size() / static_cast<size_t>(byte_size(tensor.dtype))
               : tensor.bytes.size();
    out_ << "  for (i = 0; i < " << count << "u; ++i) {\n    const " << type
         << "* found = (const " << type << "*)(const void*)output" << number
         << ";\n    const " << type << "* right = (const " << type
         << "*)(const void*)expected" << number << ";\n    if ("
         << (floats ? "near((double)found[i], (double)right[i])" : "found[i] == right[i]")
         << ") continue;\n    SVOD_TEST_PRINT(\"FAIL: output " << number
         << (floats ? ", element " : ", byte ")
         << "\");\n    print_number(i);\n    SVOD_TEST_PRINT(\"\\n\");\n    wrong = 1;\n"
            "    break;\n  }\n";
  }

  void write_comparison() {
    bool floats = false;
    for (size_t i = 0; i < vectors_.outputs.size(); ++i) floats |= is_float(i);
    if (floats) out_ << kCompareFloats;
    out_ << "\nstatic int wrong_outputs(void) {\n  int wrong = 0;\n  unsigned long i;\n";
    for (size_t i = 0; i < vectors_.outputs.size(); ++i) write_output(i);
    out_ << "  return wrong;\n}\n";
  }

  const std::string &prefix_, &header_;
  const ImageEntry& entry_;
  const TestVectors& vectors_;
  size_t programs_; // to be counted
  std::ostringstream out_;
};

} // namespace

std::string testbench_text(const std::string& prefix, const std::string& header,
                           const ImageEntry& entry, const TestVectors& vectors,
                           size_t programs) {
  return TestbenchWriter(prefix, header, entry, vectors, programs).write();
}

} // namespace svod::packager
