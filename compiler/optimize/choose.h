// How a kernel is executed: which axis is the vector, in which order loops run, how the
// outer loops are cut into parallel chunks, and in which order weights are laid out.
#pragma once

#include "compiler/kernel/dependence.h"
#include "compiler/kernel/lane_facts.h"
#include "compiler/kernel/lowered.h"

namespace svod::optimize {

// An axis that is executed as vectors of `lanes` elements, by its place in a dimension;
// it may have to be cut.
struct LaneAxis {
  Dim dim;
  size_t place;
  int lanes;
};

// The axis to vectorise by `lanes`, or by fewer where a piece of an axis has no more.
// Nothing when scalar code is as good.
std::optional<LaneAxis> choose_lane(const Lowered& lowered, int lanes,
                                    const Level& level);

// Replaces dense weights by weights in the order the kernel reads them.
void pack_weights(ScheduledKernel& kernel, std::vector<PackedWeight>& packed,
                  const Level& level);

// Orders loops for reuse: weights that exceed a cache stay while activations stream past.
void order_loops(ScheduledKernel& kernel, const std::vector<PackedWeight>& packed,
                 const std::vector<Buffer>& buffers, const Machine& machine);

// Cuts outer loops into chunks by the work in them, in whole register tiles of `level`;
// sets flops and bytes.
void choose_chunks(ScheduledKernel& kernel, const std::vector<PackedWeight>& packed,
                   const std::vector<Buffer>& buffers, const Level& level);

// Costly values that both a reduction and the store need are computed once.
void keep_costly_values(ScheduledKernel& kernel);

// What a softmax would lose beside the sum of its row is 0.
void flush_tails(ScheduledKernel& kernel);

// Positions of a tile times steps of a loop that are written out together, so that
// neighbouring positions share what they load.
inline constexpr int64_t kWrittenOut = 128;

// The register tile of one CPU level: as many accumulators as its registers hold, shaped
// for the fewest loads per multiply-add.
Tile choose_tile(const ScheduledKernel& kernel, const Level& level);

// The tiles of registers that multiply the first stage's bytes, where the level has them
// and they take less time than its vectors; and the register tile of what follows the
// sum.
std::optional<MatrixTiles> choose_tiles(const ScheduledKernel& kernel,
                                        const Level& level);
std::vector<TileAxis> tile_after(const ScheduledKernel& kernel, const MatrixTiles& tiles);

// What threads and blocks of a GPU do.
GpuSchedule choose_gpu(const ScheduledKernel& kernel, const Level& level);

// Elements of the vectors that the kernel is executed by: as many as its lane axis has,
// or as one register of the level holds where those are as good.
int choose_lanes(const ScheduledKernel& kernel, const Level& level);

// All that it may be executed by, as long as the lane axis first.
std::vector<int> lane_counts(const ScheduledKernel& kernel, const Level& level);

// The axes whose ends get text of their own, where conditions can fail only there.
std::vector<PeeledAxis> peeled_axes(const ScheduledKernel& kernel);

// The values that a loop computes one after another, with the register tile of the
// schedule.
std::vector<ExprId> choose_looped(const ScheduledKernel& kernel, const Level& level,
                                  const std::vector<TileAxis>& tile);

// The functions that are called, where code is to be small.
std::vector<ExprId> choose_called(const ScheduledKernel& kernel, const Level& level);

// How the sums of one stage are kept, and which of them are made of sums.
void choose_sums(const ScheduledKernel& kernel, const Dependence& dependence,
                 size_t stage, const Level& level, StageSchedule& schedule);

// Whether products of the stage take a factor as an element of a register.
bool takes_shared_elements(const ScheduledKernel& kernel, const Level& level,
                           size_t stage);

// What one stage fetches before it is needed, with the register tile of the schedule.
void choose_prefetch(const ScheduledKernel& kernel, const Dependence& dependence,
                     size_t stage, const Level& level, const std::vector<TileAxis>& tile,
                     StageSchedule& schedule);

// The axis whose bytes can be multiplied four at a time, by its place in a dimension; it
// may have to be cut. Nothing where the operands do not lie for it.
std::optional<std::pair<Dim, size_t>> choose_dot(const Lowered& lowered,
                                                 const Level& level);
// The axis whose bytes fill a register and are multiplied and summed by one instruction.
std::optional<LaneAxis> choose_across(const Lowered& lowered, const Level& level);
// Whether the lanes of a kernel's first stage are such bytes.
bool sums_across(const ScheduledKernel& kernel, const Level& level);
// Whether the first stage's products take groups of bytes from registers.
bool sums_groups(const ScheduledKernel& kernel, const Level& level);
// Whether the first stage's sums share registers by pairs of lanes.
bool sums_in_pairs(const ScheduledKernel& kernel, const Level& level);
// Whether the first stage's products are those of bytes widened to 16 bits.
bool sums_widened(const ScheduledKernel& kernel, const Level& level);
// Whether the first stage's weights are read four bytes at a time.
bool reads_words(const ScheduledKernel& kernel, const Level& level);
// Whether the dot axis of a lowered kernel can be executed as one.
bool dot_works(const ScheduledKernel& kernel, const Level& level);

} // namespace svod::optimize
