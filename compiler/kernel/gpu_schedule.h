// How a kernel runs on a GPU: what a thread and a block of threads do, and how many there
// are. Threads of a block share memory and can wait for each other; blocks are
// independent of each other, as the positions of a kernel's outer loops are.
#pragma once

#include "compiler/kernel/kernel.h"

#include <compare>
#include <string>

namespace svod {

enum class GpuMapping : uint8_t {
  Positions, // a thread computes positions of the outer loops, each by itself
  Rows,      // a block computes one position; its threads share the loops of each stage
  Products,  // a block computes a tile of sums of products, by way of shared memory
  Attention, // a block computes some queries of an attention (gpu_attention.h)
  Scatter,   // each element of the target has one thread that writes it, in order
};

// Who multiplies the small matrices that a tile consists of. Tensor cores take factors as
// the narrow numbers that they are widened from.
enum class Multiplier : uint8_t {
  Thread, // each thread its part, in registers
  Warp,   // each warp its part, by its tensor core ("mma")
  Group,  // each four warps theirs, straight from shared memory ("wgmma", sm_90a)
};

// One factor of a tile of products, on its way through shared memory.
struct FactorTile {
  // Outer axes that this factor depends on and the other does not. Neighbours along the
  // last one of the columns are neighbouring threads.
  std::vector<AxisId> axes;
  // Neighbouring threads read along the steps of the sum, not along the axes.
  bool by_steps = false;
  int near = 1; // elements, neighbours so, that a thread reads at once
  bool operator==(const FactorTile&) const = default;
};

// Of Products: the outer axes are the positions of a matrix, times what `positions` has.
struct ProductTile {
  FactorTile rows, columns;
  uint32_t row_factor = 0; // the input of the product that depends on rows: 0 or 1
  // Of a block: its part of the matrix, and steps of the sum that are in shared memory at
  // once.
  int block_rows = 0, block_columns = 0, steps = 0;
  // Of one multiplier's part.
  int part_rows = 0, part_columns = 0;
  Multiplier by = Multiplier::Thread;
  // Tiles of steps on their way to shared memory, which copies them by itself, while one
  // is multiplied. 0: one, through registers.
  int ahead = 0;
  // Blocks that share the steps of one sum; the last of them to be done adds up the
  // parts, in their order.
  int splits = 1;
  bool operator==(const ProductTile&) const = default;

  bool matrices() const { return by != Multiplier::Thread; }
  // Of multipliers, within a block.
  int parts_down() const { return block_rows / part_rows; }
  int parts_across() const { return block_columns / part_columns; }
};

// Of Attention: a block has some queries, and goes through all keys and their values by
// way of shared memory, so many at once. `by_steps` of queries and keys is along the
// numbers of each that are multiplied, of values along the keys.
struct AttentionTile {
  FactorTile queries, keys, values;
  int block_queries = 0, block_keys = 0;
  // Of a warp or a group of them, whose threads multiply matrices and have all keys of
  // the block; else of a thread.
  int part_queries = 0, part_keys = 0;
  Multiplier by = Multiplier::Thread;
  // Keys and values on their way to shared memory, in units of block_keys, where they are
  // copied as they lie; 0: all go through registers.
  int ahead = 0;
  bool operator==(const AttentionTile&) const = default;

  bool matrices() const { return by != Multiplier::Thread; }
  int buffers() const { return ahead == 0 ? 2 : ahead + 1; }
};

// Of Scatter: who writes the elements at a position of the axes that are apart
// (gpu_scatter.h). Each thread goes through all updates there and applies its own.
struct ScatterShare {
  // Blocks that share them, by the places of their elements; 0: a thread has them all.
  int owners = 0;
  // Of a block with owners: neighbouring threads that are one owner and share `slices`,
  // axes that are apart, too, along which all updates go to the same places.
  int beside = 1;
  std::vector<AxisId> slices;
  bool operator==(const ScatterShare&) const = default;
};

struct GpuSchedule {
  GpuMapping mapping = GpuMapping::Positions;
  // Outer axes whose positions are spread over threads, of Positions, or over blocks; of
  // Scatter axes that are apart. Neighbours along the last one are neighbours there.
  std::vector<AxisId> positions;
  // Of Positions: neighbours along the last one that a thread computes, which it reads
  // and writes at once.
  int near = 1;
  int threads = 1; // of a block
  // Of Rows: blocks that share the loops of a position; the last of them to be done
  // combines what all have, in their order.
  int splits = 1;
  // Blocks that are launched at most, which go on with further positions; 0: as many as
  // there are. What needs scratch memory needs it for each thread that is launched.
  int64_t most_blocks = 0;
  ProductTile product = {};     // of Products
  AttentionTile attention = {}; // of Attention
  ScatterShare scatter = {};    // of Scatter

  bool operator==(const GpuSchedule&) const = default;
};

int64_t positions_along(const Kernel& kernel, const std::vector<AxisId>& axes);
// Of a launch.
int64_t block_count(const Kernel& kernel, const GpuSchedule& schedule);
// Of Rows that blocks share: bytes of what each leaves of a sum or of the place of a best
// value, and of all that those of a row leave.
inline constexpr int64_t kPartBytes = 8;
int64_t part_bytes_of_row(const Kernel& kernel, const GpuSchedule& schedule);
// Bytes of scratch memory that a launch needs.
int64_t scratch_of_launch(const Kernel& kernel, const GpuSchedule& schedule);
// Counters that a launch needs, which are zero before it: one for each tile, or row,
// whose sums several blocks share.
int64_t counters_of_launch(const Kernel& kernel, const GpuSchedule& schedule);

// Of PTX, whatever the GPU: threads of a warp, and what a warp multiplies at once, rows
// and columns of so many bytes of steps (PTX ISA, "mma", m16n8). Columns are taken two
// times eight, as shared memory hands them out ("ldmatrix").
inline constexpr int kWarpThreads = 32, kMatrixSide = 16, kMatrixBytes = 32;
// Threads of a group of warps and the rows that it multiplies at once, of so many columns
// at most (PTX ISA, "wgmma", m64n256), from rows of so many bytes in shared memory, whose
// units of 16 bytes are exchanged within eight rows ("swizzle").
inline constexpr int kGroupThreads = 128, kGroupRows = 64, kGroupColumns = 256,
                     kSwizzledBytes = 128;
int threads_of(Multiplier by); // of one part
int threads_of(const ProductTile& tile);
int sums_of_thread(const ProductTile& tile);
// The factor of the first stage's products that is rows, or columns.
ExprId factor_of(const Kernel& kernel, const ProductTile& tile, bool rows);
// How a factor lies in shared memory: elements of a position follow each other, step by
// step, or those of a step, position by position. The next run is `pitch` elements
// further, so that no two threads of a warp meet in a bank.
struct SharedTile {
  DType dtype = DType::F32;
  bool by_steps = false; // elements of a position follow each other
  int64_t pitch = 0, elements = 0;
  // As groups of warps read it: rows of kSwizzledBytes, each of one position's steps or
  // of one step's positions. What is further than a row is long lies behind the rows of
  // all `runs` positions, or steps.
  bool swizzled = false;
  int64_t runs = 0;
};
// Sets how it lies: `by_steps`, and with how many.
void lay_out(SharedTile& tile, bool by_steps, int64_t positions, int64_t steps);
void lay_out_for_groups(SharedTile& tile, bool by_steps, int64_t positions,
                        int64_t steps);
SharedTile shared_tile(const Kernel& kernel, const ProductTile& tile, bool rows);
// Tiles of steps of one block, and those of them that are in shared memory at once.
int64_t turns_of(const Kernel& kernel, const ProductTile& tile);
int64_t buffers_of(const Kernel& kernel, const ProductTile& tile);
// Bytes of shared memory that one block takes: for all buffers of both factors, and, once
// they are multiplied, for the sums on their way to memory.
int64_t shared_of_tiles(const Kernel& kernel, const ProductTile& tile);
int64_t shared_of_launch(const Kernel& kernel, const GpuSchedule& schedule);
// Updates of a scatter whose places are in shared memory at once.
inline constexpr int kScatterTile = 1024;
// Updates whose places a thread reads at once that has a position by itself.
inline constexpr int kScatterBatch = 8;
// Sums of one row of the block in shared memory, with what keeps rows in other banks.
int64_t sums_pitch(const ProductTile& tile);
// Neighbours along the columns, at most so many, that the stages behind the sums read and
// write at once.
int near_results(const Kernel& kernel, const std::vector<AxisId>& columns, int most);
int near_results(const Kernel& kernel, const ProductTile& tile);
// Neighbours along the axis that all stages read and write at once; 1: not all do.
int near_positions(const Kernel& kernel, AxisId axis);
// Whether the load reads `count` neighbours along the axis, from a multiple of them on.
bool loads_run(const Kernel& kernel, const Expr& load, AxisId axis, int count);
// Where shared memory may copy a factor as it lies: the load that it is, and its bounds.
struct CopiedFactor {
  const Expr* load = nullptr;
  std::vector<Bound> bounds;
  int bytes = 0; // of each copy
};
std::optional<CopiedFactor> copied_factor(const Kernel& kernel, const ProductTile& tile,
                                          bool rows);
// Likewise of any value that lies as this type there, without the number of bytes.
std::optional<CopiedFactor> copied_value(const Kernel& kernel, ExprId value,
                                         DType lies_as);
inline constexpr int64_t kMostShared = 227 << 10; // bytes of a block, of any GPU
bool same_axes(std::vector<AxisId> a, std::vector<AxisId> b); // in any order

// Why the schedule does not run the kernel; empty: it does.
std::string gpu_misfit(const ScheduledKernel& kernel, const GpuSchedule& schedule);

// Whether stages consist of reductions and stores alone, whose positions may be computed
// in any order.
bool has_free_order(const Kernel& kernel);

// Whether all sums are by themselves, and stores of one element for all of them follow:
// then blocks may share them.
bool has_sums_apart(const ScheduledKernel& kernel);

// What Products needs of the first stage: a sum of products of values, of which `rows`
// and `columns` of the outer axes each are what one factor alone depends on. `others` are
// those that both or none depend on.
struct ProductAxes {
  std::vector<AxisId> rows, columns, others; // rows: of the first factor
};
std::optional<ProductAxes> product_axes(const Kernel& kernel);

// What a factor's value is as a number of few bits, if it is one: the type that it is
// widened from.
std::optional<DType> narrow_type(const Kernel& kernel, ExprId factor);
// Whether tensor cores multiply the factors of its first stage, which has product_axes();
// and whether they take no more than the first bits of these (TF32).
bool has_matrices(const Kernel& kernel);
bool rounds_factors(const Kernel& kernel);
// How many elements of the factor lie side by side and aligned wherever a thread reads
// them along `axes`, at most so many that 16 bytes are read; a power of two.
int near_elements(const Kernel& kernel, ExprId factor, const std::vector<AxisId>& axes);
// Of the last ones of `axes` those that runs of `count` neighbours lie along; empty: runs
// end within one.
std::vector<AxisId> axes_of_runs(const Kernel& kernel, const std::vector<AxisId>& axes,
                                 int count);

} // namespace svod
