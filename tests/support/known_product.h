// The contraction that most tests of emitted text look at.
#pragma once

#include "compiler/ir/graph.h"

namespace svod::test {

// y = x w, x[rows, depth] an input and w[depth, columns] known.
Graph known_product(int64_t rows, int64_t depth, int64_t columns);

} // namespace svod::test
