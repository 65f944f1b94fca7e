// Which seeds a long test draws its cases from.
#pragma once

#include <cstdint>

namespace svod::test {

struct Seeds {
  uint64_t first = 0, last = 0; // both are drawn
};

// All of them, or with SVOD_SEED_PARTS=N in the environment the part SVOD_SEED_PART
// modulo N, in the order of the seeds. CI gives the number of the checkout's commits, so
// that N commits in a row draw all.
Seeds part_of(Seeds all);

} // namespace svod::test
