// Which rows of a picture one chunk of a kernel reads and writes.
#pragma once

#include "compiler/kernel/schedule.h"

#include <optional>
#include <span>

namespace svod::plan {

// Chunk c touches rows [c * step + low, c * step + high) of the argument.
struct RowAccess {
  uint32_t argument = 0;
  bool writes = false;
  int64_t step = 0, low = 0, high = 0;
};

struct RowChunks {
  ChunkAxis chunk{};
  std::vector<RowAccess> accesses; // one for each argument and direction
};

// The smallest chunks whose accesses are whole rows that move on by as many with each of
// them. `row_elements`: by argument, elements from one row to the next; 0: of no concern.
// Nothing where no loop does that, or where a chunk writes less or more than the rows
// that it moves on by.
std::optional<RowChunks> chunks_by_rows(const ScheduledKernel& kernel,
                                        std::span<const int64_t> row_elements);

} // namespace svod::plan
