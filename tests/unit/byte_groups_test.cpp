// Registers of four groups of bytes: which loads hold the groups asked for, and that they
// touch no byte beside them.
#include "compiler/kernel/byte_groups.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <random>

using namespace svod;

namespace {

// Every group is where its use says, and no load leaves what lies between the groups.
void check_cover(const std::vector<int64_t>& offsets, const GroupLoads& found) {
  const auto [first, last] = std::ranges::minmax(offsets);
  REQUIRE(found.uses.size() == offsets.size());
  for (const GroupLoad& load : found.loads) {
    CHECK(load.at >= first);
    CHECK(load.at + int64_t{kDot} * load.groups <= last + kDot);
  }
  for (size_t i = 0; i < offsets.size(); ++i) {
    const auto& [load, element] = found.uses[i];
    CHECK(element < found.loads[load].groups);
    CHECK(found.loads[load].at + int64_t{kDot} * element == offsets[i]);
  }
}

} // namespace

TEST_CASE("sixteen bytes in a row are one load", "[byte_groups]") {
  CHECK(cover_groups({0, 4, 8, 12}).loads.size() == 1);
  // Of two positions with three groups each, the second load begins before its groups.
  const GroupLoads two = cover_groups({0, 4, 8, 16, 20, 24});
  REQUIRE(two.loads.size() == 2);
  CHECK(two.loads[1].at == 12);
}

TEST_CASE("windows that overlap share their loads", "[byte_groups]") {
  // Two rows of six windows of eight bytes, one byte apart, whose ten groups of the first
  // row are four loads.
  std::vector<int64_t> offsets;
  for (int64_t row : {0, 50})
    for (int64_t step : {0, 4})
      for (int64_t window = 0; window < 6; ++window)
        offsets.push_back(row + step + window);
  const GroupLoads found = cover_groups(offsets);
  CHECK(std::ranges::count_if(found.loads,
                              [](const GroupLoad& l) { return l.at < 20; }) == 4);
  check_cover(offsets, found);
}

TEST_CASE("groups are loaded by twos where both are asked for", "[byte_groups]") {
  const std::vector<int64_t> offsets = {0, 4, 4, 8, 8, 12, 12, 16, 100, 1, 5};
  const GroupLoads found = cover_pairs(offsets);
  CHECK(found.loads.size() == 5);
  check_cover(offsets, found);
  for (size_t load = 0; load < found.loads.size(); ++load)
    for (int element = 0; element < found.loads[load].groups; ++element)
      CHECK(std::ranges::any_of(found.uses, [&](const GroupUse& use) {
        return use.load == load && use.element == element;
      }));
}

TEST_CASE("a group alone is a load of its own", "[byte_groups]") {
  const GroupLoads found = cover_groups({0, 100});
  REQUIRE(found.loads.size() == 2);
  CHECK(found.loads[0].groups == 1);
  CHECK(cover_groups({0, 4}).loads[0].groups == 2);
}

TEST_CASE("loads of any groups hold them and nothing beyond", "[byte_groups]") {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    std::vector<int64_t> offsets(1 + random() % 40);
    for (int64_t& at : offsets) at = static_cast<int64_t>(random() % 90) - 20;
    check_cover(offsets, cover_groups(offsets));
    check_cover(offsets, cover_pairs(offsets));
  }
}
