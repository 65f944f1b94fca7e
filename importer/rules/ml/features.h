// What the models of ai.onnx.ml are given.
#pragma once

#include "importer/formula/formula.h"

namespace svod::importer {

// Input 0. Integers are computed in float32, as the reference does.
Expr features(NodeImport& node);

// The same as [rows, columns]; a vector is one row.
Expr feature_matrix(NodeImport& node);

} // namespace svod::importer
