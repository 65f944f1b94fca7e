// Programs that are predicted to run far from what the core is made for.
#include "compiler/plan_cost.h"

#include <catch2/catch.hpp>

using namespace svod;

namespace {

Level level_of_v3() {
  const std::optional<Target> target = find_target("x86-64-v3");
  REQUIRE(target);
  return target->levels.back();
}

LaunchCost launch(uint32_t program, double seconds, double flops, double bytes) {
  LaunchCost out{program, 1, {int32_t(program)}, {}, flops, bytes};
  out.each.total = seconds;
  return out;
}

PlanCost cost_of(std::vector<LaunchCost> launches) {
  PlanCost out;
  out.launches = std::move(launches);
  for (const LaunchCost& one : out.launches)
    out.total.total += one.each.total * double(one.times);
  return out;
}

} // namespace

TEST_CASE("a cliff is a program far above its roof that takes a share of the run",
          "[cost]") {
  const Level level = level_of_v3();
  const double peak = 1e9 * level.machine.clock_ghz * level.machine.flops_per_clock;
  const double flops = 1e-3 * peak; // a millisecond at the peak
  const auto found =
      cliffs_of(cost_of({launch(0, 2e-3, flops, 0), launch(1, 20e-3, flops, 0),
                         launch(2, 90e-3, flops, 0)}),
                level);
  REQUIRE(found.size() == 2);
  CHECK(found[0].program == 2);
  CHECK(found[1].program == 1);
  CHECK(found[1].seconds == 20e-3);
  CHECK(found[1].roof == Approx(1e-3).epsilon(1e-3));
  CHECK(found[1].sources == std::vector<int32_t>{1});
}

TEST_CASE("launches of one program are one cliff, and small shares are none", "[cost]") {
  const Level level = level_of_v3();
  CHECK(
      cliffs_of(cost_of({launch(0, 1, 1e12, 0), launch(1, 6e-3, 0, 64)}), level).empty());
  const auto both = cliffs_of(
      cost_of({launch(0, 1, 1e12, 0), launch(1, 6e-3, 0, 64), launch(1, 6e-3, 0, 64)}),
      level);
  REQUIRE(both.size() == 1);
  CHECK(both[0].seconds == Approx(12e-3));
}

TEST_CASE("what is moved has the roof of the memory that holds it", "[cost]") {
  const Level level = level_of_v3();
  const Machine& m = level.machine;
  const auto roof = [&](double bytes) {
    const auto found = cliffs_of(cost_of({launch(0, 1, 0, bytes)}), level);
    REQUIRE(found.size() == 1);
    return found[0].roof - 1e-9 * m.launch_ns;
  };
  const double near = double(m.first.bytes) / 2, far = 2 * double(m.last.bytes);
  CHECK(roof(near) == Approx(1e-9 * near / (m.clock_ghz * m.first.bytes_per_clock)));
  CHECK(roof(far) == Approx(1e-9 * far / m.memory_bytes_per_ns));
}
