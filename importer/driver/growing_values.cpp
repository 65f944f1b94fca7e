// A list that a loop only adds to: exporters write  list = Concat(list, item)  where
// PyTorch appends. Carried as it stands it would be copied in every iteration, at the
// size that it has at the end. It is carried empty instead, what is joined is a scan
// output, and behind the loop all items lie one after the other.
#include "importer/driver/region_import.h"

#include <algorithm>

namespace svod::importer {

std::vector<size_t> output_order(const LoopCall& call, size_t count) {
  std::vector<size_t> order, grown;
  for (size_t i = 0; i < count; ++i)
    (i < call.carried.size() && call.grows_along(i) >= 0 ? grown : order).push_back(i);
  order.insert(order.end(), grown.begin(), grown.end());
  return order;
}

namespace {

// How often a name is read by nodes and the graphs inside them.
int64_t uses_of(const ModelGraph& graph, const std::string& name) {
  int64_t uses = 0;
  for (const ModelNode& node : graph.nodes) {
    uses += std::ranges::count(node.inputs, name);
    for (const ModelAttribute& attribute : node.attributes)
      if (attribute.graph) uses += uses_of(*attribute.graph, name);
  }
  return uses + std::ranges::count(graph.outputs, name, &ModelValue::name);
}

} // namespace

int64_t growing_axis(const ModelGraph& body, size_t k, int64_t rank) {
  const std::string& before = body.inputs[2 + k].name;
  std::string after = body.outputs[1 + k].name;
  for (size_t i = body.nodes.size(); i-- > 0;) {
    const ModelNode& node = body.nodes[i];
    if (std::ranges::find(node.outputs, after) == node.outputs.end()) continue;
    if (uses_of(body, after) != 1) return -1;
    if (node.op_type == "Identity" && node.inputs.size() == 1) {
      after = node.inputs[0];
      continue;
    }
    if (node.op_type != "Concat" || !node.domain.empty() || node.inputs.size() < 2 ||
        node.inputs[0] != before || uses_of(body, before) != 1)
      return -1;
    for (const ModelAttribute& attribute : node.attributes)
      if (attribute.name == "axis" && attribute.type == AttributeType::Int) {
        const int64_t axis = attribute.i + (attribute.i < 0 ? rank : 0);
        return axis >= 0 && axis < rank ? axis : -1;
      }
    return -1;
  }
  return -1;
}

bool grows_by(const LoopCall& call, const Graph& outer, size_t k, const Graph& body,
              NodeId item) {
  if (call.grows_along(k) < 0) return false;
  const Node &before = outer[call.carried[k]], &more = body[item];
  Shape shape = before.shape;
  if (shape.size() != more.shape.size()) return false;
  const auto axis = static_cast<size_t>(call.grows_along(k));
  shape[axis] = more.shape[axis];
  return shape == more.shape && before.dtype == more.dtype;
}

// A carried value with all that its loop put behind it: `items` holds an item of every
// iteration, of which the run has done `done`.
NodeId RegionImport::grown(const LoopCall& call, size_t k, NodeId items, NodeId done) {
  const int64_t axis = call.grows_along(k);
  const Expr all{&g(), items}, before{&g(), call.carried[k]};
  std::vector<int64_t> perm = axes_from(1, all.rank());
  perm.insert(perm.begin() + axis, 0);
  const int64_t each = extent(all, axis + 1), had = extent(before, axis);
  Shape shape = before.shape();
  shape[static_cast<size_t>(axis)] = call.limit * each;
  Expr joined = reshape(permute(all, perm), shape);
  if (had > 0) joined = join({before, joined}, axis);
  if (!call.conditional && known_ints(g(), call.count)) return joined.id;
  Counts counts(shape.size(), kNoNode);
  const Expr count = Expr{&g(), done} * static_cast<double>(each);
  counts[static_cast<size_t>(axis)] = (count + static_cast<double>(had)).id;
  return import_.frame.bounds.add(g(), joined.id, counts);
}

} // namespace svod::importer
