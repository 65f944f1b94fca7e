// The evaluator with calls: a node of op Call names C++ that only a compiler can run, so
// whoever has one hands it in.
#pragma once

#include "compiler/ir/evaluate.h"

#include <functional>
#include <map>

namespace svod {

// One output of a call from the values of its inputs; `out` has the node's type and shape
// and room for its elements. False: the function stops the run.
using CallRunner = std::function<bool(const Graph& g, const Node& call,
                                      const std::vector<const Tensor*>& in, Tensor& out)>;

// As evaluate(); calls inside the bodies of regions are not run, and fail.
Evaluated evaluate(const Graph& g, const std::vector<Tensor>& inputs,
                   const CallRunner& calls);

// The values of `roots` where those of some nodes are given; what only these depend on is
// not computed. Fails at an input that is needed and not given.
// `adjust` may change every value that is computed, but products that only a sum reads.
using Adjust = std::function<void(NodeId id, Tensor& value)>;
Evaluated evaluate_from(const Graph& g, const std::vector<NodeId>& roots,
                        const std::map<NodeId, Tensor>& given, const CallRunner& calls,
                        const Adjust& adjust = {});
// What that computes, inputs before users; given nodes are among them where they are
// read.
std::vector<NodeId> nodes_between(const Graph& g, const std::vector<NodeId>& roots,
                                  const std::map<NodeId, Tensor>& given);

} // namespace svod
