// The contraction that most tests of emitted text look at.
#pragma once

#include "compiler/ir/graph.h"
#include "compiler/kernel/kernel.h"
#include "compiler/support/target.h"

namespace svod::test {

// y = x w, x[rows, depth] an input and w[depth, columns] known.
Graph known_product(int64_t rows, int64_t depth, int64_t columns);

// The kernel that sums x w in 32 bits, x[rows, depth] an input of signed bytes and
// w[depth, columns] these bytes, or where there are none an input.
ScheduledKernel byte_product(int64_t rows, const Shape& w, std::vector<std::byte> bytes,
                             const Target& target);

} // namespace svod::test
