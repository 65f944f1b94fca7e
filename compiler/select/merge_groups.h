// Groups of fewer channels than a vector has lanes, several at a time.
//
// Of a convolution whose groups have four channels each, four groups together are one
// dense convolution of sixteen channels, whose weights between different groups are zero.
// That is four times as many products, each with whole vectors, and reads channels as
// they lie; one group by itself would need its inputs moved and fill no vector.
#pragma once

#include "compiler/select/algorithms.h"

#include <optional>

namespace svod::select {

struct GroupedConvolution {
  NodeId input = kNoNode;  // [N, C, extents, taps]: windows
  NodeId weight = kNoNode; // [1, G, OC/G, 1.., C/G, taps]
  Shape full;              // [N, G, OC/G, extents, C/G, taps]: the products
  int64_t together = 1;    // groups that become one
};
// Of a sum as the importer writes it (importer/formula/convolution.h) with known weights;
// nothing where groups fill vectors, or no few of them do.
std::optional<GroupedConvolution> match_groups(const Graph& g, NodeId reduce,
                                               const std::vector<bool>& known,
                                               int64_t lanes);

// The sum with groups merged, in the shape it had. `input` and `weight` are nodes of
// out.graph.
NodeId merge_groups(Graph& g, const GroupedConvolution& conv, NodeId input,
                    NodeId weight);

} // namespace svod::select
