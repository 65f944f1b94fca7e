// Sums of products of bytes as products of tiles: registers of up to 16 rows of 64 bytes.
// A row of the one factor is a position with neighbouring groups of kDot bytes, a row of
// the other is such a group of all lanes, and a row of the result is a position's sums.
#pragma once

#include "compiler/kernel/schedule.h"

#include <optional>

namespace svod {

// What tiles of registers hold at most, and how many of them there are.
inline constexpr int kTileRows = 16, kTileBytes = 64, kTileRegisters = 8;

// The factors of a kernel's first stage, where tiles can be read of both.
struct TileFactors {
  const Expr* x = nullptr; // unsigned bytes of a position
  const Expr* w = nullptr; // signed bytes of all lanes
  // Loops whose steps are groups that follow each other in both factors, innermost first.
  std::vector<AxisId> run;
  int64_t w_row = 0; // bytes from one group of w to the next
};
std::optional<TileFactors> tile_factors(const ScheduledKernel& kernel);

// How far one product of `groups` neighbours goes along each axis of the run: whole axes,
// then a part of the next, which divides it. Nothing where they do not.
std::optional<std::vector<int64_t>> run_steps(const ScheduledKernel& kernel,
                                              const TileFactors& factors, int groups);

// Positions along an axis of the block: of a tile's rows, as many for each tile.
int64_t block_positions(const MatrixTiles& tiles, const TileAxis& along);

// Along each axis of the block.
std::vector<TileAxis> positions_of(const MatrixTiles& tiles);

// What is read before anything of it is written, in a step of the outer loops: a block,
// or the level's tile.
std::vector<TileAxis> step_of_loops(const LevelSchedule& level);

// Whether vectors of sums differ along the axis; else positions do.
bool is_panel_axis(const ScheduledKernel& kernel, const TileFactors& factors,
                   AxisId axis);

// Tiles of sums that registers hold at once: of positions, and of vectors beside each
// other, which the block has so many times.
struct TileCounts {
  int positions = 1, panels = 1, rounds = 1;
  int sums() const { return positions * panels; }
  // Registers for tiles of w, which take turns where there are fewer.
  int w_registers() const;
};
TileCounts tile_counts(const ScheduledKernel& kernel, const TileFactors& factors,
                       const MatrixTiles& tiles);

// Why a kernel cannot be executed so; empty where it can.
std::string tiles_misfit(const ScheduledKernel& kernel, const MatrixTiles& tiles);

} // namespace svod
