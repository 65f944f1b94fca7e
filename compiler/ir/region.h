// Regions: nodes that run a body, a graph of its own with its own inputs and outputs, as
// often as data of the run says. A body sees nothing around it but its inputs.
//
//   loop    inputs   count i64[], start bool[], carried.., sliced.., captured..
//           body     inputs   iteration i64[], carried.., items of sliced.., captured..
//                    outputs  again bool[] (if the loop has a condition), carried..,
//                             items of scanned..
//           results  carried.., scanned..
//   if      inputs   condition bool[], captured..
//           bodies   inputs captured.., outputs the results; the second runs where the
//                    condition is false
//
// A loop runs while its iteration is below the count and the condition holds; start is
// the condition before the first iteration. It carries values of fixed types from one
// iteration to the next. Of each sliced input an iteration sees one item along axis 0,
// and each scanned result is made of one item per iteration, both in ascending order or
// from the end (position limit - 1 - iteration). A loop that would run more than `limit`
// iterations fails, as an index out of range does; items it does not reach are
// unspecified (the evaluator leaves zeros).
//
// The loop's own value is the number of iterations it has done.
#pragma once

#include "compiler/ir/evaluate.h"
#include "compiler/ir/graph.h"

namespace svod {

// No loop runs longer: positions in sliced and scanned tensors stay below 2^62 bytes.
inline constexpr int64_t kMostIterations = int64_t{1} << 30;

struct LoopSpec {
  uint32_t body = 0; // of Graph::add_body
  int64_t carried = 0, sliced = 0;
  bool again = false;            // the body's first output is the condition
  int64_t limit = 0;             // iterations
  std::vector<int64_t> reversed; // per sliced input, then per scanned result: 0 or 1
};

// The spec in a loop's payload.
LoopSpec loop_spec(const Node& loop);
// Scanned results of a loop with this body.
int64_t scanned_count(const LoopSpec& spec, const Graph& body);

NodeId loop(Graph& g, const LoopSpec& spec, std::vector<NodeId> inputs);
NodeId branch(Graph& g, uint32_t body, uint32_t other, std::vector<NodeId> inputs);
NodeId result(Graph& g, NodeId region, int64_t number);

// What the op's row of ops.def demands; the node's type is set.
std::string loop_type(const Graph& g, Node& node);
std::string if_type(const Graph& g, Node& node);
std::string result_type(const Graph& g, Node& node);

// The region's value and its results from its inputs' values. False: an index was out of
// range, or a loop ran over its limit.
[[nodiscard]] bool evaluate_region(const Graph& g, const Node& node,
                                   const std::vector<const Tensor*>& inputs, Tensor& own,
                                   std::vector<Tensor>& results);

} // namespace svod
