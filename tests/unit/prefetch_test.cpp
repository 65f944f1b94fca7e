// Weights that come from memory are fetched one tile of panels ahead, resident ones are
// not.
#include "compiler/pipeline.h"
#include "tests/support/known_product.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace svod;

namespace {

struct Product {
  ScheduledKernel kernel;
  std::string text;
  bool fetches() const { return text.find("fetch(a") != std::string::npos; }
};

// The kernel of y = x w, x[rows, depth] and w[depth, columns], with 512-bit vectors.
Product product(int64_t rows, int64_t depth, int64_t columns) {
  CompileOptions options;
  options.target = *find_target("x86-64-v4");
  const codegen::Kernels kernels =
      compile(test::known_product(rows, depth, columns), options);
  const auto& programs = kernels.plan.programs;
  const auto longest = std::ranges::max_element(programs, {}, &Kernel::flops);
  return {*longest, codegen::kernel_text(*longest, 0).text};
}

} // namespace

TEST_CASE("the next weight panels are fetched ahead", "[kernels]") {
  const Product p = product(64, 96, 1024);
  const LevelSchedule& how = p.kernel.levels[0];
  REQUIRE(how.stages[0].weights.size() == 1);
  const WeightPrefetch& ahead = how.stages[0].weights[0];
  CHECK(ahead.panel_elements == 96 * 16);
  const int panels = tile_count(how.tile, ahead.panels);
  CHECK(panels > 1);
  REQUIRE(ahead.sweep != ahead.panels);
  // Each sweep fetches its share of them: the first line says which are left.
  const int64_t sweeps = tile_trips(p.kernel, how.tile, ahead.sweep),
                each = (panels + sweeps - 1) / sweeps;
  CHECK(p.text.find(" < " + std::to_string((panels + each - 1) / each) + " ? (" +
                    std::to_string(panels) + " + ") != std::string::npos);
  CHECK(p.fetches());
}

TEST_CASE("resident weights are not fetched ahead", "[kernels]") {
  const Product p = product(64, 96, 128);
  CHECK(p.kernel.levels[0].stages[0].weights.empty());
  CHECK(!p.fetches());
}

TEST_CASE("long panels that are met once, by few rows, are not fetched ahead",
          "[kernels]") {
  CHECK(!product(1, 2048, 1024).fetches());
  CHECK(product(8, 1024, 1024).fetches());
}
