// Loops that keep vectors in the stack frame are found in machine code, and the matrix
// products of every level of a target are none.
#include "compiler/pipeline.h"
#include "compiler/toolchain/compile.h"
#include "compiler/toolchain/spills.h"
#include "tests/support/known_product.h"

#include <catch2/catch.hpp>

using namespace svod;
using namespace svod::toolchain;

// Adds up rows of x times numbers of w in `sums` accumulators of 16 floats.
static std::string sum_text(int sums) {
  std::string text = "typedef float V __attribute__((vector_size(64)));\n"
                     "extern \"C\" void f(const V* x, const float* w, V* y, long n) {\n";
  for (int i = 0; i < sums; ++i) text += "V s" + std::to_string(i) + " = {};\n";
  text += "for (long k = 0; k < n; ++k) { const V v = x[k];\n";
  for (int i = 0; i < sums; ++i) {
    const std::string number = std::to_string(i);
    text += 's' + number + " += v * w[n * " + number + "];\n";
  }
  text += "++w; }\n";
  for (int i = 0; i < sums; ++i)
    text += "y[" + std::to_string(i) + "] = s" + std::to_string(i) + ";\n";
  return text + "}\n";
}

static SpillFacts facts_of(const std::string& text, const char* alias,
                           const std::vector<std::string>& flags = {}) {
  const auto target = find_target(alias);
  REQUIRE(target);
  Source source;
  source.text = text;
  source.flags = flags;
  const CompileResult result = Compiler().compile(*target, target->levels.back(), source);
  INFO(result.diagnostics);
  REQUIRE(result.ok);
  return spill_facts(*target, result.output);
}

TEST_CASE("accumulators beyond the registers are found as spills", "[toolchain]") {
  const SpillFacts few = facts_of(sum_text(20), "x86-64-v4"),
                   many = facts_of(sum_text(40), "x86-64-v4");
  CHECK(few.loops == 1);
  CHECK(few.spilling == 0);
  CHECK(many.loops == 1);
  CHECK(many.spilling == 1);
  CHECK(many.accesses >= 8);
  CHECK(facts_of(sum_text(20), "x86-64-v3").spilling == 1);
}

TEST_CASE("matrix products keep their tiles in registers", "[toolchain][kernels]") {
  for (const char* alias : {"x86-64-v2", "x86-64-v3", "x86-64-v4"})
    for (auto [rows, depth, columns] : {std::array<int64_t, 3>{128, 96, 384},
                                        {16, 256, 256},
                                        {49, 128, 128},
                                        {196, 64, 48}}) {
      CompileOptions options;
      options.target = *find_target(alias);
      const codegen::Kernels kernels =
          compile(test::known_product(rows, depth, columns), options);
      uint64_t loops = 0;
      for (const codegen::KernelSource& kernel : kernels.sources) {
        const SpillFacts facts = facts_of(kernel.text, alias, kernel.flags);
        INFO(alias << ", " << rows << " x " << depth << " x " << columns);
        CHECK(facts.spilling == 0);
        loops += facts.loops;
      }
      CHECK(loops > 0);
    }
}
