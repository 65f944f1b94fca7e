// The evaluator with calls: a node of op Call names C++ that only a compiler can run, so
// whoever has one hands it in.
#pragma once

#include "compiler/ir/evaluate.h"

#include <functional>

namespace svod {

// One output of a call from the values of its inputs; `out` has the node's type and shape
// and room for its elements. False: the function stops the run.
using CallRunner = std::function<bool(const Graph& g, const Node& call,
                                      const std::vector<const Tensor*>& in, Tensor& out)>;

// As evaluate(); calls inside the bodies of regions are not run, and fail.
Evaluated evaluate(const Graph& g, const std::vector<Tensor>& inputs,
                   const CallRunner& calls);

} // namespace svod
