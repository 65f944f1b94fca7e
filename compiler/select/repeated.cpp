// A recurrent layer reads the same weights at each of its steps. What a run reads once is
// fetched a tile ahead, since it comes from memory; here it was in a cache a moment ago,
// and the processor follows a stream from there by itself. Each fetch takes the place of
// a load then. (LSTM of 256, one row, a megabyte at each of 40 steps, on a Golden Cove
// core: 742 us with fetches, 492 without; of 512, whose four megabytes come from the last
// cache, 6839 and 6901.)
#include "compiler/select/repeated.h"

namespace svod::select {

// Weights and values of all kernels, those of bodies within included.
static int64_t bytes_of(const FusedGraph& fused) {
  int64_t bytes = 0;
  for (const Buffer& b : fused.buffers) bytes += b.bytes();
  for (const PackedWeight& w : fused.packed) bytes += w.bytes();
  for (const FusedRegion& region : fused.regions)
    for (const FusedGraph& body : region.bodies) bytes += bytes_of(body);
  return bytes;
}

void find_repeated(FusedGraph& body, const Machine& machine) {
  if (bytes_of(body) > machine.last.bytes) return;
  for (ScheduledKernel& k : body.kernels) k.loops.repeated = true;
}

} // namespace svod::select
