// What lowering sees of a group of a cut.
#pragma once

#include "compiler/kernel/lowered.h"

#include <string>
#include <vector>

namespace svod {

// Both sorted, each node once.
struct GroupNodes {
  std::vector<NodeId> computed;
  std::vector<NodeId> stored; // what is read, and the group's target
};
GroupNodes nodes_of(const Graph& graph, const Grouping& grouping, const Group& group);

// Equal for groups of one graph whose kernels are the same: which values are computed,
// which are found stored, and how these lie in memory.
std::string group_key(const Group& group, const GroupNodes& nodes,
                      const std::vector<Buffer>& buffers,
                      const std::map<NodeId, BufferId>& buffer_of);

} // namespace svod
