// Kernels that take turns row by row, of which only the rows between them are stored.
#pragma once

#include "compiler/plan/plan.h"
#include "compiler/plan/rows.h"

#include <map>

namespace svod::plan {

// What may pass by row by row: a picture whose rows are its outermost dimension.
struct PassedRows {
  int64_t row_elements = 0;
  int64_t rows = 0; // in memory, borders included
  int64_t row_bytes = 0;
  bool border = false;
  uint32_t fill = 0; // four bytes of the border
};

// Nothing where the buffer's rows are not outermost.
std::optional<PassedRows> passed_rows(const Buffer& buffer);

// A kernel of a stream, with the slots of its arguments.
struct StreamKernel {
  const ScheduledKernel* kernel = nullptr;
  std::vector<SlotId> arguments;
};

struct MadeStream {
  Stream stream;
  std::vector<ChunkAxis> chunks; // of the kernels
};

// What chunks_by_rows() found for kernels with these row_elements: they belong to many
// streams that are tried.
using KnownRows = std::map<std::pair<const ScheduledKernel*, std::vector<int64_t>>,
                           std::optional<RowChunks>>;

// `passed`: by slot, what only these kernels write and read. Nothing where a kernel does
// not go row by row through it. `others`: temporaries that are there as a whole.
std::optional<MadeStream> make_stream(const std::vector<StreamKernel>& kernels,
                                      const std::map<SlotId, PassedRows>& passed,
                                      const std::map<SlotId, PassedRows>& others,
                                      KnownRows& known);

} // namespace svod::plan
