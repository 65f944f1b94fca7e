// How a kernel runs: every choice that is not what it computes. A kernel and its schedule
// together are all that code generation needs; it prints them and chooses nothing.
//
// What holds on every CPU level, because all levels read the same packed weights and the
// plan counts the chunks, is in Loops; the rest is one LevelSchedule per level.
#pragma once

#include "compiler/kernel/gpu_schedule.h"
#include "compiler/kernel/kernel.h"

namespace svod {

// Parallel parts: axis positions in blocks; chunk numbers enumerate the blocks row-major.
struct ChunkAxis {
  AxisId axis;
  int64_t block;
  bool operator==(const ChunkAxis&) const = default;
};

// Products that one step of a dot axis adds up: four bytes fill the 32 bits of a lane.
inline constexpr int kDot = 4;

struct Loops {
  std::vector<AxisId> outer;              // Kernel::outer, outermost loop first
  std::vector<std::vector<AxisId>> inner; // by stage: Stage::inner, outermost loop first
  // The axis that is executed as one vector; it has exactly `lanes` positions.
  std::optional<AxisId> lane;
  int lanes = 1;
  // The axis of kDot positions whose bytes one instruction multiplies and adds.
  std::optional<AxisId> dot;
  std::vector<ChunkAxis> chunks;
  bool in_parts = false; // the chunks are the parts of a chain
  bool repeated = false; // a loop's body whose weights a cache has from the last step

  bool operator==(const Loops&) const = default;
};

// How many positions of `axis` the tile has, and how many it has in all.
int tile_count(const std::vector<TileAxis>& tile, AxisId axis);
int64_t tile_points(const std::vector<TileAxis>& tile);

// The first and last positions of an axis have text of their own where a condition can
// fail only there: one on lanes, or one on what all lanes of a sum of products share.
struct PeeledAxis {
  enum class Condition : uint8_t { OnLanes, OnShared } condition;
  AxisId axis;
  bool operator==(const PeeledAxis&) const = default;
};

// How far loops of a reduction are written out. A nest whose steps, times the positions
// of the tile, are at most `nest` is written out whole; under a tile of one or two
// positions at most `small_nest`. Beyond that the innermost loop takes `by` steps at a
// time where they divide it, and under such a small tile a loop of at most `free` steps
// is left to the compiler.
struct Unroll {
  int64_t nest = 0, small_nest = 0, free = 0;
  int by = 1;
  bool off = false; // no loop is written out, in whole or in part
  bool operator==(const Unroll&) const = default;
};

// A sum made of sums, which fixes how it rounds. The `steps` of the loop over `loop` are
// summed on their own; or, with `held` factors, which change with that loop alone, what
// is below one step of it is, and then multiplied by them. `summed` are the other
// factors; `offset` is subtracted from the last one of them.
struct SumBlocks {
  AxisId loop = 0;
  int64_t steps = 0;
  std::vector<ExprId> held, summed;
  std::optional<ExprId> offset;
  bool operator==(const SumBlocks&) const = default;
};

// While a tile of panels of a packed weight is read for the first time, the panels behind
// it are fetched. `panels` is the axis whose positions are panels; the tiles along
// `sweep` read the same ones again (itself: none do). Not where the panels ahead exceed
// `most_bytes`, nor, where they are swept once, for tiles of at most `stream_rows` rows
// whose panels exceed `stream_bytes`: those are streams that the processor follows.
struct WeightPrefetch {
  ExprId load = 0;
  AxisId panels = 0, sweep = 0;
  int64_t panel_elements = 0;
  int64_t most_bytes = 0, stream_bytes = 0, stream_rows = 0;
  bool operator==(const WeightPrefetch&) const = default;
};

// Each tile fetches the rows of a picture that the windows below it are the first to
// meet: `rows` walks down the picture, `window` down a window of it.
struct PicturePrefetch {
  ExprId load = 0;
  AxisId rows = 0, window = 0;
  int64_t line_bytes = 0;
  bool operator==(const PicturePrefetch&) const = default;
};

// A sum of products of bytes that tiles of registers multiply: `rows` positions of `axis`
// are the rows of one factor, a vector of lanes is a row of the other, and so many
// `groups` of kDot neighbours are the columns and rows along which they meet. `block`
// says how many tiles of sums lie in a block of memory, along the axes of positions and
// of vectors, before what follows reads them by the level's tile. Registers hold those of
// `at_once` vectors of the block, and of all its positions.
struct MatrixTiles {
  AxisId axis = 0;
  int rows = 1, groups = 1, at_once = 1;
  std::vector<TileAxis> block;
  bool operator==(const MatrixTiles&) const = default;
};

struct StageSchedule {
  Unroll unroll;
  // Vectors of sums that a reduction keeps at once. Where the tile has fewer positions,
  // neighbouring steps of the innermost loop add to sums of their own, if the loop has at
  // least `rounds` rounds of them.
  int64_t sums = 1, rounds = 0;
  std::optional<SumBlocks> blocks;
  std::vector<WeightPrefetch> weights; // the first one that its limits allow
  std::optional<PicturePrefetch> picture;
  // Sums of which only first lanes are stored are as short as that, not below so many
  // lanes; 0: they are whole vectors.
  int shortest_sum = 0;
  // The addition of known numbers to the sum that the sum begins with instead.
  std::optional<ExprId> begins_with;
  // A branch around steps at which a factor is zero, where at least so many are below it;
  // 0: none.
  int64_t skipped_steps = 0;
  // The factor that all lanes share is read for so many steps of the innermost loop at
  // once, of which each product takes an element (shared_elements.h). 0: one by one.
  int elements = 0;
  // Stores whose lanes lie apart, at least so many positions of the tile that are
  // neighbours: rows and columns are swapped in registers. 0: they are not.
  int columns = 0;
  // A sum of products of bytes whose lanes are summed by every step, into one register
  // of 32 bits each.
  bool across = false;
  // Sums of two neighbouring lanes share a register of 64 bits, and so do the bytes that
  // are multiplied by one number for both.
  bool paired = false;
  // Both bytes of a product are widened to 16 bits, and the product is added as 32 bits.
  bool widened = false;
  // Weights of neighbouring lanes, which are bytes, are read four at a time.
  bool words = false;
  // Of products of four bytes the sums of both pairs are apart until the end.
  bool halves = false;
  // Products of four bytes take the factor that all lanes share from registers of four
  // groups, and sums are as many registers of four lanes as are stored.
  bool grouped = false;
  // Of these, two positions, two lanes and two steps are one instruction.
  bool matrices = false;
  // Steps that a sum with halves takes together: their products are added in 16 bits
  // before they are added to it.
  std::vector<TileAxis> together;
  // Vectors narrowed to bytes are stored four neighbours of the tile at a time.
  bool byte_rows = false;
  // Products of bytes between tiles of registers, of many positions at once.
  std::optional<MatrixTiles> tiles;

  bool operator==(const StageSchedule&) const = default;
};

// What one CPU level does beside the loops that all of them have.
struct LevelSchedule {
  std::string level; // its suffix in targets.def
  // Elements of a vector in the text. Where the kernel's lane axis has more, each vector
  // is executed as parts of it, on an innermost loop of their own (cut_lanes).
  int lanes = 1;
  bool small = false;         // compiled for bytes, too
  std::vector<TileAxis> tile; // positions of the last one follow each other
  std::vector<PeeledAxis> peeled;
  // Bytes that are found in a table by the byte that they are made of.
  std::vector<ExprId> tables;
  int64_t near_lanes = 0;   // lanes at most so far apart: whole vectors, shuffled
  bool pack_scalars = true; // the compiler may make vectors of scalar code
  // Integers become bytes by instructions that saturate.
  bool narrows = false;
  // Functions of one value that a loop over an array computes, for all positions of a
  // tile and all stages that follow each other and store.
  std::vector<ExprId> looped;
  // Functions of scalars, or of one register, that are called instead of written out.
  std::vector<ExprId> called;
  std::vector<StageSchedule> stages;
  std::optional<GpuSchedule> gpu; // on a level that is one

  bool operator==(const LevelSchedule&) const = default;
};

struct KernelSchedule {
  Loops loops;
  std::vector<LevelSchedule>
      levels; // in the order of the target's; empty: not chosen yet
};

// A kernel with its schedule. What needs only the kernel takes a Kernel.
struct ScheduledKernel : Kernel, KernelSchedule {
  bool has_lane_axis() const { return loops.lane.has_value(); }
  bool has_dot_axis() const { return loops.dot.has_value(); }
  bool is_lane(AxisId a) const { return loops.lane == a; }
  bool is_dot(AxisId a) const { return loops.dot == a; }
  // The lane axis and the dot axis are no loops.
  bool is_loop(AxisId a) const {
    return indices.extent(a) != 1 && !is_lane(a) && !is_dot(a);
  }
  // The loops of one of this kernel's own stages, outermost first.
  const std::vector<AxisId>& inner(const Stage& stage) const {
    return loops.inner[static_cast<size_t>(&stage - stages.data())];
  }
  int64_t chunk_count() const;

  // Both, for byte_form.h.
  template <class Visit> void with_parts(Visit&& visit) {
    visit(static_cast<Kernel&>(*this), static_cast<KernelSchedule&>(*this));
  }
  template <class Visit> void with_parts(Visit&& visit) const {
    visit(static_cast<const Kernel&>(*this), static_cast<const KernelSchedule&>(*this));
  }
};

// How many positions of an outer axis the loop over its middle may meet, `first` and
// `last` position being emitted for themselves: one number per kind of chunk.
std::vector<int64_t> range_lengths(const ScheduledKernel& kernel, AxisId axis, bool first,
                                   bool last);

// How often the loop over an outer axis, in steps of the tile, is run at most.
int64_t tile_trips(const ScheduledKernel& kernel, const std::vector<TileAxis>& tile,
                   AxisId axis);

// The kernel with its lane axis cut into `parts`, the parts on an innermost outer loop.
// Nothing where data say what is read, or a condition looks at lanes of no groups.
std::optional<ScheduledKernel> cut_lanes(const ScheduledKernel& kernel, int parts);

// All axes in the order in which lowering made them.
Loops plain_loops(const Kernel& kernel);

} // namespace svod
