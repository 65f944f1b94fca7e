// What a cut graph turns out to lack. The cut and the layouts are chosen by rules that
// read the graph; some of what they should know shows only in the kernels that come of
// them, as a load whose lanes lie far apart. What is found there is a request: a value to
// be stored, a layout. The graph is then cut again with all requests so far.
#pragma once

#include "compiler/contraction/contraction.h"
#include "compiler/kernel/lowered.h"
#include "compiler/select/assign_layouts.h"
#include "compiler/select/group.h"
#include "compiler/select/lane_reads.h"
#include "compiler/support/target.h"

namespace svod::select {

// They only grow, so that cutting again comes to an end.
struct Requests {
  std::set<NodeId> stored; // values that are stored in any case
  LayoutHints layouts;     // how stored values lie

  size_t count() const { return stored.size() + layouts.size(); }
};
std::string print(const Requests& requests);

class RequestFinder {
public:
  // `results` are those of fast forms (Algorithms).
  RequestFinder(const Stored& stored, const std::set<NodeId>& results,
                const Target& target, Requests& requests);

  // What the groups show before anything has a layout.
  void look_at_groups();
  // What a kernel shows. `written_out`: whether all is that has to be; else the kernel is
  // no use and what it computes needs another cut.
  void look_at(const Group& group, const ScheduledKernel& kernel, bool written_out);
  // What all kernels together show.
  void look_at_reads();

private:
  void store_padded_inputs();
  void store_widened_inputs();
  void store_what_sums_become();
  void store_results_below(NodeId below);
  void store_below_windows(const Group& group, const ScheduledKernel& k);
  void store_below_gathers(const Group& group, const ScheduledKernel& k);
  void store_scattered_tile(const Group& group, const ScheduledKernel& k);
  bool put_kept_axes_innermost(NodeId contraction, const OwnAxes& own,
                               const OwnAxes& other);
  bool put_columns_innermost(const Contraction& c, int64_t columns);
  bool avoid_sums_across_lanes(const Contraction& c, const ScheduledKernel& k);
  bool join_columns(const Contraction& c, const ScheduledKernel& k);
  bool lay_panels(const Group& group, const ScheduledKernel& k);
  bool follow_given(const OwnAxes& given, const OwnAxes& small);
  bool turn_operands(const Group& group, const ScheduledKernel& k);
  void turn_rows(const Group& group, const ScheduledKernel& k);
  void turn_scattered(const ScheduledKernel& k);
  void pad_rows(const Group& group);
  bool pad_vectors(BufferId id);
  void store_padded_form(NodeId value, NodeId reader);
  void fill_last_vector(Layout& layout, const Shape& shape) const;

  const Stored& s_;
  const Graph& g;
  const Grouping& grouping_;
  const std::set<NodeId>& results_;
  const Machine& machine_;
  int lanes_; // as of the first level
  // Copies that make what reads them faster: firmware has no room for them.
  bool copies_;
  bool gpu_;
  bool rounds_factors_; // tensor cores take the first bits of f32
  Requests& requests_;
  std::set<NodeId> fixed_; // no request changes how these lie in memory
  Users users_;
  std::map<BufferId, LaneReads> reads_;
};

} // namespace svod::select
