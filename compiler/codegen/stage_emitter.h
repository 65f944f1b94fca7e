// One stage of a kernel: its accumulators, the loops over its own axes, and what becomes
// of the result.
#pragma once

#include "compiler/codegen/write_emitter.h"

#include <functional>
#include <set>

namespace svod::codegen {

class StageEmitter : public WriteEmitter {
public:
  using WriteEmitter::WriteEmitter;

protected:
  void emit_stage(uint32_t number);

private:
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
  // The sums of a reduction while its loops are emitted.
  struct Sums {
    std::optional<Blocks> blocks;
    std::optional<Ahead> ahead;
    std::optional<int> lanes; // of the accumulators, if less than a vector's
    // Accumulators of neighbouring steps, [way][point], and the way being emitted.
    std::vector<std::vector<std::string>> ways;
    size_t way = 0;
  };
  using Body = std::function<void()>;

  // The loops of the stage, from the axis at `depth` on.
  void emit_inner(const Stage& s, size_t depth, const Body& body);
  void emit_blocks(const Stage& s, size_t depth, const std::string& end,
                   const Body& body);
  void emit_steps(const Stage& s, size_t depth, const std::string& from,
                  const std::string& to, const Body& body);
  void emit_step(const Stage& s, size_t depth, const Body& body);
  void emit_ways(AxisId axis, const std::string& from, const std::string& to,
                 const Body& body);
  void unroll_hint(const Stage& s, int64_t extent, bool innermost);
  bool is_innermost(const Stage& s, size_t depth) const;
  std::string useful_tile(const Stage& s, size_t depth);
  std::string useful_end(const Stage& s, size_t depth);

  // Sums.
  void emit_reduce(uint32_t number);
  void accumulate(const Stage& s, const std::string& acc, const Point& p, bool vector);
  void accumulate_dots(const Stage& s, const std::string& acc, const Point& p);
  void accumulate_held(const std::string& acc, const Point& p, bool vector);
  void accumulate_value(const Stage& s, const std::string& acc, const Point& p,
                        bool vector, const std::vector<Bound>& by_lane);
  Value moved_dots(const Stage& s, ExprId x, ExprId w, Point& at);
  void accumulate_product(const Expr& v, const std::string& acc, const Point& p,
                          bool vector);
  std::vector<std::string> open_sums(uint32_t number, bool vector);
  std::vector<std::string> across_lanes(const Stage& s, std::vector<std::string> names);
  bool reduces_lanes(const Stage& s) const;
  size_t count_ways(const Stage& s) const;
  void join_ways(const std::string& combine);
  std::string& sum_beside(Point p);
  void open_block();
  void close_block();
  int64_t lanes_written(const Stage& s, const Point& p) const;
  int lanes_summed(uint32_t number) const;
  std::string sum_type(DType dtype, bool vector) const;
  std::string summand(const std::string& value) const;

  // Weights and pictures on their way.
  std::optional<Ahead> find_ahead(const Stage& s) const;
  void open_ahead();
  void fetch_ahead();
  void fetch_picture(const Stage& s);

  // Others.
  void emit_arg_reduce(uint32_t number);
  void emit_arg_reduce_lanes(uint32_t number);
  void emit_scan(uint32_t number);
  void emit_sort(uint32_t number);
  void emit_positions(const Stage& s);
  void emit_store(const Stage& s);
  void emit_scatter(const Stage& s);

  Sums sums_;
};

} // namespace svod::codegen
