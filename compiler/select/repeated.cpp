// A recurrent layer reads the same weights at each of its steps. What a run reads once is
// fetched a tile ahead, since it comes from memory; here it was in a cache a moment ago,
// and the processor follows a stream from there by itself. Each fetch takes the place of
// a load then. (LSTM of 256, one row, a megabyte at each of 40 steps, on a Golden Cove
// core: 742 us with fetches, 492 without; of 512, whose four megabytes come from the last
// cache, 6839 and 6901.)
#include "compiler/select/repeated.h"

#include <vector>

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

static int64_t bytes_of(const FusedGraph& fused, const Argument& a) {
  return a.kind == Argument::Kind::Packed ? fused.packed[a.id].bytes()
                                          : fused.buffers[a.id].bytes();
}

namespace {

// The last kernel that has read a weight, and how much was read and written before it.
struct LastRead {
  ScheduledKernel* kernel = nullptr;
  int64_t before = 0;
};

} // namespace

void find_read_again(FusedGraph& program, const Machine& machine) {
  std::vector<LastRead> reads(program.packed.size());
  int64_t touched = 0;
  for (ScheduledKernel& k : program.kernels) {
    int64_t bytes = 0;
    for (const Argument& a : k.arguments) {
      bytes += bytes_of(program, a);
      if (a.kind != Argument::Kind::Packed) continue;
      LastRead& last = reads[a.id];
      if (last.kernel && touched - last.before <= machine.last.bytes)
        k.loops.repeated = last.kernel->loops.repeated = true;
      last = {&k, touched};
    }
    touched += bytes;
  }
}

} // namespace svod::select
