// Groups of fewer channels than a vector has lanes, several at a time.
//
// Of a convolution whose groups have four channels each, four groups together are one
// dense convolution of sixteen channels, whose weights between different groups are zero.
// That is four times as many products, each with whole vectors, and reads channels as
// they lie; one group by itself would need its inputs moved and fill no vector.
#pragma once

#include "compiler/select/forms/algorithms.h"
#include "compiler/select/forms/reading.h"

namespace svod::select {

struct GroupedConvolution {
  Reading input;        // [N, C, extents, taps]: windows
  Reading weight;       // [1, G, OC/G, 1.., C/G, taps]
  Reading result;       // of [N, G, OC/G, extents]: as the sum
  Shape full;           // [N, G, OC/G, extents, C/G, taps]: the products
  size_t extents = 0;   // how many axes of `full` are
  int64_t together = 1; // groups that become one
};
// Of a contraction with known weights; nothing where groups fill vectors, or no few of
// them do.
std::optional<GroupedConvolution> match_groups(const Graph& g, const Contraction& c,
                                               int64_t lanes);

// The least number of groups whose channels and results are whole vectors, where merging
// so many pays; 1: each by itself. `windows`: channels are summed up over taps as well.
// With windows it need not divide the groups: the last ones get groups of zeros.
int64_t groups_together(int64_t groups, int64_t inputs, int64_t outputs, int64_t lanes,
                        bool windows);

// Weights of each group, [groups, outputs, 1.., inputs, taps] -> [groups / together,
// together, outputs, together, inputs * taps], zero between different ones.
NodeId merged_weights(Graph& g, NodeId weight, int64_t groups, int64_t outputs,
                      int64_t together);

// The sum with groups merged, of floats or of bytes. `input` and `weight` are nodes of g,
// arranged as the convolution's readings.
NodeId merge_groups(Graph& g, const GroupedConvolution& conv, NodeId input,
                    NodeId weight);

// Whether groups fill vectors without zeros: lanes of one share its channels, which every
// level of the target reads as one element, or picks from a vector.
bool fill_lanes(const Graph& g, const GroupedConvolution& conv, const Target& target);
// The sum as that of single channels, each of its group's inputs: [N, G * OC/G, extents,
// C/G, taps]. `input` and `weight` as above.
NodeId spread_groups(Graph& g, const GroupedConvolution& conv, NodeId input,
                     NodeId weight);

} // namespace svod::select
