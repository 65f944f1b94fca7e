// What the import of a loop or a branch as a region needs beside the import itself.
#pragma once

#include "compiler/ir/region.h"
#include "importer/bounded.h"
#include "importer/string_table.h"

#include <map>

namespace svod {

// A body being imported. The graph around it waits here while the import's own graph is
// the body's; values of it that the body reads become inputs of the body.
struct OpenBody {
  Graph outer;
  std::map<const ModelTensor*, NodeId> tensors; // of the outer graph
  BoundTable bounds;                            // likewise
  StringTable strings;                          // likewise: its pools are nodes
  std::map<NodeId, NodeId> captured;            // outer node -> node of the body
  std::vector<NodeId> order;                    // outer nodes that became inputs
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
  std::vector<NodeId> carried, sliced;
  std::vector<int64_t> reversed; // per sliced input, then per scan output
};

} // namespace svod
