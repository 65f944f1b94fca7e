#include "importer/rules/ml/features.h"

namespace svod::importer {

Expr features(NodeImport& node) {
  Expr x = operand(node, 0);
  return x.dtype() == DType::F64 ? x : convert(x, DType::F32);
}

Expr feature_matrix(NodeImport& node) {
  Expr x = features(node);
  if (x.rank() == 1) x = unsqueeze(x, 0);
  require(node, x.rank() == 2, "the input must be a matrix");
  return x;
}

} // namespace svod::importer
