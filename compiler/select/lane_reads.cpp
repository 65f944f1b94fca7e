#include "compiler/select/lane_reads.h"

#include "compiler/kernel/lane_facts.h"

#include <algorithm>

namespace svod::select {

// The axis of the value whose neighbours lie `stride` elements apart; -1: none does, or
// several do.
static int64_t axis_of_stride(const Buffer& b, int64_t stride) {
  const Dims dims = dims_of(b.layout, b.shape);
  int64_t found = -1;
  for (size_t i = 0; i < dims.strides.size(); ++i) {
    const int64_t axis = b.layout.order[i];
    if (dims.strides[i] != stride || b.shape[static_cast<size_t>(axis)] == 1) continue;
    if (found >= 0 || axis == b.layout.block_axis) return -1;
    found = axis;
  }
  return found;
}

void add_lane_reads(const ScheduledKernel& k, NodeId root,
                    const std::vector<Buffer>& buffers,
                    std::map<BufferId, LaneReads>& reads) {
  if (!k.has_lane_axis()) return;
  std::map<BufferId, double> apart;
  for (const Stage& s : k.stages) {
    const double elements = positions_of(k.indices, loops_of(k, s));
    const auto add = [&](uint32_t argument, const Index& index, bool written) {
      int64_t stride = 0;
      if (k.arguments[argument].kind != Argument::Kind::Buffer ||
          !k.indices.affine_in(index, *k.loops.lane, stride) || stride <= 0)
        return;
      const BufferId id = k.arguments[argument].id;
      if (stride <= kNearLanes) {
        reads[id].near += elements;
      } else if (const int64_t axis = axis_of_stride(buffers[id], stride);
                 axis >= 0 && !written) {
        reads[id].apart[axis] += elements;
        apart[id] += elements;
      }
    };
    for (ExprId load : loads_below(k, s.value))
      add(k.exprs[load].argument, k.exprs[load].index, false);
    if (s.kind == StageKind::Store) add(s.argument, s.index, true);
  }
  for (const auto& [id, elements] : apart)
    if (LaneReads& all = reads[id]; elements > all.most)
      all.most = elements, all.reader = root;
}

bool joins_slivers(const Graph& g, NodeId n, int lanes) {
  const Node& join = g[n];
  return join.op == Op::Concat && join.payload[0] == 1 &&
         std::ranges::all_of(join.inputs,
                             [&](NodeId part) { return 2 * g[part].shape[1] < lanes; });
}

} // namespace svod::select
