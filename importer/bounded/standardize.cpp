#include "importer/bounded/standardize.h"

namespace svod::importer {

Standardized standardize(Expr x, const std::vector<int64_t>& axes, double epsilon,
                         const Counts& counts) {
  const Expr center = mean_of_meant(x, counts, axes);
  const Expr difference = x - center;
  const Expr variance = mean_of_meant(difference * difference, counts, axes);
  const Expr inverse = reciprocal(sqrt(variance + epsilon));
  return {difference * inverse, center, inverse};
}

} // namespace svod::importer
