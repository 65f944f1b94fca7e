#include "compiler/kernel/buffer_uses.h"

namespace svod {

std::vector<BufferUse> buffer_uses(const FusedGraph& fused) {
  std::vector<BufferUse> uses(fused.buffers.size());
  for (BufferId id = 0; id < fused.buffers.size(); ++id)
    uses[id].outside = fused.buffers[id].input >= 0 || !fused.buffers[id].outputs.empty();
  for (size_t i = 0; i < fused.kernels.size(); ++i)
    for (const Argument& a : fused.kernels[i].arguments) {
      if (a.kind != Argument::Kind::Buffer) continue;
      if (a.written) uses[a.id].writers.push_back(i);
      if (a.read) uses[a.id].readers.push_back(i);
    }
  for (const FusedRegion& region : fused.regions) {
    for (const Argument& a : region.inputs)
      if (a.kind == Argument::Kind::Buffer) uses[a.id].outside = true;
    for (BufferId id : region.results)
      if (id != kNoBuffer) uses[id].outside = true;
    if (region.value != kNoBuffer) uses[region.value].outside = true;
  }
  return uses;
}

} // namespace svod
