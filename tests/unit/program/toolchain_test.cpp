// The toolchain from text to running program: what it makes runs, holds its promises, is
// the same twice, and survives bad input.
#include "compiler/support/target.h"
#include "compiler/toolchain/compile_all.h"
#include "compiler/toolchain/cpu.h"
#include "compiler/toolchain/data_object.h"
#include "compiler/toolchain/inspect.h"
#include "compiler/toolchain/link.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>

#include <sys/wait.h>
#include <unistd.h>

using namespace svod;
using namespace svod::toolchain;
namespace fs = std::filesystem;

namespace {

// A folder that goes away with the test.
struct Folder {
  Folder() {
    std::string name = (fs::temp_directory_path() / "svod-test-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()));
    path = name;
  }
  ~Folder() { fs::remove_all(path); }
  std::string operator/(const std::string& name) const { return (path / name).string(); }
  fs::path path;
};

Target target_of(const std::string& name) {
  std::optional<Target> target = find_target(name);
  REQUIRE(target);
  return *target;
}

std::vector<std::byte> compiled(const std::string& target_name, const std::string& text,
                                const std::string& file = "test.cpp") {
  const Target target = target_of(target_name);
  CompileResult result =
      Compiler().compile(target, target.levels.front(), {file, text, {}});
  INFO(result.diagnostics);
  REQUIRE(result.ok);
  return result.output;
}

// What a program says when it ends; -1 when it could not be started.
int run_program(const std::vector<std::string>& command) {
  const pid_t child = fork();
  if (child == 0) {
    std::vector<char*> args;
    for (const std::string& word : command)
      args.push_back(const_cast<char*>(word.c_str()));
    args.push_back(nullptr);
    execvp(args[0], args.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool has_program(const std::string& name) {
  return run_program({"sh", "-c", "command -v " + name + " >/dev/null"}) == 0;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

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

const char* const kVectorKernel = R"(
typedef float V __attribute__((ext_vector_type(16)));
extern "C" void kernel(const float* a, const float* b, float* c) {
  V sum[6] = {};
  for (int k = 0; k < 384; ++k)
    for (int i = 0; i < 6; ++i) sum[i] += *(const V*)(b + 16 * k) * a[6 * k + i];
  for (int i = 0; i < 6; ++i) *(V*)(c + 16 * i) = __builtin_elementwise_max(sum[i], (V)0);
})";

LinkResult link_program(const std::string& target_name, const std::string& output,
                        size_t weight_bytes = 1000) {
  const std::vector<std::byte> object = compiled(target_name, program_text(target_name));
  const std::vector<std::byte> bytes(weight_bytes, std::byte{6});
  const Target target = target_of(target_name);
  const MemoryFile data = make_data_object(
      target, {".rodata.svod_weights", "svod_weights"}, std::span(bytes));
  return link_executable(target, {{object}, {&data}}, output);
}

long resident_kilobytes() {
  std::ifstream in("/proc/self/statm");
  long pages = 0, resident = 0;
  in >> pages >> resident;
  return resident * 4;
}

} // namespace

TEST_CASE("every target has levels and compiles a vector kernel", "[toolchain]") {
  const std::string name = GENERATE(from_range(target_aliases()));
  INFO(name);
  const Target target = target_of(name);
  REQUIRE(!target.levels.empty());
  for (const Level& level : target.levels) {
    CompileResult result =
        Compiler().compile(target, level, {"k.cpp", kVectorKernel, {}});
    INFO(level.name << ": " << result.diagnostics);
    CHECK(result.ok);
    CHECK(result.output.size() > 200);
  }
  CHECK_FALSE(find_target("no-such-target"));
  CHECK(find_target(target.triple)->triple == target.triple);
}

TEST_CASE("native has one level that this machine runs", "[toolchain]") {
  CHECK(target_of("native").levels.size() == 1);
  CHECK(with_cpu(target_of("x86-64"), "znver4").levels.front().flags.back() ==
        "-march=znver4");
}

TEST_CASE("a level's assembly uses its registers", "[toolchain]") {
  const Target target = target_of("x86-64");
  for (const Level& level : target.levels) {
    CompileResult result =
        Compiler().compile(target, level, {"k.cpp", kVectorKernel, {}}, Emit::Assembly);
    const std::string text(reinterpret_cast<const char*>(result.output.data()),
                           result.output.size());
    CHECK((text.find("zmm") != std::string::npos) == (level.register_bits == 512));
    CHECK((text.find("ymm") != std::string::npos) == (level.register_bits == 256));
  }
}

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
  CHECK(fs::file_size(output) < 20000);

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
  const std::string target = GENERATE("x86-64", "aarch64", "riscv64");
  const std::string output = folder / "program";
  std::ofstream(output).close(); // as a pack reserves its name
  const LinkResult result = link_program(target, output, 5 << 20);
  INFO(target << ": " << result.diagnostics);
  REQUIRE(result.ok);
  CHECK(fs::file_size(output) < (5 << 20) + 150000);
  const std::string text = read_file(output);
  const auto field = [&](size_t at) {
    uint64_t value = 0;
    std::memcpy(&value, text.data() + at, 8);
    return value;
  };
  size_t segment = field(32); // e_phoff; the first PT_LOAD
  while (text[segment] != 1) segment += 56;
  CHECK(field(segment + 8) == 0);
  CHECK(field(segment + 16) == 0);
  CHECK(field(segment + 48) == 2 << 20);
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

TEST_CASE("compiling is deterministic across calls and threads", "[toolchain]") {
  const Target target = target_of("x86-64");
  std::vector<CompileJob> jobs;
  for (int i = 0; i < 12; ++i)
    for (const Level& level : target.levels)
      jobs.push_back({&level,
                      {"k" + std::to_string(i) + ".cpp",
                       kVectorKernel,
                       {"-Dkernel=kernel" + std::to_string(i / 2)}}});
  Compiler compiler;
  const CompileAllResult one = compile_all(compiler, target, jobs, nullptr, 1);
  const CompileAllResult four = compile_all(compiler, target, jobs, nullptr, 4);
  REQUIRE(one.ok());
  CHECK(one.compiled == 6 * target.levels.size());
  CHECK(one.reused == 6 * target.levels.size());
  for (size_t i = 0; i < jobs.size(); ++i)
    CHECK(one.results[i].output == four.results[i].output);
}

TEST_CASE("a beginning that sources share is parsed once, to the same objects",
          "[toolchain]") {
  const Target target = target_of("x86-64");
  // Unlike any other text of this process: the first uses parse it whole.
  const std::string prelude = "namespace shared_beginning {\n"
                              "template <class T> T twice(T x) { return x + x; }\n"
                              "inline int unused(int x) { return x; }\n}\n";
  const std::string own =
      "extern \"C\" float f(float x) { return shared_beginning::twice(x) * 3; }\n";
  const Compiler compiler;
  Source source{"k.cpp", prelude + own, {}, 0, true};
  const CompileResult alone = compiler.compile(target, target.levels[0], source);
  REQUIRE(alone.ok);
  source.prelude_bytes = prelude.size();
  for (int use = 0; use < 6; ++use)
    CHECK(compiler.compile(target, target.levels[0], source).output == alone.output);
  // What is wrong keeps its line, and what does more than compute is still found.
  source.text = prelude + "int g() { return x; }\n";
  CHECK(compiler.compile(target, target.levels[0], source)
            .diagnostics.find(":5:18: error: use of undeclared identifier 'x'") !=
        std::string::npos);
  source.text = prelude + "int puts(const char*);\nint f() { return puts(0); }\n";
  CHECK(compiler.compile(target, target.levels[0], source)
            .diagnostics.find("6:18: call of 'puts'") != std::string::npos);
}

TEST_CASE("errors and crashes of the compiler are results", "[toolchain]") {
  const Target target = target_of("x86-64");
  Compiler compiler;
  const Level& level = target.levels[0];
  CompileResult bad =
      compiler.compile(target, level, {"k.cpp", "int f() { return x; }", {}});
  CHECK_FALSE(bad.ok);
  CHECK(bad.diagnostics.find("undeclared identifier 'x'") != std::string::npos);
  CHECK_FALSE(compiler.compile(target, level, {"k.cpp", "#include <stdio.h>", {}}).ok);
  CHECK_FALSE(
      compiler.compile(target, level, {"k.cpp", "#include \"/etc/passwd\"", {}}).ok);
  CompileResult crash = compiler.compile(
      target, level, {"k.cpp", "#pragma clang __debug llvm_fatal_error\n", {}});
  CHECK_FALSE(crash.ok);
  CHECK(crash.diagnostics.find("LLVM gave up") != std::string::npos);
  CHECK(compiler.compile(target, level, {"k.cpp", kVectorKernel, {}}).ok);
  CHECK(compiler.compile(target, level, {"k.c", "int f(void) { return 1; }", {}}).ok);
}

// The test runner takes the signals at the start of each test, LLVM at its first compile:
// this one must be the first of its process.
TEST_CASE("a trap inside the compiler is a result", "[.first]") {
  const Target target = target_of("x86-64");
  Compiler compiler;
  CompileResult trap = compiler.compile(
      target, target.levels[0], {"k.cpp", "#pragma clang __debug parser_crash\n", {}});
  CHECK_FALSE(trap.ok);
  CHECK(trap.diagnostics.find("LLVM gave up: signal") != std::string::npos);
  CompileResult next =
      compiler.compile(target, target.levels[0], {"k.cpp", kVectorKernel, {}});
  INFO(next.diagnostics);
  CHECK(next.ok);
}

TEST_CASE("a process survives a trap inside the compiler", "[toolchain]") {
  CHECK(run_program({"/proc/self/exe", "a trap inside the compiler is a result"}) == 0);
}

TEST_CASE("headers given to the compiler can be included", "[toolchain]") {
  const Target target = target_of("x86-64");
  const SourceFile header{"runtime_stub/x.h",
                          "#include <stdint.h>\ntypedef int32_t number;"};
  Compiler compiler(std::vector<SourceFile>{header});
  CompileResult result = compiler.compile(
      target, target.levels[0],
      {"k.cpp", "#include \"runtime_stub/x.h\"\nnumber f() { return 1; }", {}});
  INFO(result.diagnostics);
  CHECK(result.ok);
  CHECK(compiler.identity() != Compiler().identity());
}

TEST_CASE("300 compiles stay at the memory of one", "[toolchain]") {
  const Target target = target_of("x86-64-v3");
  Compiler compiler;
  auto compile = [&](int i) {
    return compiler.compile(target, target.levels[0],
                            {"k.cpp", kVectorKernel, {"-DN=" + std::to_string(i)}});
  };
  for (int i = 0; i < 30; ++i) REQUIRE(compile(i).ok);
  const long before = resident_kilobytes();
  for (int i = 0; i < 300; ++i) REQUIRE(compile(i).ok);
  CHECK(resident_kilobytes() - before < 30000);
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

// Beyond 2 GiB only the end of the weights is near the code (tried with 2.3 GiB by hand).
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

TEST_CASE("the cache keeps, refuses damage and forgets the oldest", "[toolchain]") {
  Folder folder;
  const ObjectCache cache(folder.path);
  const std::vector<std::byte> value(1000, std::byte{9});
  const Digest a = sha256("a"), b = sha256("b");
  CHECK_FALSE(cache.load(a));
  REQUIRE(cache.store(a, value));
  REQUIRE(cache.store(b, value));
  CHECK(cache.load(a) == value);
  CHECK(cache.stats().entries == 2);

  const fs::path path = folder.path / "obj" / a.hex().substr(0, 2) / a.hex();
  const fs::path other = folder.path / "obj" / b.hex().substr(0, 2) / b.hex();
  const std::string good = read_file(path.string());
  SECTION("any flipped byte or cut is a miss, and the entry goes") {
    for (size_t at : {0ul, 9ul, 20ul, 48ul, good.size() - 1}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 1);
      std::ofstream(path, std::ios::binary) << bad;
      CHECK_FALSE(cache.load(a));
      CHECK_FALSE(fs::exists(path));
    }
    for (size_t size : {0ul, 10ul, 48ul, good.size() - 1}) {
      std::ofstream(path, std::ios::binary) << good.substr(0, size);
      CHECK_FALSE(cache.load(a));
    }
    std::ofstream(path, std::ios::binary) << good << "x";
    CHECK_FALSE(cache.load(a));
  }
  SECTION("the least used goes first") {
    fs::last_write_time(path, fs::last_write_time(path) - std::chrono::hours(2));
    fs::last_write_time(other, fs::last_write_time(other) - std::chrono::hours(1));
    REQUIRE(cache.load(a)); // now the newest
    CHECK(cache.collect(1500).entries == 1);
    CHECK(cache.load(a));
    CHECK_FALSE(cache.load(b));
    CHECK(cache.collect(0, true).entries == 1);
    CHECK(cache.stats().entries == 1);
    CHECK(cache.collect(0).entries == 1);
    CHECK(cache.stats().bytes == 0);
  }
  SECTION("a folder that cannot be written is no error") {
    CHECK_FALSE(ObjectCache("/proc/nowhere").store(a, value));
    CHECK_FALSE(ObjectCache("/proc/nowhere").load(a));
  }
}

TEST_CASE("a second compile comes from the cache, per flags and text", "[toolchain]") {
  Folder folder;
  const ObjectCache cache(folder.path);
  const Target target = target_of("x86-64");
  std::vector<CompileJob> jobs{{&target.levels[0], {"a.cpp", kVectorKernel, {}}},
                               {&target.levels[1], {"a.cpp", kVectorKernel, {}}}};
  Compiler compiler;
  const CompileAllResult first = compile_all(compiler, target, jobs, &cache);
  const CompileAllResult second = compile_all(compiler, target, jobs, &cache);
  CHECK(first.compiled == 2);
  CHECK(second.compiled == 0);
  CHECK(first.results[1].output == second.results[1].output);
  jobs[0].source.flags = {"-DX"};
  jobs[1].source.text += " ";
  CHECK(compile_all(compiler, target, jobs, &cache).compiled == 2);
  jobs[0].source.text = "error";
  const CompileAllResult bad = compile_all(compiler, target, jobs, &cache);
  CHECK_FALSE(bad.ok());
  CHECK(bad.diagnostics().starts_with("a.cpp for x86-64-v2:\n"));
}

TEST_CASE("emitted text that does more than compute is refused", "[toolchain]") {
  const Target target = target_of("x86-64");
  const std::string calls = "int puts(const char*);\nint f() { return puts(0); }";
  std::vector<CompileJob> jobs{{&target.levels[0], {"a.cpp", calls, {}, 0, true}}};
  const CompileAllResult bad = compile_all(Compiler(), target, jobs);
  CHECK_FALSE(bad.ok());
  CHECK(bad.diagnostics().find("2:18: call of 'puts'") != std::string::npos);
  jobs[0].source.only_computes = false;
  CHECK(compile_all(Compiler(), target, jobs).ok());
}

TEST_CASE("a file in memory keeps its bytes when it outgrows memory", "[toolchain]") {
  MemoryFile file("test", 1000);
  std::vector<std::byte> expected;
  for (int part = 0; part < 5; ++part) { // 600 bytes each: the second is over the limit
    const std::vector<std::byte> bytes(600, std::byte(part + 1));
    file.append(bytes);
    expected.insert(expected.end(), bytes.begin(), bytes.end());
  }
  file.write_at(100, std::vector<std::byte>(2, std::byte(9)));
  std::fill_n(expected.begin() + 100, 2, std::byte(9));
  const MemoryFile moved = std::move(file);
  CHECK(moved.size() == expected.size());
  std::ifstream in(moved.path(), std::ios::binary);
  const std::string read{std::istreambuf_iterator<char>(in), {}};
  REQUIRE(read.size() == expected.size());
  CHECK(std::memcmp(read.data(), expected.data(), read.size()) == 0);
}

TEST_CASE("a CPU is for a target when it runs the target's code", "[toolchain]") {
  struct Row {
    const char *target, *cpu;
    bool runs;
  };
  for (const auto& [target, cpu, runs] : {
           Row{"cortex-m4", "cortex-m0", false},
           Row{"cortex-m4", "cortex-m3", false},
           Row{"cortex-m4", "cortex-m7", true},
           Row{"cortex-m4", "cortex-m33", true},
           Row{"cortex-m4", "cortex-a7", false},
           Row{"cortex-m33", "cortex-m55", true},
           Row{"cortex-m33", "cortex-m23", false},
           Row{"cortex-m0plus", "cortex-m4", true},
           Row{"armv7", "cortex-a7", true},
           Row{"armv7", "cortex-m4", false},
           Row{"armv7", "cortex-a53", true},
           Row{"x86-64", "znver4", true},
           Row{"x86-64", "penryn", true},
           Row{"x86-64", "i386", false},
           Row{"aarch64", "cortex-a53", true},
           Row{"riscv64", "sifive-u74", true},
           Row{"riscv64", "sifive-e31", false},
           Row{"rv32imac", "sifive-u74", false},
           Row{"rv32imac", "sifive-e31", true},
       }) {
    INFO(target << " on " << cpu << " lacks " << lacks_of(target_of(target), cpu));
    CHECK(is_known_cpu(target_of(target), cpu));
    CHECK(lacks_of(target_of(target), cpu).empty() == runs);
  }
  CHECK(std::ranges::count(known_cpus(target_of("x86-64")), "znver4") == 1);
}
