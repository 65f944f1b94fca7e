// The rows of machine.def agree with themselves and with the levels that name them.
#include "compiler/support/target.h"

#include <catch2/catch.hpp>

#include <cmath>

using namespace svod;

namespace {

void check_cache(const Cache& c, const Cache& nearer) {
  CHECK(c.bytes >= nearer.bytes);
  CHECK(c.line > 0);
  CHECK(c.bytes_per_clock > 0);
  CHECK(c.bytes_per_clock <= nearer.bytes_per_clock);
  if (c.ways > 0) CHECK(c.bytes % (c.ways * c.line) == 0);
}

void check_machine(const Machine& m) {
  CHECK(m.clock_ghz > 0);
  CHECK(m.gflops > 0);
  CHECK(m.gflops <= m.flops_per_clock * m.clock_ghz);
  CHECK(m.work_per_ns > 0);
  for (double rate : {m.fmas_per_clock, m.loads_per_clock, m.broadcasts_per_clock})
    CHECK(rate > 0);
  for (double rate : {m.operations_per_clock, m.quotients_per_clock,
                      m.instructions_per_clock, m.stored_per_clock, m.stores_per_clock})
    CHECK(rate > 0);
  CHECK(m.narrow_at_once >= 1);
  CHECK(m.latency >= 1);
  CHECK(m.window >= 0);
  for (double share : {m.ports_seen, m.caches_seen, m.unfetched_seen}) {
    CHECK(share >= 0);
    CHECK(share <= 1);
  }
  for (double fitted : {m.streams_seen, m.jumps_seen, m.spill_clocks, m.nest_clocks})
    CHECK(fitted >= 0);
  CHECK(m.sums_in_flight >= 1);
  CHECK(m.walks_in_flight >= 1);
  check_cache(m.first, m.first);
  check_cache(m.second, m.first);
  check_cache(m.last, m.second);
  CHECK(m.free_streams >= 1);
  CHECK(m.streams >= m.free_streams);
  CHECK(m.streamed_rows >= 1);
  CHECK(m.stored_lines >= 1);
  CHECK(m.memory_bytes_per_ns > 0);
  CHECK(m.memory_seen >= 0);
  CHECK(m.memory_seen <= 1);
  CHECK(m.launch_ns > 0);
}

} // namespace

TEST_CASE("machine: every GPU names a whole row") {
  for (const std::string& alias : device_aliases()) {
    CAPTURE(alias);
    const std::optional<Target> device = find_device(alias);
    REQUIRE(device);
    REQUIRE(device->levels.size() == 1);
    CHECK(device->levels[0].name == alias);
    CHECK(!device->levels[0].has_lanes());
    const Machine& m = device->machine();
    check_machine(m);
    CHECK(!m.shared_memory);
    for (double cost : {m.host_bytes_per_ns, m.sync_ns}) CHECK(cost > 0);
    CHECK(m.multiprocessors > 0);
    CHECK(m.warp_threads > 0);
    CHECK(m.block_threads % m.warp_threads == 0);
    CHECK(m.resident_threads % m.block_threads == 0);
    CHECK(m.shared_bytes > 0);
  }
  CHECK(!find_device("x86-64"));
  CHECK(!find_target("sm_80"));
}

TEST_CASE("machine: every level names a whole row") {
  for (const std::string& alias : target_aliases()) {
    CAPTURE(alias);
    const std::optional<Target> target = find_target(alias);
    REQUIRE(target);
    for (const Level& level : target->levels) {
      check_machine(level.machine);
      CHECK(level.integer_registers >= 6); // 32-bit x86 has the fewest
      // What one thread runs has no regions, and firmware has no pages.
      CHECK((level.machine.fork_join_ns == 0) == (target->kind != TargetKind::Linux));
      if (target->kind != TargetKind::Linux) CHECK(level.machine.large_page == 0);
    }
    CHECK(&target->machine() == &target->levels.back().machine);
  }
}

TEST_CASE("machine: the peak is what the registers of its strongest level give") {
  for (const char* alias : {"x86-64", "aarch64", "armv7", "cortex-m55"}) {
    CAPTURE(alias);
    const Level level = find_target(alias)->levels.back();
    const double lanes = level.register_bits / 32;
    CHECK(std::abs(2 * lanes * level.machine.fmas_per_clock -
                   level.machine.flops_per_clock) < 1e-9);
  }
}

TEST_CASE("machine: addresses of one set lie the cache over its ways apart") {
  CHECK(find_machine("zen4").first.set_bytes() == 4096);
  CHECK(find_machine("cortex-m4").first.set_bytes() == 0);
}

TEST_CASE("machine: a network without bytes asks for no registers of tiles") {
  const Target all = *find_target("x86-64");
  Target best = all;
  best.levels = {all.levels.back()};
  REQUIRE(best.levels[0].has_tiles());
  const Target plain = without_dot_levels(best);
  REQUIRE(plain.levels.size() == 1);
  CHECK(plain.levels[0].name == all.levels[all.levels.size() - 2].name);
  const Level cpu =
      without_dot_levels(with_cpu(all, all.levels.size() - 1, "graniterapids"))
          .levels.at(0);
  CHECK(!cpu.has_tiles());
  CHECK(cpu.name == "graniterapids");
}

TEST_CASE("machine: for a first answer there are two levels, and this machine's is one") {
  const Target all = default_target(), some = without_other_levels(all);
  const Target here = *find_target("native");
  CHECK(some.levels.size() <= 2);
  CHECK(some.levels.front().name == all.levels.front().name);
  CHECK(some.levels.back().name == here.levels.back().name);
  CHECK(without_other_levels(*find_target("cortex-m4")).levels.size() == 1);
}
