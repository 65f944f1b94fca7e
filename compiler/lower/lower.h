// From a group of graph nodes to a kernel: views become index arithmetic, maps
// expressions, reductions stages.
#pragma once

#include "compiler/select/group.h"

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

Lowered lower(const Group& group, const LowerSpec& spec, Stored& stored);

// Writes the border of a buffer.
ScheduledKernel lower_border(BufferId id, const Buffer& buffer, int lanes);

// Calls the function of a call node. `call` is any of its outputs that are used: one
// kernel gives them all.
ScheduledKernel lower_call(NodeId call, Stored& stored);
// The nodes of the same call, by output number, `call` among them.
std::vector<NodeId> outputs_of_call(const Graph& g, const Grouping& grouping,
                                    NodeId call);

// Adjacent root axes that every access crosses as one: looping over them together makes
// long vectors of short rows.
std::set<int64_t> find_merges(const Group& group, const Lowered& lowered,
                              const Shape& shape);
// The same among the axes that the base reduces.
std::set<int64_t> find_inner_merges(const Graph& g, const Group& group,
                                    const Lowered& lowered);

// One more split that turns quotients and remainders of a single axis into plain axes;
// false when there is none left.
bool refine_splits(const Lowered& lowered, LowerSpec& spec);

} // namespace svod
