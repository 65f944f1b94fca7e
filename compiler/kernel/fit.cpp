#include "compiler/kernel/fit.h"

#include "compiler/kernel/byte_table.h"
#include "compiler/kernel/matrix_tiles.h"
#include "compiler/kernel/stage_work.h"
#include "compiler/support/target.h"

#include <algorithm>

namespace svod {

namespace {

std::string axis_name(AxisId a) { return "i" + std::to_string(a); }

// Positions along one outer loop that are taken together, of a chunk or a tile: `what`.
struct Block {
  AxisId axis;
  int64_t positions;
};

// Each outer loop once, but for the lane's, by no more positions than it has.
std::string block_misfit(const std::string& what, const Kernel& k, const Loops& loops,
                         const std::vector<Block>& blocks) {
  std::vector<AxisId> seen;
  for (const auto& [axis, positions] : blocks) {
    if (!contains(loops.outer, axis) || loops.lane == axis || contains(seen, axis))
      return axis_name(axis) + " is no outer loop that " + what +
             " can have positions of";
    if (positions < 1 || positions > k.indices.extent(axis))
      return what + " of " + std::to_string(positions) + " positions of " +
             axis_name(axis) + ", which has " + std::to_string(k.indices.extent(axis));
    seen.push_back(axis);
  }
  return "";
}

std::string chunk_misfit(const Kernel& k, const Loops& loops) {
  std::vector<Block> blocks;
  for (const ChunkAxis& c : loops.chunks) blocks.push_back({c.axis, c.block});
  return block_misfit("a chunk", k, loops, blocks);
}

// Stages that compute one position at a time.
bool takes_tiles(const Kernel& k) {
  return std::ranges::none_of(k.stages, [](const Stage& s) {
    return s.kind == StageKind::Scatter || s.kind == StageKind::Sort;
  });
}

std::string misfit(const ScheduledKernel& k, const std::vector<TileAxis>& tile) {
  constexpr int64_t kMostPositions = 256;
  std::vector<Block> blocks;
  for (const TileAxis& t : tile) blocks.push_back({t.axis, t.count});
  if (std::string why = block_misfit("a tile", k, k.loops, blocks); !why.empty())
    return why;
  if (tile_points(tile) > kMostPositions)
    return "a tile of " + std::to_string(tile_points(tile)) + " positions; " +
           std::to_string(kMostPositions) + " are the limit";
  if (!tile.empty() && !takes_tiles(k)) return "a scatter or a sort takes no tile";
  return "";
}

template <class T>
bool same_or_none(const std::optional<T>& value, const std::optional<T>& chosen) {
  return !value || value == chosen;
}

std::string stage_misfit(const StageSchedule& s, const StageSchedule& chosen) {
  if (s.unroll.by < 1 || s.unroll.nest < 0 || s.unroll.small_nest > s.unroll.nest)
    return "an unrolling of " + std::to_string(s.unroll.nest) + " steps by " +
           std::to_string(s.unroll.by);
  if (s.sums < 1 || s.sums > 256 || s.rounds < 0)
    return std::to_string(s.sums) + " sums at once";
  const bool free_blocks = s.blocks && s.blocks->held.empty() && s.blocks->steps > 0 &&
                           chosen.blocks && chosen.blocks->held.empty() &&
                           s.blocks->loop == chosen.blocks->loop;
  if (!free_blocks && !same_or_none(s.blocks, chosen.blocks))
    return "other blocks of a sum than the packer found";
  for (const WeightPrefetch& w : s.weights)
    if (std::ranges::none_of(chosen.weights, [&](const WeightPrefetch& c) {
          return c.load == w.load && c.panels == w.panels && c.sweep == w.sweep &&
                 c.panel_elements == w.panel_elements;
        }))
      return "weights to fetch that the packer did not find";
  if (!same_or_none(s.picture, chosen.picture))
    return "a picture to fetch that the packer did not find";
  if (!same_or_none(s.begins_with, chosen.begins_with))
    return "a sum that begins with another addition";
  if (s.shortest_sum != 0 && s.shortest_sum != chosen.shortest_sum)
    return "sums of " + std::to_string(s.shortest_sum) + " lanes";
  if (s.skipped_steps < 0) return "a negative number of steps to skip";
  if (s.elements != 0 && s.elements != chosen.elements)
    return "elements of registers that the packer did not find";
  if (s.columns != 0 && (chosen.columns == 0 || s.columns < chosen.columns))
    return "columns where no store has lanes apart";
  if (s.halves != chosen.halves)
    return "halves of sums, or whole ones, instead of the other";
  if (s.grouped != chosen.grouped || s.matrices != chosen.matrices)
    return "groups of bytes from registers, or one by one, instead of the other";
  if (!s.together.empty() && s.together != chosen.together)
    return "steps together whose products are not known to fit 16 bits";
  if (s.paired != chosen.paired) return "sums in pairs, or apart, instead of the other";
  if (s.widened != chosen.widened)
    return "products of widened bytes, or of integers, instead of the other";
  if (s.words && !chosen.words) return "words where weights are no words";
  if (s.across != chosen.across)
    return "sums across lanes, or none, instead of the other";
  if (s.byte_rows && !chosen.byte_rows) return "bytes where none are stored";
  return "";
}

} // namespace

std::string misfit(const Kernel& k, const Loops& loops, const Loops& chosen) {
  if (!same_axes(loops.outer, k.outer))
    return "the outer loops are not those of the kernel";
  for (size_t i = 0; i < std::max(loops.inner.size(), k.stages.size()); ++i) {
    const bool known = i < loops.inner.size() && i < k.stages.size();
    if (known ? !same_axes(loops.inner[i], k.stages[i].inner)
              : i >= k.stages.size() || !k.stages[i].inner.empty())
      return "the loops of s" + std::to_string(i) + " are not those of the kernel";
  }
  if (loops.lane != chosen.lane || loops.lanes != chosen.lanes || loops.dot != chosen.dot)
    return "lanes and dots are cut when a kernel is lowered and cannot change here";
  if (loops.in_parts != chosen.in_parts ||
      (chosen.in_parts && loops.chunks != chosen.chunks))
    return "its chunks are the parts of a chain of kernels and cannot change alone";
  if (loops.repeated != chosen.repeated) return "whether a loop repeats it is no choice";
  return chunk_misfit(k, loops);
}

std::string tile_misfit(const ScheduledKernel& kernel, const LevelSchedule& level,
                        const LevelSchedule& chosen) {
  if (level.lanes != chosen.lanes)
    return "vectors of " + std::to_string(level.lanes) + " elements; " +
           std::to_string(chosen.lanes) + " are what its tile is chosen for";
  std::optional<ScheduledKernel> cut;
  if (kernel.has_lane_axis() && level.lanes < kernel.loops.lanes)
    cut = cut_lanes(kernel, kernel.loops.lanes / level.lanes);
  return misfit(cut ? *cut : kernel, level.tile);
}

std::string misfit(const ScheduledKernel& kernel, const LevelSchedule& level,
                   const LevelSchedule& chosen) {
  if (std::string why = tile_misfit(kernel, level, chosen); !why.empty()) return why;
  for (const PeeledAxis& p : level.peeled)
    if (std::ranges::find(chosen.peeled, p) == chosen.peeled.end())
      return "a peeled axis whose ends are like the rest";
  for (ExprId id : level.tables)
    if (!contains(chosen.tables, id)) return "a table of what is no function of a byte";
  if (level.near_lanes < 0 || level.near_lanes > chosen.near_lanes)
    return "lanes " + std::to_string(level.near_lanes) + " apart to be shuffled";
  for (ExprId id : level.looped)
    if (!contains(chosen.looped, id)) return "a loop over what costs little";
  for (ExprId id : level.called)
    if (!contains(chosen.called, id)) return "a call of what is short";
  if (level.gpu.has_value() != chosen.gpu.has_value())
    return "threads of a GPU, or none, instead of the other";
  if (level.gpu && !level.tile.empty())
    return "a register tile of a processor beside threads of a GPU";
  if (level.gpu)
    if (std::string why = gpu_misfit(kernel, *level.gpu); !why.empty()) return why;
  if (level.gpu && level.gpu->mapping == GpuMapping::Products &&
      level.gpu->product.matrices() && !chosen.gpu->product.matrices() &&
      rounds_factors(kernel))
    return "tensor cores that round its factors, which --accuracy tf32 allows";
  if (level.gpu && level.gpu->mapping == GpuMapping::Products &&
      level.gpu->product.by == Multiplier::Group &&
      find_device(level.level)->levels[0].machine.group_products_per_clock == 0)
    return "groups of warps that multiply, which " + level.level + " has not";
  if (level.narrows && !chosen.narrows) return "narrowing that the level lacks";
  if (level.stages.size() > chosen.stages.size()) return "more stages than it has";
  for (size_t i = 0; i < level.stages.size(); ++i)
    if (std::string why = stage_misfit(level.stages[i], chosen.stages[i]); !why.empty())
      return "s" + std::to_string(i) + ": " + why;
  for (size_t i = 0; i < chosen.stages.size(); ++i) {
    const bool has = i < level.stages.size() && level.stages[i].tiles.has_value();
    if (has != chosen.stages[i].tiles.has_value())
      return "tiles of registers, or none, instead of the other";
    if (!has) continue;
    const MatrixTiles& tiles = *level.stages[i].tiles;
    if (std::string why = tiles_misfit(kernel, tiles); !why.empty())
      return "s" + std::to_string(i) + ": " + why;
    for (const TileAxis& t : level.tile)
      if (std::ranges::find(tiles.block, t.axis, &TileAxis::axis) == tiles.block.end())
        return "a tile along " + axis_name(t.axis) + ", along which blocks have no tiles";
  }
  return "";
}

} // namespace svod
