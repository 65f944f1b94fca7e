// Products of bytes between tiles of registers: where they are chosen, what of a schedule
// fits a kernel, and that kernels give the bits of the float form. Sums stay below 2^24.
#include "compiler/fuse.h"
#include "compiler/kernel/fit.h"
#include "compiler/kernel/matrix_tiles.h"
#include "compiler/kernel/text.h"
#include "compiler/rewrite/integer_contractions.h"
#include "compiler/rewrite/simplify.h"
#include "tests/support/check_kernels.h"
#include "tests/support/quantised_graph.h"
#include "tests/support/text_for.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace svod;
using namespace svod::test;

namespace {

constexpr LevelChoice kLevel{"sapphirerapids"};

// With the level of tiles alone; any machine can choose for it.
Target tiles_target() {
  Target target = *find_target("x86-64");
  target.levels = {target.levels.back()};
  REQUIRE(target.levels[0].has_tiles());
  return target;
}

// The kernel of the last contraction, scheduled.
ScheduledKernel last_product(const RandomGraph& random) {
  const Target target = tiles_target();
  const FusedGraph fused =
      fuse(rewrite::simplify(rewrite::integer_contractions(random.graph)), target);
  const ScheduledKernel* found = nullptr;
  for (const ScheduledKernel& k : fused.kernels)
    if (k.has_dot_axis()) found = &k;
  REQUIRE(found != nullptr);
  ScheduledKernel out = *found;
  out.levels = {optimize::schedule_kernel(out, target.levels[0])};
  return out;
}

const MatrixTiles& tiles_of(const ScheduledKernel& k) {
  REQUIRE(k.levels[0].stages[0].tiles);
  return *k.levels[0].stages[0].tiles;
}

} // namespace

TEST_CASE("tiles take whole rows of bytes where there are as many", "[tiles]") {
  // 49 positions are four tiles of 13 rows, 64 channels one row of bytes.
  const ScheduledKernel one = last_product(Quantised(1).wide(64, 64, 7, 7, 1, 1));
  CHECK(tiles_of(one).rows == 13);
  CHECK(tiles_of(one).groups == 16);
  // A row of a picture after the other, whose border lies between them.
  const ScheduledKernel three = last_product(Quantised(2).wide(64, 32, 14, 14, 3, 1));
  CHECK(tiles_of(three).rows == 14);
  CHECK(tiles_of(three).groups == 16);
  const ScheduledKernel product = last_product(Quantised(3).product(40, 96, 48));
  CHECK(tiles_of(product).rows == 14);
  CHECK(tiles_of(product).groups == 12);
  const TileCounts counts =
      tile_counts(product, *tile_factors(product), tiles_of(product));
  CHECK(counts.sums() + counts.positions + counts.w_registers() <= kTileRegisters);
}

TEST_CASE("what fills no tile stays with vectors", "[tiles]") {
  // One position, and channels of which few are summed.
  CHECK(!last_product(Quantised(4).product(1, 256, 64)).levels[0].stages[0].tiles);
  CHECK(!last_product(Quantised(5).product(64, 4, 64)).levels[0].stages[0].tiles);
}

TEST_CASE("a schedule of tiles is read as it is written, and refused where it fits not",
          "[tiles]") {
  const ScheduledKernel k = last_product(Quantised(6).wide(64, 64, 14, 14, 3, 1));
  TextFault fault;
  const std::optional<KernelSchedule> read =
      parse_schedule(print(static_cast<const KernelSchedule&>(k)), fault);
  REQUIRE(read);
  CHECK(read->levels == k.levels);
  CHECK(misfit(k, read->levels[0], k.levels[0]).empty());
  const auto refused = [&](auto change) {
    LevelSchedule level = k.levels[0];
    change(*level.stages[0].tiles);
    return !misfit(k, level, k.levels[0]).empty();
  };
  CHECK(refused([](MatrixTiles& t) { t.rows = 17; }));
  CHECK(refused([](MatrixTiles& t) { t.groups = 5; }));
  CHECK(refused([](MatrixTiles& t) { t.block.clear(); }));
  CHECK(refused([](MatrixTiles& t) { t.block[0].count = 9; }));
  CHECK(!refused([](MatrixTiles& t) { t.rows = 7; }));
  // Positions together along an axis that blocks have one position of.
  LevelSchedule other = k.levels[0];
  MatrixTiles& narrow = *other.stages[0].tiles;
  narrow.at_once = 1;
  other.tile = {narrow.block[0]};
  narrow.block = {{narrow.axis, 1}};
  REQUIRE(other.tile[0].axis != narrow.axis);
  CHECK(!misfit(k, other, k.levels[0]).empty());
  LevelSchedule none = k.levels[0];
  none.stages[0].tiles.reset();
  CHECK(!misfit(k, none, k.levels[0]).empty());
}

TEST_CASE("tiles give the bits of the float form", "[tiles][kernels][property][long]") {
  const std::optional<Target> target = target_for(kLevel);
  if (!target) {
    WARN("not run: this machine multiplies no tiles, or Linux does not allow it");
    return;
  }
  uint64_t seed = 0;
  int tiled = 0;
  const auto check = [&](const RandomGraph& random) {
    INFO("seed " << seed);
    CHECK(check_kernels(random, *target) == "");
    const FusedGraph fused =
        fuse(rewrite::simplify(rewrite::integer_contractions(random.graph)), *target);
    tiled += std::ranges::any_of(fused.kernels, [&](const ScheduledKernel& k) {
      const LevelSchedule how = optimize::schedule_kernel(k, target->levels[0]);
      return !how.stages.empty() && how.stages[0].tiles;
    });
  };
  for (const int64_t channels : {16, 48, 64, 128})
    for (const int64_t outputs : {16, 20, 64, 80})
      for (const int64_t kernel : {1, 3}) {
        Random random(++seed);
        check(Quantised(seed).wide(channels, outputs, random.between(3, 20),
                                   random.between(3, 40), kernel, random.between(1, 2)));
      }
  for (int i = 0; i < 8; ++i) check(Quantised(++seed).attention(i % 2 != 0, 128, 7));
  for (int i = 0; i < 24; ++i) {
    Random random(++seed);
    check(Quantised(seed).product(random.between(1, 70), random.between(3, 200),
                                  random.between(1, 90)));
  }
  CHECK(tiled > 30);
}
