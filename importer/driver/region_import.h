// What the import of a loop or a branch as a region needs beside the import itself.
#pragma once

#include "compiler/ir/region.h"
#include "importer/bounded/bounded.h"
#include "importer/formula/string_table.h"

#include <map>

namespace svod::importer {

// What belongs to one graph that is being made, the model's own or that of a body: its
// nodes, and all that is known of them beside.
struct ImportFrame {
  Graph graph;
  std::map<const ModelTensor*, NodeId> tensors; // initializers that were made
  BoundTable bounds;
  RangeTable ranges;
  StringTable strings; // its pools are nodes of the graph
};

// A body being imported. The frame around it waits here while the import's own frame is
// the body's; values of it that the body reads become inputs of the body.
struct OpenBody {
  ImportFrame outer;
  std::map<NodeId, NodeId> captured; // outer node -> node of the body
  std::vector<NodeId> order;         // outer nodes that became inputs
  bool loops = false;
};

// A Loop, a Scan or a rule's loop that is not unrolled. Sliced inputs are sliced along
// axis 0.
struct LoopCall {
  const ModelAttribute* body = nullptr;
  const RuleLoop* rule = nullptr; // instead of `body`
  bool is_scan = false;           // the body takes neither iteration nor condition
  NodeId count = kNoNode;         // i64[]
  NodeId start = kNoNode;         // bool[]
  bool conditional = false;       // the body's condition counts
  int64_t limit = 0;
  std::vector<NodeId> carried, sliced; // of complex values what is inside
  std::vector<bool> complex;           // which of both the body sees as complex
  std::vector<bool> made_complex;      // which results it gives so
  // Per carried value: every iteration only joins elements behind it, along this axis. It
  // is carried empty, and what is joined becomes a scan output. -1: not so.
  std::vector<int64_t> grows;
  int64_t grows_along(size_t k) const { return k < grows.size() ? grows[k] : -1; }
  std::vector<int64_t> reversed; // per sliced input, then per scan output
};

// What a branch gives, in its own graph: tensors, and their counts where they are
// bounded.
struct BranchResults {
  std::vector<NodeId> tensors;
  std::vector<Counts> counts;
  std::vector<bool> complex; // which are the inside of a complex value
};

// What growing_values.cpp knows of loops whose values grow.
// The axis along which every iteration of a Loop only puts elements behind carried value
// k, -1 otherwise.
int64_t growing_axis(const ModelGraph& body, size_t k, int64_t rank);
// Whether the item that a body gives for carried value k fits behind it.
bool grows_by(const LoopCall& call, const Graph& outer, size_t k, const Graph& body,
              NodeId item);
// A region's outputs, as numbers of what its body gives: carried values, then items,
// those of the values that grow last.
std::vector<size_t> output_order(const LoopCall& call, size_t count);

} // namespace svod::importer
