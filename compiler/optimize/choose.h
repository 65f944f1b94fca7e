// How a kernel is executed: which axis is the vector, in which order loops run, how the
// outer loops are cut into parallel chunks, and in which order weights are laid out.
#pragma once

#include "compiler/kernel/stage_work.h"
#include "compiler/lower/lower.h"

namespace svod {

// The axis to vectorise by `lanes`, as its dimension and its place there; it may have to
// be cut. Nothing when scalar code is as good. `dots`: bytes are multiplied four at a
// time.
std::optional<std::pair<Dim, size_t>> choose_lane(const Lowered& lowered, int lanes,
                                                  bool dots);

// Lanes so many elements apart are read as whole vectors and shuffled.
inline constexpr int64_t kNearLanes = 4;

// The factors of a sum of products of bytes, one U8 and one I8; null where the stage is
// something else.
struct ByteOperands {
  const Expr* x = nullptr;       // in a buffer
  const Expr* w = nullptr;       // known when packing
  std::optional<ExprId> decoded; // what is made of w: bytes of fewer bits
};
ByteOperands byte_operands(const ScheduledKernel& kernel, const Stage& stage);

// Replaces dense weights by weights in the order the kernel reads them.
void pack_weights(ScheduledKernel& kernel, std::vector<PackedWeight>& packed);

// Orders loops for reuse: weights that exceed a cache stay while activations stream past.
void order_loops(ScheduledKernel& kernel, const std::vector<PackedWeight>& packed);

// Cuts outer loops into chunks by the work in them, in whole register tiles of `level`;
// sets flops and bytes.
void choose_chunks(ScheduledKernel& kernel, const std::vector<PackedWeight>& packed,
                   const std::vector<Buffer>& buffers, const Level& level);

// Loads below an expression that take each lane from where data says.
int gathers_below(const ScheduledKernel& kernel, ExprId root);

// Scalar functions that take many instructions.
bool is_costly(Op op);

// Costly values that both a reduction and the store need are computed once.
void keep_costly_values(ScheduledKernel& kernel);

// Unrolled positions per axis: the register tile.
struct Tile {
  std::vector<std::pair<AxisId, int>> counts;
  double cost = 0; // of one position and step of a reduction, in instructions
  int count(AxisId axis) const {
    for (auto [a, n] : counts)
      if (a == axis) return n;
    return 1;
  }
  int64_t points() const {
    int64_t points = 1;
    for (auto [a, n] : counts) points *= n;
    return points;
  }
};

// Positions, at most `lanes`, that are neighbours in what the stage writes, those of the
// innermost axis last. `lane` is no such axis.
Tile neighbours_in(const ScheduledKernel& kernel, const Stage& stage, AxisId lane,
                   int lanes);

// Whether the first (or, `high`, the last) position of a long axis is the only one where
// what all lanes of a sum of products share is read past an edge, within `ranges` of all
// axes.
bool leaves_picture(const ScheduledKernel& kernel, AxisId axis, bool high,
                    const std::vector<Range>& ranges);
// Likewise, or the only one where a condition on lanes can fail. Loops emit it apart.
bool ends_apart(const ScheduledKernel& kernel, AxisId axis, bool high,
                const std::vector<Range>& ranges);

// Positions of a tile times steps of a loop that are written out together, so that
// neighbouring positions share what they load.
inline constexpr int64_t kWrittenOut = 128;

// The register tile of one CPU level: as many accumulators as its registers hold, shaped
// for the fewest loads per multiply-add.
Tile choose_tile(const ScheduledKernel& kernel, const Level& level);

// The kernel by vectors of one register of the level each; nothing where longer ones are
// as good.
std::optional<ScheduledKernel> narrow_lanes(const ScheduledKernel& kernel,
                                            const Level& level);

// The axis whose bytes can be multiplied four at a time, by its place in a dimension; it
// may have to be cut. Nothing where the operands do not lie for it.
std::optional<std::pair<Dim, size_t>> choose_dot(const Lowered& lowered);
// Whether the dot axis of a lowered kernel can be executed as one.
bool dot_works(const ScheduledKernel& kernel);

// Neighbouring positions of `axis` whose windows one vector of interleaved bytes of x
// serves: of four taps, three count, and the next window begins at the second one, with
// its weights moved up by a byte. 1: none does.
int windows_together(const ScheduledKernel& kernel, const Stage& stage, const Expr& x,
                     AxisId axis);

} // namespace svod
