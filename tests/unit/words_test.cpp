// Weights of neighbouring lanes that are read four bytes at a time: where they are, and
// the schedule and the text that come of it.
#include "compiler/fuse.h"
#include "compiler/ir/build.h"
#include "compiler/ir/fold.h"
#include "compiler/kernel/fit.h"
#include "compiler/kernel/text.h"
#include "compiler/rewrite/simplify.h"
#include "compiler/toolchain/keep_order.h"
#include "tests/support/known_product.h"
#include "tests/support/text_for.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace svod;
using namespace svod::test;

namespace {

// A product of matrices of signed bytes, `results` wide; the second one is known when
// packing, or not.
ScheduledKernel product(int64_t results, bool known, const Target& target) {
  constexpr int64_t kRows = 6, kSummed = 64;
  std::vector<std::byte> values;
  for (int64_t i = 0; known && i < kSummed * results; ++i)
    values.push_back(static_cast<std::byte>(i % 7));
  return byte_product(kRows, {kSummed, results}, std::move(values), target);
}

bool reads_words(int64_t results, bool known, const char* alias) {
  const Target target = *find_target(alias);
  const Level& level = target.levels[0];
  const ScheduledKernel k = product(results, known, target);
  const bool text = text_for(k, level).find("= add_words(c") != std::string::npos;
  CHECK(optimize::schedule_kernel(k, level).stages[0].words == text);
  return text;
}

} // namespace

TEST_CASE("cores whose bytes cost two instructions read weights as words", "[words]") {
  for (const char* alias : {"cortex-m0", "cortex-m0plus", "cortex-m23"})
    CHECK(reads_words(8, true, alias));
  for (const char* alias : {"cortex-m3", "cortex-m4", "rv32imac", "x86-64-v3"})
    CHECK_FALSE(reads_words(8, true, alias));
}

TEST_CASE("what is no weight may lie at any address", "[words]") {
  CHECK_FALSE(reads_words(8, false, "cortex-m0plus"));
}

TEST_CASE("words read back as written, and are not made up", "[words]") {
  const Target target = *find_target("cortex-m0plus");
  ScheduledKernel k = product(8, true, target);
  k.levels = {optimize::schedule_kernel(k, target.levels[0])};
  const std::string text = print(static_cast<const KernelSchedule&>(k));
  CHECK(text.find("s0 words") != std::string::npos);
  TextFault fault;
  const auto schedule = parse_schedule(text, fault);
  REQUIRE(schedule);
  CHECK(print(*schedule) == text);
  LevelSchedule without = k.levels[0];
  without.stages[0].words = false;
  CHECK(misfit(k, without, k.levels[0]).empty());
  CHECK_FALSE(misfit(k, k.levels[0], without).empty());
}

TEST_CASE("cores that read words keep the order of a text made for speed", "[words]") {
  for (const char* alias : {"cortex-m0", "cortex-m0plus", "cortex-m23"}) {
    CHECK(toolchain::keeps_order(find_target(alias)->triple, false));
    CHECK_FALSE(toolchain::keeps_order(find_target(alias)->triple, true));
  }
  CHECK(toolchain::keeps_order(find_target("armv7")->triple, true));
  for (const char* alias : {"cortex-m3", "cortex-m33", "x86-64-v3"})
    CHECK_FALSE(toolchain::keeps_order(find_target(alias)->triple, false));
}
