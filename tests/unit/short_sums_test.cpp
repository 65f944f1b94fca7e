// Products of bytes that are added in 16 bits before they are widened: how many of them
// the weights allow, and the steps of the schedule and the text that come of it.
#include "compiler/fuse.h"
#include "compiler/ir/build.h"
#include "compiler/ir/fold.h"
#include "compiler/kernel/text.h"
#include "compiler/rewrite/simplify.h"
#include "tests/support/known_product.h"
#include "tests/support/text_for.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace svod;
using namespace svod::test;

namespace {

constexpr int64_t kSummed = 64, kResults = 8;

// A product of matrices of signed bytes, all weights alike but the first two: a constant
// would be none.
ScheduledKernel product(int weight, int second, const Target& target) {
  std::vector<std::byte> values(kSummed * kResults, static_cast<std::byte>(weight));
  values[0] = std::byte{0};
  values[1] = static_cast<std::byte>(second);
  return byte_product(6, {kSummed, kResults}, std::move(values), target);
}

int64_t steps(int weight, int second, const char* target) {
  return tile_points(product(weight, second, *find_target(target)).stages[0].short_sums);
}

size_t count_of(const std::string& what, const std::string& text) {
  size_t count = 0;
  for (size_t i = 0; (i = text.find(what, i)) != std::string::npos; ++i) ++count;
  return count;
}

// The kernel's text without what all kernels start with.
std::string body_of(const ScheduledKernel& k, const Level& level) {
  const std::string text = text_for(k, level);
  const size_t body = text.find("i32 body(");
  REQUIRE(body != std::string::npos);
  return text.substr(body);
}

} // namespace

TEST_CASE("how many products fit 16 bits is known from the weights", "[short_sums]") {
  CHECK(steps(1, 2, "armv7") == 4);
  CHECK(steps(63, 63, "armv7") == 4);   // 4 * 63 * 128 = 32256
  CHECK(steps(64, 64, "armv7") == 2);   // 4 * 64 * 128 = 32768
  CHECK(steps(63, 127, "armv7") == 2);  // one lane decides
  CHECK(steps(127, 127, "armv7") == 2); // 2 * 127 * 128 = 32512
  CHECK(steps(-128, 1, "armv7") == 1);
  CHECK(steps(1, 1, "x86-64-v3") == 1);
  // The weakest of its levels adds so, the others have instructions of their own.
  CHECK(steps(1, 1, "aarch64") == 4);
}

TEST_CASE("products of steps together are added once", "[short_sums]") {
  const Target target = *find_target("armv7");
  const auto sums = [&](int weight) {
    const std::string text = text_for(product(weight, weight, target), target.levels[0]);
    const size_t begin = text.find("auto t"), end = text.find("add_halves<0>(c");
    REQUIRE(begin < end);
    REQUIRE(end != std::string::npos);
    return count_of("byte_products<0>(", text.substr(begin, end - begin));
  };
  CHECK(sums(1) == 4);
  CHECK(sums(127) == 2);
  CHECK(sums(-128) == 1);
}

TEST_CASE("bytes that all lanes share are loaded two groups at a time", "[short_sums]") {
  const Target target = *find_target("armv7");
  const std::string kernel = body_of(product(1, 1, target), target.levels[0]);
  const size_t products = count_of("byte_products<0>(", kernel);
  CHECK(products > 0);
  // Each group is of one position: four steps of it are two loads.
  CHECK(count_of("load_shared<2>(", kernel) == products / 2);
  CHECK(count_of("load_shared<1>(", kernel) == 0);
  CHECK(count_of("load_dot(", kernel) == 0);
}

TEST_CASE("weights of four lanes at a time meet all positions", "[short_sums]") {
  const Target target = *find_target("aarch64");
  const std::string text = body_of(product(1, 1, target), target.levels[0]);
  // Eight results are two registers of lanes, whose weights are read side by side.
  const size_t first = text.find("load_quad("), last = text.rfind("byte_products<0>("),
               next = text.find("byte_products<1>(");
  REQUIRE(next != std::string::npos);
  CHECK(first < last);
  CHECK(text.find("HalfSums<2> ") != std::string::npos);
  const size_t line = text.find('\n', first) + 1;
  CHECK(text.substr(line, text.find('\n', line) - line).find("load_quad(") !=
        std::string::npos);
  // Of a tile's positions the products of the first lanes come before those of others.
  const std::string tile = text.substr(0, text.find("whole_sums(c"));
  CHECK(tile.rfind("byte_products<0>(") < tile.find("byte_products<1>("));
  CHECK(count_of("byte_products<0>(", tile) == count_of("byte_products<1>(", tile));
  const std::string stronger = body_of(product(1, 1, target), target.levels[1]);
  CHECK(stronger.find("byte_products") == std::string::npos);
}

TEST_CASE("short sums and steps together read back as written", "[short_sums]") {
  const Target target = *find_target("armv7");
  ScheduledKernel k = product(1, 1, target);
  k.levels = {optimize::schedule_kernel(k, target.levels[0])};
  REQUIRE(k.levels[0].stages[0].together == k.stages[0].short_sums);
  TextFault fault;
  const std::string of_kernel = print(static_cast<const Kernel&>(k)),
                    of_schedule = print(static_cast<const KernelSchedule&>(k));
  CHECK(of_kernel.find(" short i") != std::string::npos);
  const auto kernel = parse_kernel(of_kernel, fault);
  REQUIRE(kernel);
  CHECK(print(*kernel) == of_kernel);
  CHECK(of_schedule.find("s0 together i") != std::string::npos);
  const auto schedule = parse_schedule(of_schedule, fault);
  REQUIRE(schedule);
  CHECK(print(*schedule) == of_schedule);
}
