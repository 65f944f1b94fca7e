// Bounded rules that others call: the rule of an operator where a number that it needs is
// only known in the run. All of them are named by the column `bounded` of onnx_ops.def.
#pragma once

#include "importer/bounded/bounded.h"

namespace svod::importer {

// Sizes of all inputs must agree, the result has them.
void bounded_elementwise(NodeImport& node, Rule rule);

// These do the operator's work themselves.
void bounded_compress(NodeImport& node, Rule);
void bounded_expand(NodeImport& node, Rule);
void bounded_non_zero(NodeImport& node, Rule);
void bounded_reshape(NodeImport& node, Rule);
void bounded_slice(NodeImport& node, Rule);
void bounded_tile(NodeImport& node, Rule);
void bounded_top_k(NodeImport& node, Rule);

} // namespace svod::importer
