// One round of fuse(): a cut by rule, layouts of what is stored, a kernel for each group
// and its loops, and what these request of the next cut.
#pragma once

#include "compiler/made_kernels.h"
#include "compiler/passes.h"
#include "compiler/select/assign_layouts.h"
#include "compiler/select/forms/algorithms.h"
#include "compiler/select/group.h"
#include "compiler/select/requests.h"

namespace svod {

class CutRound {
public:
  struct LoweredGroup;   // with its axes cut
  struct ScheduledGroup; // with its loops

  CutRound(const select::Algorithms& algorithms, const Target& target,
           const select::RowsFirst& rows_first, FusedGraph& out, Passes& passes,
           const select::CutDecisions& decisions, MadeKernels& made)
      : algorithms_(algorithms), target_(target), rows_first_(rows_first),
        decisions_(decisions), made_(made), g(out.graph), lanes_(target.levels[0].lanes),
        level_(target.levels.back()), out_(out), passes_(passes),
        stored_{g, grouping_, out.buffers, buffer_of_, out.packed} {}
  // Fills the fused graph, as far as it is worth it, and adds to the requests.
  // Whether all that has to be is written out.
  // `last`: what is requested is not answered any more.
  bool run(select::Requests& requests, bool last);
  const std::vector<CutChoice>& choices() const { return grouping_.choices; }

private:
  StoreReason reason_of(NodeId stored) const;
  void make_buffers(const std::map<NodeId, Layout>& layouts);
  std::vector<LoweredGroup> lower_groups();
  std::vector<ScheduledGroup> schedule(std::vector<LoweredGroup> lowered);
  void add_region(NodeId node, size_t kernels_before);
  Argument region_input(NodeId node);
  Lower lower_of(const Group& group);

  const select::Algorithms& algorithms_;
  const Target& target_;
  const select::RowsFirst& rows_first_;
  const select::CutDecisions& decisions_;
  MadeKernels& made_; // by rounds before
  const Graph& g;
  int lanes_;
  const Level& level_; // chunks fit the tiles of the strongest
  FusedGraph& out_;
  Passes& passes_;
  Grouping grouping_;
  std::map<NodeId, BufferId> buffer_of_;
  Stored stored_;
};

} // namespace svod
