// What roundings add up to on the way through a program: each value that it stores beside
// the same value of a run in double precision.
#pragma once

#include "compiler/ir/evaluate_calls.h"
#include "compiler/kernel/fused_graph.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace svod::packager {

// A value that kernels have stored.
struct StoredValue {
  const Buffer& buffer;
  std::string kernel;             // that wrote it last
  std::vector<std::string> nodes; // ONNX's
  const Tensor& expected;         // what the evaluator makes of the kernel's own inputs
  const Tensor& found;
};

class Judge {
public:
  // Evaluates the graph that kernels were made from with f64 in place of every narrower
  // float (rewrite::in_double). Nothing where a node is the user's own code, or where
  // that run ends early.
  static std::optional<Judge> of(const FusedGraph& fused,
                                 const std::vector<Tensor>& inputs);
  // Values of floats of this graph; of the bodies of regions nothing is known.
  void look_at(const StoredValue& stored);
  // {reference, tensors[{node, type, kernel, nodes, error, alone}]} in the order in which
  // they were stored. `error`: |found - wanted| / |wanted| by Euclidean norms. `alone`:
  // what the kernel makes of its own inputs, beside the evaluator in the model's types.
  std::string json() const;

private:
  struct Row {
    NodeId node = kNoNode;
    std::string type, kernel;
    std::vector<std::string> nodes;
    double error = 0, alone = 0;
  };
  std::map<NodeId, Tensor> wanted_;
  std::vector<Row> rows_;
};

} // namespace svod::packager
