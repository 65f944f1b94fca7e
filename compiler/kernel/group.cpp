#include "compiler/kernel/group.h"

#include "compiler/support/check.h"

namespace svod {

static std::string name_of(NodeId n) { return "%" + std::to_string(n); }

std::string print(const Grouping& grouping) {
  std::string out;
  for (const Group& group : grouping.groups) {
    out += "group " + name_of(group.root);
    if (group.target != group.root && group.target != kNoNode) {
      out += " to " + name_of(group.target) + " at";
      for (int64_t start : group.target_start) out += " " + std::to_string(start);
    }
    if (group.base != kNoNode) out += " base " + name_of(group.base);
    if (group.nested != kNoNode) out += " nested " + name_of(group.nested);
    if (!group.rows.empty()) out += " rows";
    for (NodeId n : group.rows) out += " " + name_of(n);
    if (group.unrolled) out += " unrolled";
    for (const auto& [axis, extents] : group.read_as) {
      out += " axis " + std::to_string(axis) + " as";
      for (int64_t extent : extents) out += " " + std::to_string(extent);
    }
    out += "\n";
  }
  return out;
}

void verify(const Grouping& grouping, const Graph& graph) {
  std::vector<bool> written(graph.size());
  auto is_live = [&](NodeId n) { return n < graph.size() && grouping.live[n]; };
  for (const Group& group : grouping.groups) {
    SVOD_CHECK(is_live(group.root)) << "a group of no live node";
    if (has_body(graph[group.root].op)) {
      written[group.root] = true;
      continue;
    }
    SVOD_CHECK(is_live(group.target) && grouping.stored[group.target])
        << "the group of %" << group.root << " writes what is not stored";
    SVOD_CHECK(group.target_start.size() == graph[group.target].shape.size())
        << "the group of %" << group.root << " starts at no position of its target";
    for (NodeId n : group.rows)
      SVOD_CHECK(is_reduce(graph[n].op)) << "%" << n << " is no reduction of rows";
    SVOD_CHECK(group.nested == kNoNode || is_reduce(graph[group.nested].op))
        << "%" << group.nested << " is no sum of a block";
    written[group.target] = true;
  }
  for (NodeId n : graph.live_nodes()) {
    const Op op = graph[n].op;
    const bool given = op == Op::Input || info(op).op_class == OpClass::Region;
    SVOD_CHECK(!grouping.stored[n] || given || written[n])
        << "nobody computes %" << n << ", which is stored";
  }
}

} // namespace svod
