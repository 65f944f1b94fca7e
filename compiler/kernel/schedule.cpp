#include "compiler/kernel/schedule.h"

namespace svod {

int64_t ScheduledKernel::chunk_count() const {
  int64_t count = 1;
  for (const ChunkAxis& c : loops.chunks)
    count *= (indices.extent(c.axis) + c.block - 1) / c.block;
  return count;
}

Loops plain_loops(const Kernel& kernel) {
  Loops loops;
  loops.outer = kernel.outer;
  for (const Stage& s : kernel.stages) loops.inner.push_back(s.inner);
  return loops;
}

} // namespace svod
