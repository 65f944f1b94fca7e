// From objects to programs, libraries and archives: what is made runs and holds its
// promises.
#include "compiler/toolchain/data_object.h"
#include "compiler/toolchain/inspect.h"
#include "compiler/toolchain/link.h"
#include "tests/support/toolchain.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>
#include <iostream>

using namespace svod;
using namespace svod::toolchain;
using namespace svod::test;

namespace {

// Programs without libc that end with 7 times the first byte of the data object.
const char* const kData = "extern \"C\" const unsigned char svod_weights[];\n";

std::string program_text(const std::string& target) {
  std::string exit_call;
  if (target == "aarch64")
    exit_call =
        "register long number asm(\"x8\") = 93; register long code asm(\"x0\") = c;"
        "asm volatile(\"svc 0\" : : \"r\"(number), \"r\"(code));";
  else if (target == "armv7")
    exit_call =
        "register long number asm(\"r7\") = 1; register long code asm(\"r0\") = c;"
        "asm volatile(\"svc 0\" : : \"r\"(number), \"r\"(code));";
  else if (target == "riscv64")
    exit_call =
        "register long number asm(\"a7\") = 93; register long code asm(\"a0\") = c;"
        "asm volatile(\"ecall\" : : \"r\"(number), \"r\"(code));";
  else
    exit_call = "asm volatile(\"syscall\" : : \"a\"(60L), \"D\"(c));";
  return std::string(kData) +
         "extern \"C\" [[noreturn]] void _start() { long c = 7 * "
         "*(const volatile unsigned char*)svod_weights;" +
         exit_call + " __builtin_unreachable(); }";
}

LinkResult link_program(const std::string& target_name, const std::string& output,
                        size_t weight_bytes = 1000) {
  const std::vector<std::byte> object = compiled(target_name, program_text(target_name));
  const std::vector<std::byte> bytes(weight_bytes, std::byte{6});
  const Target target = target_of(target_name);
  const MemoryFile data = make_data_object(
      target, {".rodata.svod_weights", "svod_weights"}, std::span(bytes));
  return link_executable(target, {{object}, {&data}}, output);
}

} // namespace

TEST_CASE("a linked program runs and keeps its promises", "[toolchain]") {
  Folder folder;
  const std::string target = GENERATE("x86-64", "aarch64", "armv7", "riscv64");
  INFO(target);
  const std::string output = folder / "program";
  LinkResult result = link_program(target, output);
  INFO(result.diagnostics);
  REQUIRE(result.ok);
  const std::optional<ProgramFacts> facts = inspect_program(output);
  REQUIRE(facts);
  CHECK(broken_promise(*facts) == "");
  CHECK(std::filesystem::file_size(output) < 20000);

  const std::string again = folder / "again";
  REQUIRE(link_program(target, again).ok);
  CHECK(read_file(output) == read_file(again));

  std::vector<std::string> command{output};
  const std::string host = default_target().alias;
  if (target != host) {
    const std::string emulator =
        "qemu-" + (target == "armv7" ? std::string("arm") : target) + "-static";
    if (!has_program(emulator)) {
      WARN("not run: " << emulator << " is not installed");
      return;
    }
    command.insert(command.begin(), emulator);
  }
  CHECK(run_program(command) == 42);
}

TEST_CASE("a program with large weights is laid out for large pages", "[toolchain]") {
  Folder folder;
  const std::string target = GENERATE("x86-64", "aarch64", "riscv64", "i686");
  const std::string output = folder / "program";
  std::ofstream(output).close(); // as a pack reserves its name
  const LinkResult result = link_program(target, output, 5 << 20);
  INFO(target << ": " << result.diagnostics);
  REQUIRE(result.ok);
  CHECK(std::filesystem::file_size(output) < (5 << 20) + 150000);
  const std::string text = read_file(output);
  const bool wide = text[4] == 2; // ELF of 64 bits
  const size_t word = wide ? 8 : 4;
  const auto field = [&](size_t at) {
    uint64_t value = 0;
    std::memcpy(&value, text.data() + at, word);
    return value;
  };
  size_t segment = field(wide ? 32 : 28); // e_phoff; the first PT_LOAD
  while (text[segment] != 1) segment += wide ? 56 : 32;
  CHECK(field(segment + word) == 0);
  CHECK(field(segment + 2 * word) == 0);
  CHECK(field(segment + (wide ? 48 : 28)) == 2 << 20);
  if (target == default_target().alias) CHECK(run_program({output}) == 42);
}

TEST_CASE("a program that needs relocation or a missing symbol is refused",
          "[toolchain]") {
  Folder folder;
  const Target target = target_of("x86-64");
  const auto pointer = compiled("x86-64", "int x; int* volatile p = &x;"
                                          "extern \"C\" void _start() { *p = 1; }");
  LinkResult moved = link_executable(target, {{pointer}, {}}, folder / "a");
  CHECK_FALSE(moved.ok);
  CHECK(moved.diagnostics.find("1 relocations at start") != std::string::npos);
  const auto missing = compiled("x86-64", "void other(); extern \"C\" void _start() "
                                          "{ other(); }");
  LinkResult undefined = link_executable(target, {{missing}, {}}, folder / "b");
  CHECK_FALSE(undefined.ok);
  CHECK(undefined.diagnostics.find("undefined hidden symbol: other()") !=
        std::string::npos);
  CHECK_FALSE(link_executable(target_of("cortex-m4"), {{missing}, {}}, folder / "c").ok);
}

TEST_CASE("a shared library needs nothing and exports its API", "[toolchain]") {
  Folder folder;
  const auto object =
      compiled("x86-64", "extern \"C\" __attribute__((visibility(\"default\"))) "
                         "int infer(int x) { return x + 1; } int inner() { return 1; }");
  REQUIRE(
      link_shared(target_of("x86-64"), {{object}, {}}, "libx.so", folder / "x.so").ok);
  const std::optional<ProgramFacts> facts = inspect_program(folder / "x.so");
  REQUIRE(facts);
  CHECK(broken_promise(*facts) == "");
}

TEST_CASE("joined objects expose their API only", "[toolchain]") {
  const std::string name = GENERATE("x86-64", "cortex-m4", "rv32imac");
  const Target target = target_of(name);
  const auto a = compiled(name, "extern \"C\" { int inner(); extern const int weights;"
                                "int run() { return inner() + weights; } }");
  const auto b = compiled(name, "extern \"C\" int inner() { return 1; }");
  ObjectResult joined = partial_link(target, {{a, b}, {}});
  INFO(joined.diagnostics);
  REQUIRE(joined.ok);
  const std::vector<std::string> keep{"run"};
  ObjectResult narrow =
      localize(joined.object, keep, {{"run", "infer_run"}, {"weights", "infer_weights"}});
  INFO(narrow.diagnostics);
  REQUIRE(narrow.ok);
  std::string symbols;
  for (const SymbolFact& symbol : symbols_of(narrow.object))
    symbols += (symbol.global ? " global " : " local ") +
               std::string(symbol.defined ? "" : "undefined ") + symbol.name;
  CHECK(symbols == " global infer_run global undefined infer_weights local inner");
  CHECK(localize(joined.object, keep, {}).object ==
        localize(joined.object, keep, {}).object);
}

TEST_CASE("a data object joins the code of every ELF target", "[toolchain]") {
  const std::string name =
      GENERATE("x86-64", "aarch64", "armv7", "riscv64", "cortex-m0plus", "cortex-m4",
               "cortex-m55", "rv32imac");
  INFO(name);
  const auto code = compiled(
      name, std::string(kData) + "extern \"C\" int run() { return svod_weights[0]; }");
  const std::vector<std::byte> bytes(300, std::byte{1});
  const MemoryFile data =
      make_data_object(target_of(name), {".rodata.w", "svod_weights"}, std::span(bytes));
  ObjectResult joined = partial_link(target_of(name), {{code}, {&data}});
  INFO(joined.diagnostics);
  REQUIRE(joined.ok);
  const std::vector<SymbolFact> symbols = symbols_of(joined.object);
  CHECK(std::ranges::find(symbols, SymbolFact{"svod_weights", true, true}) !=
        symbols.end());
  CHECK(joined.diagnostics == "");
}

TEST_CASE("what is linked around a room is the program once that is filled",
          "[toolchain]") {
  Folder folder;
  const std::string name = GENERATE("x86-64", "aarch64", "armv7", "riscv64");
  const size_t size = GENERATE(1000, 5'000'000);
  INFO(name << ", " << size);
  const std::string whole = folder / "whole", filled = folder / "filled";
  const std::string section = ".rodata.svod_weights", symbol = "svod_weights";
  const Target target = target_of(name);
  // A room lies among constants.
  const std::vector<std::byte> object =
      compiled(name, program_text(name) + "extern \"C\" [[gnu::used, gnu::retain]] "
                                          "const int svod_beside[3] = {1, 2, 3};");
  const MemoryFile room = make_room_object(target, {section, symbol}, size);
  CHECK(room.size() < 2000);
  const std::vector<std::byte> bytes(size, std::byte{6});
  const MemoryFile data = make_data_object(target, {section, symbol}, std::span(bytes));
  REQUIRE(link_executable(target, {{object}, {&data}}, whole).ok);
  const LinkResult result =
      link_executable(target, {{object}, {&room}, Room{section, size}}, filled);
  INFO(result.diagnostics);
  REQUIRE(result.ok);
  std::fstream file(filled, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(result.room_at));
  file << std::string(size, '\6');
  file.close();
  const bool same = read_file(filled) == read_file(whole);
  CHECK(same);
  CHECK(std::filesystem::status(filled).permissions() ==
        std::filesystem::status(whole).permissions());
}

TEST_CASE("an archive links into a program of the system's compiler", "[toolchain]") {
  if (!default_target().is_x86() || !has_program("cc")) {
    WARN("not run: needs cc on x86-64");
    return;
  }
  Folder folder;
  const auto object =
      compiled("x86-64",
               std::string(kData) + "extern \"C\" int run() { return svod_weights[1]; }");
  const std::vector<std::byte> bytes{std::byte{1}, std::byte{23}};
  const MemoryFile data = make_data_object(
      target_of("x86-64"), {".rodata.w", "svod_weights"}, std::span(bytes));
  const ArchiveMember members[] = {{"code.o", object}, {"weights.o", {}, &data}};
  REQUIRE(write_archive(folder / "libx.a", members).ok);
  REQUIRE(write_archive(folder / "liby.a", members).ok);
  CHECK(read_file(folder / "libx.a") == read_file(folder / "liby.a"));
  std::ofstream(folder / "main.c") << "int run(void); int main(void) { return run(); }\n";
  REQUIRE(run_program({"cc", "-Wall", "-Werror", "-Wl,--fatal-warnings",
                       folder / "main.c", folder / "libx.a", "-o", folder / "main"}) ==
          0);
  CHECK(run_program({folder / "main"}) == 23);
}

TEST_CASE("large data is reached from its end", "[toolchain]") {
  if (!default_target().is_x86() || !has_program("cc")) {
    WARN("not run: needs cc on x86-64");
    return;
  }
  Folder folder;
  const auto object = compiled("x86-64", "extern \"C\" const unsigned char w_end[];\n"
                                         "extern \"C\" int run() {\n"
                                         "  return (w_end - 3000)[1] + w_end[-1]; }");
  std::vector<std::byte> bytes(3000, std::byte{0});
  bytes[1] = std::byte{20}, bytes[2999] = std::byte{3};
  const MemoryFile data = make_data_object(
      target_of("x86-64"), {".lrodata.w", "w", 64, true}, std::span(bytes));
  const ArchiveMember members[] = {{"code.o", object}, {"weights.o", {}, &data}};
  REQUIRE(write_archive(folder / "libx.a", members).ok);
  std::ofstream(folder / "main.c") << "int run(void); int main(void) { return run(); }\n";
  REQUIRE(run_program({"cc", "-Wall", "-Werror", "-Wl,--fatal-warnings",
                       folder / "main.c", folder / "libx.a", "-o", folder / "main"}) ==
          0);
  CHECK(run_program({folder / "main"}) == 23);
  CHECK(run_program(
            {"sh", "-c",
             "readelf -SW " + (folder / "main") + " | grep -q ' AMl .*\\| Al '"}) == 0);
}

TEST_CASE("a data object streams without a copy", "[toolchain]") {
  const Target target = target_of("x86-64");
  const std::vector<std::byte> piece(1 << 20, std::byte{5});
  const long before = resident_kilobytes();
  const MemoryFile data =
      make_data_object(target, {".rodata.w", "w"}, [&](const ByteSink& sink) {
        for (int i = 0; i < 200; ++i) sink(piece);
      });
  CHECK(data.size() > 200u << 20);
  CHECK(resident_kilobytes() - before < 5000);
}
