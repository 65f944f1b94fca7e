// Weights that come from memory are fetched one tile of panels ahead, resident ones are
// not.
#include "compiler/codegen/kernel_emitter.h"
#include "compiler/pipeline.h"
#include "tests/support/known_product.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <regex>

using namespace svod;

// The text of the kernel of y = x w, x[rows, depth] and w[depth, columns].
static std::string product_text(int64_t rows, int64_t depth, int64_t columns) {
  Hooks hooks;
  hooks.target = *find_target("x86-64-v4");
  const Kernels kernels = compile(test::known_product(rows, depth, columns), hooks);
  const auto& programs = kernels.plan.programs;
  const auto product_kernel = std::ranges::max_element(programs, {}, &Kernel::flops);
  return KernelEmitter(*product_kernel, hooks.target.levels[0]).text();
}

TEST_CASE("the next weight panels are fetched ahead", "[kernels]") {
  const std::string text = product_text(64, 96, 1024);
  // const iptr n2 = n1 < SWEEPS ? (PANELS + n1 * EACH) * ELEMENTS : 0;
  std::smatch match;
  REQUIRE(std::regex_search(
      text, match, std::regex(R"(< (\d+) \? \((\d+) \+ n\d+ \* (\d+)\) \* (\d+) : 0)")));
  const int64_t sweeps = std::stoll(match[1]), panels = std::stoll(match[2]),
                each = std::stoll(match[3]), elements = std::stoll(match[4]);
  CHECK(elements == 96 * 16);
  CHECK(panels > 1);
  CHECK(sweeps * each >= panels);
  CHECK((sweeps - 1) * each < panels);
  const std::string after = match.suffix();
  CHECK(std::regex_search(after, std::regex(R"(fetch\(a\d+, [^;]*x\d+ \* 16 \+ n\d+)")));
}

TEST_CASE("resident weights are not fetched ahead", "[kernels]") {
  CHECK(product_text(64, 96, 128).find("fetch(") == std::string::npos);
}

TEST_CASE("long panels that are met once, by few rows, are not fetched ahead",
          "[kernels]") {
  CHECK(product_text(1, 2048, 1024).find("fetch(") == std::string::npos);
  CHECK(product_text(8, 1024, 1024).find("fetch(") != std::string::npos);
}
