// Operators of the user's own: their nodes become calls.
#pragma once

#include "compiler/ir/custom_op.h"
#include "importer/formula/rule.h"

namespace svod::importer {

// The functions for an operator: one per combination of element types.
std::vector<const CustomOp*> find_custom_ops(const std::vector<CustomOp>& all,
                                             const ModelNode& node);

// Gives the node's outputs from the function that fits its inputs.
void import_custom_call(NodeImport& node, const std::vector<const CustomOp*>& functions);

// What a user would write for a node that nothing imports: the function's declaration
// with its annotation. `outputs` as the model declares them.
struct DeclaredOutput {
  std::optional<DType> dtype;
  std::optional<Shape> shape;
};
std::string custom_declaration(const Graph& g, const ModelNode& node,
                               const std::vector<NodeId>& inputs,
                               const std::vector<DeclaredOutput>& outputs);

} // namespace svod::importer
