// The function that ai.onnx.ml applies to the scores of a model before it gives them out.
#pragma once

#include "importer/formula/formula.h"

namespace svod::importer {

// `scores` [rows, classes] by NONE, SOFTMAX, LOGISTIC or SOFTMAX_ZERO; unsupported() for
// others.
Expr post_transform(NodeImport& node, Expr scores, const std::string& name);

} // namespace svod::importer
