// The state of lowering one group: shared by lower.cpp, lower_views.cpp and
// lower_reduce.cpp.
#pragma once

#include "compiler/ir/evaluate.h"
#include "compiler/lower/lower.h"

#include <set>
#include <tuple>

namespace svod::lower {

using At = std::vector<Index>;

// Its methods are many because they are one recursion: each kind of node asks for the
// values below it at positions of its own, and all of them share the kernel that grows,
// the conditions above and what was lowered before.

class Lowering {
public:
  Lowering(const Group& group, const LowerSpec& spec, Stored& stored)
      : group_(group), spec_(spec), s_(stored), g(stored.graph) {}
  Lowered run();

private:
  At make_dims(NodeId node, const Shape& shape);
  bool is_reduced(NodeId node, int64_t axis) const;
  Index make_dim(Dim dim, int64_t extent);
  std::vector<Bound> overflow(const At& at, const Shape& shape) const;
  ExprId value(NodeId n, const At& at);
  ExprId compute(NodeId n, const At& at);
  ExprId view(NodeId n, const At& at);
  bool never_holds(const Bound& bound);
  bool stores_nothing(const At& at);
  const Buffer* stored_buffer(NodeId n) const; // none: it is not stored
  NodeId below_lane_pads(NodeId n) const;
  ExprId pad(NodeId n, const At& at);
  ExprId concat(NodeId n, const At& at);
  bool known_below(NodeId index, int64_t limit) const;
  ExprId gather(NodeId n, const At& at);
  ExprId with_check(ExprId picked, ExprId position);
  ExprId descend(NodeId n, const At& at);
  ExprId index_where_needed(NodeId index, const At& at);
  ExprId reduce(NodeId n, const At& at);
  void make_inner_dims(NodeId n, const std::vector<int64_t>& axes, const Shape& shape,
                       At& at);
  ExprId unrolled_sum(NodeId n, const At& at);
  bool next_unrolled();
  ExprId load_stored(NodeId n, const At& at);
  ExprId load_weight(NodeId n, const At& at);
  ExprId load(uint32_t argument, DType dtype, Index index, std::vector<Bound> bounds);
  uint32_t dense_weight(NodeId n);
  uint32_t argument(Argument::Kind kind, uint32_t id, DType dtype, bool written);
  bool decodes(NodeId n) const;
  bool known_through_views(NodeId n) const;
  void reduce_stage(NodeId n, const At& input_at, std::vector<AxisId> inner,
                    std::vector<Bound> domain, Index position);
  void store_stage(StageKind kind, ExprId value, std::vector<AxisId> inner, const At& at);
  std::vector<Bound> useful_bounds(ExprId product) const;
  void write_to(Stage& stage, const At& at);
  void fill_block(Stage& stage, const At& at);
  void lower_special(NodeId root);
  void note_node(NodeId n);

  Kernel& k() { return out_.kernel; }
  IndexPool& pool() { return out_.kernel.indices; }

  const Group& group_;
  const LowerSpec& spec_;
  Stored& s_;
  const Graph& g;
  Lowered out_;
  At root_at_;
  std::vector<Bound> conditions_; // of the pads above
  std::map<std::tuple<NodeId, At, std::vector<Bound>>, ExprId> memo_;
  std::map<std::pair<NodeId, At>, uint32_t> stage_of_;
  std::map<AxisId, int64_t> unrolled_at_;
  std::map<NodeId, Tensor> matrices_; // known factors of unrolled reductions
  std::map<ExprId, std::vector<Bound>> zero_outside_; // loads that reach into a border
};

// 0 <= x / c < n  is  0 <= x < n * c: keeps conditions on merged axes affine.
Bound normal_bound(const IndexPool& pool, Bound b);

} // namespace svod::lower
