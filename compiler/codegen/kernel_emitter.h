// One kernel of one CPU level as C++ text.
#pragma once

#include "compiler/kernel/byte_products.h"
#include "compiler/kernel/dependence.h"
#include "compiler/kernel/lane_facts.h"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace svod::codegen {

// text() is what follows the prelude: scalar functions used, the body, and svod_kernel;
// definitions() all of it but svod_kernel. One of them is asked for, once.
class KernelEmitter {
public:
  // `kernel` with vectors as long as `how` says, which outlive the emitter.
  KernelEmitter(const ScheduledKernel& kernel, const LevelSchedule& how);
  std::string definitions();
  std::string text();

private:
  // A position within the register tile: offset per tile axis.
  using Point = std::vector<int>;
  struct Value {
    std::string name;
    bool vector = false;
  };
  using Frame = std::map<std::pair<ExprId, Point>, Value>;
  // A sum made of sums, while it is emitted.
  struct Blocks {
    SumBlocks how;
    std::string type;
    std::vector<std::string> totals;
    std::map<Point, std::string> beside; // sums of the others, for the offset
    std::set<std::string> summed_at;     // those that have their term of this step
  };
  // The weight panels after those of the tile.
  struct Ahead {
    WeightPrefetch how;
    int64_t panels = 1;      // of the tile
    int64_t sweeps = 1;      // tiles of data that read the panels
    int64_t each = 1;        // panels fetched in a sweep
    std::string offset = ""; // of the first of them
  };
  // A byte by the number of another one.
  struct Lookup {
    std::string name; // of the table
    ExprId source = 0;
  };

  // Loops.
  void emit_outer(size_t depth);
  void emit_range(size_t depth, const std::string& low, const std::string& high,
                  const std::vector<int64_t>& lengths);
  void emit_tiles();
  void emit_inner(const Stage& s, size_t depth, const std::function<void()>& body);
  std::string product(const std::vector<ExprId>& factors, const Point& p, bool vector);
  std::string& sum_beside(Point p);
  void open_block();
  void close_block();
  bool tile_span(const Index& index, int64_t& least, int64_t& most) const;
  std::string useful_tile(const Stage& s, size_t depth);
  std::string useful_end(const Stage& s, size_t depth);
  int64_t lanes_written(const Stage& s, const Point& p) const;
  int lanes_summed(uint32_t number) const;
  std::string sum_type(DType dtype, bool vector) const;
  std::string summand(const std::string& value) const;
  void unroll_hint(const Stage& s, int64_t extent, bool innermost);
  void emit_ways(AxisId axis, const std::string& from, const std::string& to,
                 const std::function<void()>& body);
  bool needs_peel(AxisId axis, bool high) const;
  void narrow(AxisId axis, int64_t low, int64_t high);
  void open(const std::string& head);
  void close();

  // Stages.
  void emit_stage(uint32_t number);
  void emit_reduce(uint32_t number);
  ExprId start_of(ExprId sum, uint32_t number) const;
  size_t count_ways(const Stage& s) const;
  void join_ways(const std::string& combine);
  void emit_arg_reduce(uint32_t number);
  void emit_arg_reduce_lanes(uint32_t number);
  void emit_scan(uint32_t number);
  void emit_sort(uint32_t number);
  void emit_positions(const Stage& s);
  Value moved_dots(const Stage& s, ExprId x, ExprId w, Point& at);
  void accumulate(const Stage& s, const std::string& acc, const Point& p, bool vector);
  void emit_write(const Stage& s, const Value& value, const Point& p);
  bool writes_columns(const Stage& s, const std::vector<Point>& all) const;
  void emit_columns(const Stage& s, const std::vector<Point>& all);
  void emit_lane_writes(const Stage& s, const Value& value, const Point& p,
                        const std::string& condition);

  // Bytes.
  std::optional<Value> make_byte_cast(const Expr& e, const Point& p);
  const Lookup* lookup_of(ExprId id);
  Value make_lookup(const Lookup& table, DType dtype, const Point& p);
  bool emit_byte_rows(const Stage& s, const std::vector<Point>& all);

  // Weights and pictures on their way.
  std::optional<Ahead> find_ahead(const Stage& s) const;
  void open_ahead();
  void fetch_ahead();
  void fetch_picture(const Stage& s);

  // Expressions.
  Value eval(ExprId id, const Point& p);
  Value make(ExprId id, const Point& p);
  Value make_load(const Expr& e, const Point& p);
  Value make_near_load(const Expr& e, const Point& p, int64_t step,
                       const std::string& guard, const std::vector<Bound>& by_lane);
  Value make_dot_load(const Expr& e, const Point& p);
  Value make_dot_map(const Expr& e, const Point& p);
  Value make_map(const Expr& e, const Point& p);
  Value make_descend(ExprId id, const Point& p);
  std::string descend_text(const Expr& e, const Point& p, const std::string& root,
                           bool lanewise);
  Value make_cast(const Expr& e, const Point& p);
  Value make_guard(const Expr& e, const Point& p);
  Value make_position(const Expr& e, const Point& p);
  std::string splat(const Value& v, DType dtype) const;
  std::string function_of(Op op, DType result, const std::vector<DType>& inputs,
                          bool vector);
  std::string index_text(const Index& index, const Point& p, bool lanewise);
  std::string term_text(const Term& t, const Point& p, bool lanewise);
  bool holds(const Bound& b, const Point& p) const;
  std::string condition(const std::vector<Bound>& bounds, const Point& p, bool lanewise);
  // When the bounds cut the vector after some first lanes: their number as text.
  bool first_lane_count(const std::vector<Bound>& bounds, const Point& p,
                        std::string& count);
  // When they leave the lanes from `low` to before `high`: these as text.
  bool lane_range(const std::vector<Bound>& bounds, const Point& p, std::string& low,
                  std::string& high);
  void split_bounds(const std::vector<Bound>& bounds, const Point& p,
                    std::vector<Bound>& uniform, std::vector<Bound>& by_lane) const;
  std::vector<Range> ranges_at(const Point& p) const;
  Point project(ExprId id, const Point& p) const;
  bool depends(ExprId id, AxisId axis) const { return dependence_[id][axis]; }
  bool on_lanes(ExprId id) const {
    return k_.has_lane_axis() && dependence_[id][*k_.loops.lane];
  }
  const StageSchedule& how(const Stage& s) const {
    return how_.stages[static_cast<size_t>(&s - k_.stages.data())];
  }
  bool lane_dependent(const Index& index) const;
  std::string fresh(const char* prefix) { return prefix + std::to_string(next_++); }
  std::string declare(const std::string& type, const std::string& init);
  std::string type(DType dtype, bool vector) const;
  void line(const std::string& text);
  std::vector<Point> points() const;
  int offset_of(AxisId axis, const Point& p) const;

  const ScheduledKernel& k_;
  const LevelSchedule& how_;
  std::vector<int> counts_; // active size per tile axis
  Dependence dependence_;
  std::vector<Range> narrowed_;
  std::vector<Frame> frames_;
  std::map<std::pair<uint32_t, Point>, Value> locals_;
  std::optional<Blocks> blocks_;  // of the stage being emitted
  std::optional<Ahead> ahead_;    // likewise
  std::optional<int> short_sums_; // lanes of its accumulators, if less than a vector's
  // Accumulators of neighbouring steps, [way][point], and the way being emitted.
  std::vector<std::vector<std::string>> ways_;
  size_t way_ = 0;
  std::map<std::string, std::string> functions_; // signature key -> definition
  std::map<ExprId, Lookup> lookups_;             // of bytes that were asked for
  std::string out_;
  int indent_ = 1;
  int next_ = 0;
};

// The same as KernelEmitter::text() of a kernel that is a sequence, by the number of the
// level in its parts' schedules.
std::string sequence_text(const ScheduledKernel& kernel, size_t level);

// Whether the kernel needs what is there for floats that become bytes.
bool makes_bytes(const ScheduledKernel& kernel);

// Of a parameter of a kernel's body.
std::string pointer_type(const Argument& argument);
// Element type names in emitted text.
std::string store_type(DType dtype);
std::string compute_type(DType dtype);
// A value of the compute type rounded to the dtype, and a stored element in the compute
// type.
std::string rounded(DType dtype, const std::string& value);
std::string from_store(DType dtype, const std::string& value);
std::string to_store(DType dtype, const std::string& value);
std::string literal(DType dtype, uint64_t bits);

} // namespace svod::codegen
