// The sums of a reduction: their accumulators, one per position of the register tile, the
// terms they take, and what is fetched ahead for them.
#pragma once

#include "compiler/codegen/write_emitter.h"
#include "compiler/kernel/byte_groups.h"
#include "compiler/kernel/matrix_tiles.h"

#include <set>

namespace svod::codegen {

class SumEmitter : public WriteEmitter {
public:
  using WriteEmitter::WriteEmitter;

protected:
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
  // The register with the group of each point, and the element that it is.
  using Groups = std::map<Point, std::pair<std::string, int>>;
  // Groups that all lanes share, of the steps that are taken together at all points of
  // the tile: each load is written where the first product needs it.
  struct SharedGroups {
    std::map<Point, GroupUse> uses; // by step
    std::vector<GroupLoad> loads;
    std::vector<std::string> names; // of the loads; empty before they are written
    std::map<std::pair<int, Point>, std::string> weights; // by quad and step
  };
  // The sums of a reduction while its loops are emitted.
  struct Sums {
    std::optional<Blocks> blocks;
    std::optional<Ahead> ahead;
    Groups groups;            // of a grouped sum, in the step being emitted
    SharedGroups shared;      // of a sum in halves, likewise
    int quad = 0;             // of its lanes, the four whose products are emitted
    std::optional<int> lanes; // of the accumulators, if less than a vector's
    // Accumulators of neighbouring steps, [way][point], and the way being emitted.
    std::vector<std::vector<std::string>> ways;
    size_t way = 0;
  };

  // Declares the accumulators; sums_ is about them until it is reset.
  std::vector<std::string> open_sums(uint32_t number, bool vector);
  void accumulate(const Stage& s, const std::string& acc, const Point& p, bool vector);
  void accumulate_groups(const std::string& acc, const Point& p, const std::string& w);
  std::vector<std::pair<size_t, size_t>> matrix_pairs(const Stage& s) const;
  void exchange_halves(const Stage& s, const std::vector<std::string>& sums);
  // Before the products of each step of a sum in halves.
  void open_shared(const Stage& s);
  // The factors of a product of bytes, the weights last.
  std::pair<ExprId, ExprId> dot_factors(const Stage& s) const;
  void join_ways(const std::string& combine);
  std::vector<std::string> across_lanes(const Stage& s, std::vector<std::string> names);
  void open_block();
  void close_block();
  bool reduces_lanes(const Stage& s) const;
  std::string sum_type(const Stage& s, bool vector) const;
  // Before the loops of a reduction, and in each step of it.
  void open_ahead(const Stage& s);
  void fetch_ahead();
  void fetch_picture(const Stage& s);

  // The tiles that make the first stage's sums before its text is reached.
  struct BlockOfTiles {
    MatrixTiles how;
    TileFactors factors;
    TileCounts counts;
    std::vector<AxisId> blocked; // outer loops whose steps are blocks
    int64_t fetched = 0;         // rows of each tile of weights ahead, in a step
  };
  std::string tile_sums_at(const Point& p) const;

  Sums sums_;
  std::optional<BlockOfTiles> tiles_;

private:
  void accumulate_dots(const Stage& s, const std::string& acc, const Point& p);
  void accumulate_halves(const Stage& s, const std::string& acc, const Point& p);
  std::string shared_group(const Expr& x, const Point& step);
  std::string quad_of_weights(ExprId w, const Point& step);
  void accumulate_pairs(const Stage& s, const std::string& acc, const Point& p);
  void accumulate_widened(const Stage& s, const std::string& acc, const Point& p);
  void accumulate_words(const Stage& s, const std::string& acc, const Point& p);
  void accumulate_across(const Stage& s, const std::string& acc, const Point& p);
  void accumulate_held(const std::string& acc, const Point& p, bool vector);
  void accumulate_product(const Expr& v, const std::string& acc, const Point& p,
                          bool vector);
  void accumulate_value(const Stage& s, const std::string& acc, const Point& p,
                        bool vector, const std::vector<Bound>& by_lane);
  Value moved_dots(const Stage& s, ExprId x, ExprId w, Point& at);
  size_t count_ways(const Stage& s) const;
  std::string& sum_beside(Point p);
  int64_t lanes_written(const Stage& s, const Point& p) const;
  int lanes_summed(uint32_t number) const;
  std::string quads() const;
  std::string summand(const std::string& value) const;
  std::optional<Ahead> find_ahead(const Stage& s) const;
};

} // namespace svod::codegen
