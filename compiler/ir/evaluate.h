// The evaluator: runs any graph directly and slowly, node by node. It is the reference in
// tests and the constant folder.
#pragma once

#include "compiler/ir/graph.h"

namespace svod {

// A dense row-major tensor that owns its bytes.
struct Tensor {
  DType dtype = DType::F32;
  Shape shape;
  std::vector<std::byte> bytes;
};

// One node's value from its inputs' values (in input order). Weight and Constant take
// none; Input is not allowed. False: an index was out of range, or it is a call.
[[nodiscard]] bool evaluate_node(const Graph& g, NodeId id,
                                 const std::vector<const Tensor*>& inputs, Tensor& out);

// The graph's outputs for the given inputs. Frees each value after its last use.
struct Evaluated {
  std::vector<Tensor> outputs;
  NodeId failed = kNoNode; // node with an index out of range, outputs then empty
};
Evaluated evaluate(const Graph& g, const std::vector<Tensor>& inputs);

// Whether a map's cell is C++ on operands of this dtype (of a select: its second and
// third).
bool map_is_defined(Op op, DType dtype);

// The value of a node that depends on no input.
Tensor evaluate_known(const Graph& g, NodeId id);
// The same for who notes a weaker fact of it (value_facts.h).
Tensor evaluate_unnoted(const Graph& g, NodeId id);

} // namespace svod
