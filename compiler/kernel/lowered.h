// A kernel between lowering and the choice of its loops: how the dimensions of its group
// were cut into axes, and which axes came of it.
#pragma once

#include "compiler/kernel/fused_graph.h"
#include "compiler/kernel/group.h"

#include <functional>
#include <map>
#include <optional>

namespace svod {

// A dimension that kernels loop over: of the group's root, or a reduced one of its base.
struct Dim {
  NodeId node;
  int64_t axis;
  auto operator<=>(const Dim&) const = default;
};

// How dimensions are cut into axes: extents of the inner axes, outermost of them first.
struct LowerSpec {
  std::map<Dim, std::vector<int64_t>> splits;
  // Axes looped over together with the next one: of the root, and reduced ones of the
  // base.
  std::set<int64_t> merged, merged_inner;
  // Axes (by their place in a dimension) that are written out instead of looped over.
  std::set<std::pair<Dim, size_t>> unrolled;
  std::optional<std::pair<Dim, size_t>>
      lane;                                  // the lane axis, by its place in a dimension
  std::optional<std::pair<Dim, size_t>> dot; // the dot axis, likewise
  // Zeros are written to where the result's last block is no channel.
  bool whole_blocks = false;
};

// What lowering sees of the rest of the fused graph.
struct Stored {
  const Graph& graph;
  const Grouping& grouping;
  std::vector<Buffer>& buffers;
  std::map<NodeId, BufferId>& buffer_of; // stored nodes
  // Weights as dense row-major tensors; kernels' packing replaces them (pack_weights.h).
  std::vector<PackedWeight>& packed;
};

struct Lowered {
  ScheduledKernel kernel;
  std::map<Dim, std::vector<AxisId>> axes; // empty for a dimension merged into another
  std::set<AxisId> unrolled;               // of these, the ones written out
  std::set<AxisId> to_unroll; // that known numbers of an unrolled reduction depend on
};

// Lowers one group with its dimensions cut so. The choice of axes asks for a kernel again
// whenever it has found better ones.
using Lower = std::function<Lowered(const LowerSpec&)>;

} // namespace svod
