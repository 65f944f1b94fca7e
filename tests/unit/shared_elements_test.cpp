// Products whose common factor is read as registers of four steps, on levels whose
// multiply-add takes an element of a register.
#include "compiler/fuse.h"
#include "compiler/kernel/shared_elements.h"
#include "compiler/kernel/text.h"
#include "compiler/pipeline.h"
#include "tests/support/check_kernels.h"
#include "tests/support/known_product.h"
#include "tests/support/random_tensor.h"
#include "tests/support/text_for.h"

#include <catch2/catch.hpp>

using namespace svod;
using namespace svod::test;

namespace {

// The kernel of y = x w, x[rows, depth] and w[depth, columns].
ScheduledKernel product(int64_t rows, int64_t depth, int64_t columns,
                        const char* target) {
  const FusedGraph fused =
      fuse(known_product(rows, depth, columns), *find_target(target), true);
  REQUIRE(fused.kernels.size() == 1);
  return fused.kernels[0];
}

StageSchedule first_stage(const ScheduledKernel& k, const Level& level) {
  return optimize::schedule_kernel(k, level).stages[0];
}

// This machine's level, as if it had such an instruction: the text is right anywhere.
std::optional<Target> with_elements(const char* name) {
  std::optional<Target> target = target_for({name});
  if (target) target->levels[0].multiply_add = MultiplyAdd::ByElement;
  return target;
}

size_t kernels_with_elements(const Graph& graph, const Target& target) {
  CompileOptions options;
  options.target = target;
  size_t count = 0;
  for (const codegen::KernelSource& source : compile(graph, options).sources)
    count += source.text.find("const Vector<f32, 4> t") != std::string::npos;
  return count;
}

} // namespace

TEST_CASE("products take elements of registers where an instruction does", "[elements]") {
  const Target arm = *find_target("aarch64");
  const ScheduledKernel k = product(40, 64, 64, "aarch64");
  const LevelSchedule how = optimize::schedule_kernel(k, arm.levels[0]);
  CHECK(how.stages[0].elements == kElements);
  // Five positions leave room for their registers: 20 sums, 5 of x and 4 of weights.
  CHECK(tile_points(how.tile) == 5);
  const std::string text = text_for(k, arm.levels[0]);
  CHECK(text.find("load_elements<4>(a0") != std::string::npos);
  CHECK(text.find("[3])") != std::string::npos);

  for (const char* other : {"x86-64-v3", "armv7", "riscv64-v"}) {
    const Target target = *find_target(other);
    CHECK(first_stage(product(40, 64, 64, other), target.levels[0]).elements == 0);
  }
}

TEST_CASE("too short a sum takes no registers of elements", "[elements]") {
  const Level level = find_target("aarch64")->levels[0];
  CHECK(first_stage(product(40, 3, 64, "aarch64"), level).elements == 0);
  CHECK(first_stage(product(40, 5, 64, "aarch64"), level).elements == kElements);
}

TEST_CASE("elements are read from the text of a schedule", "[elements]") {
  const Level level = find_target("aarch64")->levels[0];
  ScheduledKernel k = product(40, 64, 64, "aarch64");
  k.levels = {optimize::schedule_kernel(k, level)};
  const std::string text = print(KernelSchedule(k));
  CHECK(text.find("s0 elements 4") != std::string::npos);
  TextFault fault;
  const std::optional<KernelSchedule> read = parse_schedule(text, fault);
  REQUIRE(read);
  CHECK(print(*read) == text);
}

TEST_CASE("sums by elements are right", "[elements][long]") {
  size_t found = 0;
  for (const char* level : {"x86-64-v2", "native"}) {
    const std::optional<Target> target = with_elements(level);
    if (!target) continue;
    // Depths that end within a register, and more rows than a tile.
    for (int64_t depth : {4, 7, 16, 33, 72}) {
      RandomGraph random;
      random.graph = known_product(13, depth, 40);
      Random numbers{static_cast<uint64_t>(depth)};
      random.inputs = {random_tensor(numbers, {13, depth})};
      random.tolerance.assign(random.graph.size(), 1e-4);
      CHECK(check_kernels(random, *target) == "");
      found += kernels_with_elements(random.graph, *target);
    }
    for (uint64_t seed = 0; seed < 40; ++seed) {
      const RandomGraph random = large_graph(seed);
      INFO("seed " << seed);
      CHECK(check_kernels(random, *target) == "");
      found += kernels_with_elements(random.graph, *target);
    }
  }
  CHECK(found > 10);
}
