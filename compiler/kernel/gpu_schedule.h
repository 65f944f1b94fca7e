// How a kernel runs on a GPU: what a thread and a block of threads do, and how many there
// are. Threads of a block share memory and can wait for each other; blocks are
// independent of each other, as the positions of a kernel's outer loops are.
#pragma once

#include "compiler/kernel/kernel.h"

#include <compare>
#include <string>

namespace svod {

enum class GpuMapping : uint8_t {
  Serial,    // one thread runs all: what has an order, as a scatter that may meet itself
  Positions, // a thread computes positions of the outer loops, each by itself
  Rows,      // a block computes one position; its threads share the loops of each stage
  Products,  // a block computes a tile of sums of products, by way of shared memory
};

// Of Products: the outer axes are the positions of a matrix, times what `positions` has.
struct ProductTile {
  // A factor of the products depends on one of these and not on the other. Neighbours
  // along the last one of `columns` are neighbouring threads.
  std::vector<AxisId> rows, columns;
  uint32_t row_factor = 0; // the input of the product that depends on rows: 0 or 1
  // Of a block: its part of the matrix, and steps of the sum that are in shared memory at
  // once.
  int block_rows = 0, block_columns = 0, steps = 0;
  int thread_rows = 0, thread_columns = 0; // of one thread's part
  // Neighbouring threads that fill shared memory read along the steps of the sum, not
  // along rows or columns.
  bool rows_by_steps = false, columns_by_steps = false;
  bool operator==(const ProductTile&) const = default;

  int threads() const {
    return block_rows / thread_rows * (block_columns / thread_columns);
  }
};

struct GpuSchedule {
  GpuMapping mapping = GpuMapping::Serial;
  // Outer axes whose positions are spread over threads, of Positions, or over blocks;
  // neighbours along the last one are neighbours there.
  std::vector<AxisId> positions;
  int threads = 1; // of a block
  // Blocks that are launched at most, which go on with further positions; 0: as many as
  // there are. What needs scratch memory needs it for each thread that is launched.
  int64_t most_blocks = 0;
  ProductTile product; // of Products

  bool operator==(const GpuSchedule&) const = default;
};

int64_t positions_along(const Kernel& kernel, const std::vector<AxisId>& axes);
// Of a launch.
int64_t block_count(const Kernel& kernel, const GpuSchedule& schedule);
// Bytes of scratch memory that a launch needs.
int64_t scratch_of_launch(const Kernel& kernel, const GpuSchedule& schedule);
// Bytes of shared memory that one block takes for the tiles of Products, in elements of
// the type that is summed up.
int64_t shared_of_tile(const ProductTile& tile, int64_t element);

// Why the schedule does not run the kernel; empty: it does.
std::string gpu_misfit(const Kernel& kernel, const GpuSchedule& schedule);

// Whether stages consist of reductions and stores alone, whose positions may be computed
// in any order.
bool has_free_order(const Kernel& kernel);

// What Products needs of the first stage: a sum of products of values, of which `rows`
// and `columns` of the outer axes each are what one factor alone depends on. `others` are
// those that both or none depend on.
struct ProductAxes {
  std::vector<AxisId> rows, columns, others; // rows: of the first factor
};
std::optional<ProductAxes> product_axes(const Kernel& kernel);

} // namespace svod
