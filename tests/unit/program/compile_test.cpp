// From text to objects: they are the same twice, whatever is bad in a text is a result,
// and a target takes only CPUs that run its code.
#include "compiler/toolchain/compile_all.h"
#include "compiler/toolchain/cpu.h"
#include "compiler/toolchain/inspect.h"
#include "tests/support/sweep.h"
#include "tests/support/toolchain.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace svod;
using namespace svod::toolchain;
using namespace svod::test;

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
  CHECK(with_cpu(target_of("x86-64"), 0, "znver4").levels.front().flags.back() ==
        "-march=znver4");
}

TEST_CASE("a CPU gets the strongest level that it executes, and its own row",
          "[toolchain]") {
  struct Row {
    const char *target, *cpu, *machine;
    int bits;
    bool bytes; // by an instruction of their own
  };
  for (const auto& [alias, cpu, machine, bits, bytes] : {
           Row{"x86-64", "znver4", "zen4", 512, true},
           Row{"x86-64", "znver5", "zen5", 512, true},
           Row{"x86-64", "sapphirerapids", "golden-cove", 512, true},
           Row{"x86-64", "icelake-server", "zen5", 512, true},
           Row{"x86-64", "skylake-avx512", "zen5", 512, false},
           Row{"x86-64", "haswell", "zen4", 256, false},
           Row{"x86-64", "alderlake", "zen4", 256, false},
           Row{"x86-64", "nehalem", "zen4", 128, false},
           Row{"x86-64", "penryn", "zen4", 128, false},
           Row{"x86-64-v3", "znver4", "zen4", 256, false},
           Row{"aarch64", "neoverse-n2", "neoverse-n2", 128, false},
           Row{"aarch64", "cortex-a53", "cortex-a76", 128, false}, // a row of firmware
           Row{"cortex-m4", "cortex-m7", "cortex-m7", 32, false},
       }) {
    INFO(alias << " on " << cpu);
    const Target all = target_of(alias);
    const Target one = with_cpu(all, strongest_level(all, cpu), cpu);
    REQUIRE(one.levels.size() == 1);
    const Level& level = one.levels[0];
    CHECK(level.machine.name == machine);
    CHECK(level.register_bits == bits);
    CHECK(level.has_dot_instruction() == bytes);
  }
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

TEST_CASE("many compiles stay at the memory of one", "[toolchain][sweep]") {
  const Target target = target_of("x86-64-v3");
  Compiler compiler;
  auto compile = [&](int i) {
    return compiler.compile(target, target.levels[0],
                            {"k.cpp", kVectorKernel, {"-DN=" + std::to_string(i)}});
  };
  for (int i = 0; i < 30; ++i) REQUIRE(compile(i).ok);
  const long before = resident_kilobytes();
  const int count = static_cast<int>(test::swept(300, 60));
  for (int i = 0; i < count; ++i) REQUIRE(compile(i).ok);
  CHECK(resident_kilobytes() - before < 100 * count);
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
           Row{"cortex-m4", "cortex-r5", false},
           Row{"cortex-m7", "cortex-m4", false}, // its floats are of FPv4
           Row{"cortex-m33", "cortex-m55", true},
           Row{"cortex-m33", "cortex-m23", false},
           Row{"cortex-m0plus", "cortex-m4", true},
           Row{"armv7", "cortex-a7", true},
           Row{"armv7", "cortex-m4", false},
           Row{"armv7", "cortex-a53", true},
           Row{"armv7", "cortex-a9", false}, // no fused multiply-add
           Row{"x86-64", "znver4", true},
           Row{"x86-64", "penryn", true},
           Row{"x86-64", "i386", false},
           Row{"aarch64", "cortex-a53", true},
           Row{"riscv64", "sifive-u74", true},
           Row{"riscv64", "sifive-e31", false},
           Row{"riscv64", "sifive-s21", false}, // no floating-point registers
           Row{"rv32imac", "sifive-u74", false},
           Row{"rv32imac", "sifive-e31", true},
       }) {
    INFO(target << " on " << cpu << " lacks " << lacks_of(target_of(target), cpu));
    CHECK(is_known_cpu(target_of(target), cpu));
    CHECK(lacks_of(target_of(target), cpu).empty() == runs);
  }
  CHECK(std::ranges::count(known_cpus(target_of("x86-64")), "znver4") == 1);
}
