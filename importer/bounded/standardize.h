// Normalisation over axes, of tensors whose sizes may depend on data.
#pragma once

#include "importer/bounded/bounded.h"

namespace svod::importer {

// (x - mean) / sqrt(variance + epsilon) over the axes, with its two parameters; of what
// is meant where x is bounded.
struct Standardized {
  Expr value, mean, inverse_deviation;
};
Standardized standardize(Expr x, const std::vector<int64_t>& axes, double epsilon,
                         const Counts& counts = {});

// (x - mean) / sqrt(variance + epsilon) of [N, C, positions..] over the positions and the
// channels of each group.
Expr standardize_groups(Expr x, int64_t groups, double epsilon);

} // namespace svod::importer
