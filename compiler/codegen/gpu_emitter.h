// One kernel for a GPU as C++ text: which positions a thread has, and the stages at each
// of them. What a stage computes at a position is what the scalar text of a processor
// computes.
#pragma once

#include "compiler/codegen/stage_emitter.h"
#include "compiler/kernel/gpu_attention.h"

#include <functional>

namespace svod::codegen {

class GpuEmitter : private StageEmitter {
public:
  // Both outlive the emitter; `how` has a GpuSchedule.
  GpuEmitter(const ScheduledKernel& kernel, const LevelSchedule& how)
      : StageEmitter(kernel, how), gpu_(*how.gpu) {
    if (!has_neighbours()) return;
    axes_.push_back(gpu_.positions.back());
    counts_.push_back(gpu_.near);
  }
  // What follows the preludes: functions, the body, and svod_kernel.
  std::string text();

private:
  // Names axes by the number of a position along all of them, which is C++ text.
  void name_axes(const std::vector<AxisId>& axes, const std::string& number);
  std::string shared_list() const;
  void emit_stages();
  void emit_positions();
  // Whether a thread has several positions of the outer loops.
  bool has_neighbours() const {
    return gpu_.mapping == GpuMapping::Positions && gpu_.near > 1;
  }
  bool load_neighbours(ExprId id, const Point& p) override;
  bool write_neighbours(const Stage& s, const std::vector<Point>& all) override;
  // gpu_rows.cpp
  void emit_rows();
  void emit_row_stage(uint32_t number);
  void emit_row_reduce(uint32_t number);
  void emit_row_best(uint32_t number);
  void emit_row_store(const Stage& s);
  void emit_row_scan(const Stage& s);
  void emit_shared_rows();
  std::string worker() const;
  std::string sum_of_block(const Stage& s, const std::string& sum);
  std::string best_of_block(const Stage& s, const std::string& best,
                            const std::string& at);
  void name_parts();
  void leave_part(uint32_t number, const std::string& value,
                  const std::string& place = "");
  void join_parts(uint32_t number);
  void open_share(const Stage& s, int near);
  std::string of_warps() const;
  std::string shared(const std::string& name, const std::string& type,
                     const std::string& count);
  // gpu_scatter.cpp
  std::string place_of_update(const std::string& number);
  void emit_update(const std::string& place);
  void emit_batch(const std::string& first, int64_t count);
  void emit_scatter_positions();
  void emit_tile_of_places(int64_t steps);
  void emit_owned_updates();
  void name_owner();
  void emit_scatter_owners();
  void emit_scatter_kernel();
  // gpu_products.cpp
  struct SharedFactor;
  struct Factor;
  Factor factor(bool rows) const;
  std::string narrow_text(ExprId id, const Point& p);
  std::string factor_text(const SharedFactor& f, const Point& p);
  std::string load_run(const Expr& load, int near, const Point& p);
  void load_runs(ExprId value, const std::vector<AxisId>& axes, int near, const Point& p);
  void for_each_of_run(int near, const std::function<void(int)>& body);
  void emit_run(const SharedFactor& f, const std::vector<AxisId>& steps,
                const std::string& to);
  void open_run(const SharedFactor& f);
  void name_steps();
  int open_where_there(const Factor& f, const std::vector<Bound>& bounds);
  void emit_fetch(const Factor& f);
  void emit_put(const SharedFactor& f, const std::string& run);
  void emit_copy(const SharedFactor& f, const CopiedFactor& copied,
                 const std::function<int()>& open_there);
  void emit_through_registers(const Factor& rows, const Factor& columns);
  void emit_copies(const Factor& rows, const Factor& columns);
  void begin_copies();
  void emit_copied_ahead(const Factor& rows, const Factor& columns);
  void emit_multiply(const Factor& rows, const Factor& columns);
  void emit_thread_sums(const Factor& rows, const Factor& columns);
  void emit_warp_sums(const Factor& rows, const Factor& columns);
  void open_joined(int sums);
  void emit_products();
  // gpu_groups.cpp
  struct GroupInstruction;
  std::string group_definition(const GroupInstruction& of) const;
  void emit_group_sums(const Factor& rows, const Factor& columns);
  void emit_groups(const Factor& rows, const Factor& columns);
  // gpu_results.cpp
  void emit_thread_results();
  void emit_run_store(const Stage& s, const std::vector<AxisId>& axes, int near,
                      const std::function<void(int)>& name_locals);
  void emit_result(uint32_t sum, const std::vector<AxisId>& columns, int near);
  void emit_share_of_sums();
  void emit_shared_results();
  // gpu_attention.cpp
  struct Plane;
  Plane plane(AttentionFactor factor) const;
  void open_plane(const Plane& f);
  int open_inside(const Plane& f, const std::vector<Bound>& bounds);
  void emit_plane_run(const Plane& f, const std::string& to);
  void emit_plane_copy(const Plane& f);
  void emit_queries(const Plane& queries);
  void emit_moves(const std::vector<Plane>& copied, const std::vector<Plane>& fetched);
  void skip_roundings(ExprId id, const Point& p);
  void emit_scores(bool whole);
  void emit_attention_results();
  void emit_attention_loop(const Plane& queries, const Plane& keys, const Plane& values);
  void emit_attention();
  // gpu_attention_warps.cpp
  void emit_warp_queries(const Plane& queries);
  void emit_warp_keys(const Plane& keys);
  void emit_warp_place();
  void emit_warp_weights(const Plane& values);
  void emit_warp_values(const Plane& values);
  void emit_warp_totals();
  void emit_warp_column();
  // gpu_attention_groups.cpp
  void emit_group_products(const GroupInstruction& of, const std::string& sums,
                           const std::function<std::string(int64_t)>& rows, int64_t steps,
                           bool adds);
  void emit_group_keys(const Plane& queries, const Plane& keys);
  void emit_group_values(const Plane& values);
  // gpu_attention_threads.cpp
  void emit_thread_products(const std::string& sums, int64_t steps,
                            const std::string& rows, const std::string& columns,
                            int64_t count);
  void emit_thread_queries();
  void emit_thread_keys(const Plane& queries, const Plane& keys);
  void emit_thread_place();
  void emit_thread_values(const Plane& values);
  void emit_thread_totals();
  void emit_thread_column();

  const GpuSchedule& gpu_;
  std::map<std::string, std::string> shared_; // definitions of shared memory by name
  std::map<ExprId, std::string> runs_; // elements of loads that were read with others
};

} // namespace svod::codegen
