// One stage of a kernel: its accumulators, the loops over its own axes, and what becomes
// of the result.
#pragma once

#include "compiler/codegen/sum_emitter.h"

#include <functional>
#include <set>

namespace svod::codegen {

class StageEmitter : public SumEmitter {
public:
  using SumEmitter::SumEmitter;

protected:
  void emit_stage(uint32_t number);
  // Before the stages from `first` to before `last`, which store once: what loops compute
  // for all of them.
  void emit_looped(uint32_t first, uint32_t last);
  // Whether a stage stores, once and always, what it computes.
  bool stores_once(const Stage& s) const;
  // Whether the loops of a reduction become a sequence of steps.
  bool is_written_out(const Stage& s) const;
  // Whether all stages write what they read, or map it, without summing.
  bool only_moves() const;
  // What a scatter's update makes of the element at `at`, both C++ text.
  std::string combined(const Stage& s, const std::string& at, const std::string& update);
  // How far the next loop of such a kernel is written out.
  void moving_hint(bool innermost, int64_t extent);
  int64_t moving_turns() const;
  // A loop's bound as text.
  std::string counted(bool free, int64_t extent) const {
    return free ? number(extent) : std::to_string(extent);
  }

private:
  using Body = std::function<void()>;
  using Place = std::pair<ExprId, Point>;
  using Registers = std::map<Point, std::string>; // their names
  void collect_looped(ExprId id, const Point& p, std::set<Place>& seen,
                      std::map<Op, std::vector<Place>>& out) const;

  // The loops of the stage, from the axis at `depth` on.
  void emit_inner(const Stage& s, size_t depth, const Body& body);
  void emit_blocks(const Stage& s, size_t depth, const std::string& end,
                   const Body& body);
  void emit_steps(const Stage& s, size_t depth, const std::string& from,
                  const std::string& to, const Body& body);
  void emit_groups(const Stage& s, const WrittenSteps& written, const std::string& to,
                   const Body& body);
  std::vector<int64_t> group_offsets(const Expr& x, const WrittenSteps& written) const;
  void open_written(const WrittenStep& step, AxisId cut, const std::string& begin);
  std::vector<std::string> weights_at(const Stage& s, const WrittenStep& step, AxisId cut,
                                      const std::string& begin);
  void emit_matrices(const Stage& s, const std::vector<Groups>& steps,
                     const std::vector<std::vector<std::string>>& weights);
  void emit_step(const Stage& s, size_t depth, const Body& body);
  void emit_ways(AxisId axis, const std::string& from, const std::string& to,
                 const Body& body);
  Registers load_elements(ExprId load);
  void emit_elements(const Stage& s, size_t depth, const std::string& from,
                     const std::string& to, const Body& body);
  void unroll_hint(const Stage& s, int64_t extent, bool innermost);
  bool is_innermost(const Stage& s, size_t depth) const;
  bool is_written_by_extent(const Stage& s, size_t depth) const;
  std::string useful_tile(const Stage& s, size_t depth);
  std::string useful_end(const Stage& s, size_t depth);

  void emit_reduce(uint32_t number);
  void emit_tile_sums(uint32_t number);
  void emit_arg_reduce(uint32_t number);
  void emit_arg_reduce_lanes(uint32_t number);
  void emit_scan(uint32_t number);
  void emit_sort(uint32_t number);
  void emit_positions(const Stage& s);
  void emit_store(const Stage& s);
  void emit_scatter(const Stage& s);
};

} // namespace svod::codegen
