#include "compiler/ir/graph_copy.h"

#include "compiler/ir/build.h"
#include "compiler/support/check.h"

namespace svod {

Node GraphCopy::over_copies(NodeId id, const Body& body) const {
  Node node = from_[id];
  SVOD_CHECK(node.op != Op::Input) << "an input is copied that was given no place";
  for (NodeId& input : node.inputs) input = now_[input];
  if (has_blob(node.op))
    node.payload[0] = to_.add_blob(from_.blob(static_cast<uint32_t>(node.payload[0])));
  for (size_t b = 0; b < body_count(node.op); ++b) {
    const auto& own = from_.body(static_cast<uint32_t>(node.payload[b]));
    node.payload[b] = to_.add_body(body ? body(own) : own);
  }
  return node;
}

NodeId GraphCopy::make(NodeId id) const {
  return make_ ? make_(id) : rebuild(to_, over_copies(id));
}

NodeId GraphCopy::copy(NodeId id) {
  std::vector<NodeId> stack{id}; // not recursion: graphs are thousands of nodes deep
  while (!stack.empty()) {
    const NodeId at = stack.back();
    if (now_[at] != kNoNode) {
      stack.pop_back();
      continue;
    }
    const size_t waiting = stack.size();
    for (NodeId input : from_[at].inputs)
      if (now_[input] == kNoNode) stack.push_back(input);
    if (stack.size() == waiting) now_[at] = make(at);
  }
  return now_[id];
}

void GraphCopy::run() {
  to_.begin_as(from_);
  for (const GraphInput& input : from_.inputs()) {
    const Node& node = from_[input.node];
    now_[input.node] = to_.add_input(input.name, node.dtype, node.shape, input.seen);
    to_.credit(now_[input.node], from_.sources(input.node));
  }
  for (NodeId id : from_.live_nodes()) {
    if (now_[id] != kNoNode) continue;
    const size_t first = to_.size();
    now_[id] = make(id);
    for (size_t made = first; made < to_.size(); ++made)
      to_.credit(static_cast<NodeId>(made), from_.sources(id));
    if (now_[id] != kNoNode) to_.credit(now_[id], from_.sources(id));
  }
  for (const GraphOutput& output : from_.outputs())
    to_.add_output(output.name, now_[output.node], output.seen);
}

} // namespace svod
