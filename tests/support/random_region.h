// Random graphs with loops and conditions in them, nested, with data-dependent counts.
#pragma once

#include "tests/support/random_graph.h"

namespace svod::test {

RandomGraph random_region(uint64_t seed);

} // namespace svod::test
