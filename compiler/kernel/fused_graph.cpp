// The weights and buffers of a fused graph, when all kernels are settled.
#include "compiler/kernel/fused_graph.h"

namespace svod {

void drop_unused_weights(FusedGraph& f) {
  std::vector<PackedId> number(f.packed.size());
  std::vector<PackedWeight> kept;
  // In the order kernels meet them: the weight section is then read front to back.
  std::vector<bool> placed(f.packed.size());
  auto place = [&](Argument& a) {
    if (a.kind != Argument::Kind::Packed) return;
    if (!placed[a.id]) {
      placed[a.id] = true;
      number[a.id] = static_cast<PackedId>(kept.size());
      kept.push_back(f.packed[a.id]);
    }
    a.id = number[a.id];
  };
  for (Kernel& k : f.kernels)
    for (Argument& a : k.arguments) place(a);
  for (FusedRegion& region : f.regions)
    for (Argument& a : region.inputs) place(a);
  f.packed = std::move(kept);
}

// Does something for each number of a buffer beside the list of these.
template <class Visit> static void visit_buffers(FusedGraph& f, const Visit& visit) {
  auto look_at = [&](std::vector<Argument>& arguments) {
    for (Argument& a : arguments)
      if (a.kind == Argument::Kind::Buffer) visit(a.id);
  };
  for (Kernel& k : f.kernels) look_at(k.arguments);
  for (FusedRegion& region : f.regions) {
    look_at(region.inputs);
    for (BufferId& id : region.results)
      if (id != kNoBuffer) visit(id);
    if (region.value != kNoBuffer) visit(region.value);
  }
  for (Chain& chain : f.chains)
    for (Chain::Passed& passed : chain.buffers) visit(passed.buffer);
}

void drop_unused_buffers(FusedGraph& f) {
  std::vector<bool> used(f.buffers.size());
  visit_buffers(f, [&](BufferId& id) { used[id] = true; });
  std::vector<BufferId> number(f.buffers.size());
  std::vector<Buffer> kept;
  for (BufferId id = 0; id < f.buffers.size(); ++id) {
    number[id] = static_cast<BufferId>(kept.size());
    if (used[id] || f.buffers[id].input >= 0 || !f.buffers[id].outputs.empty())
      kept.push_back(std::move(f.buffers[id]));
  }
  f.buffers = std::move(kept);
  visit_buffers(f, [&](BufferId& id) { id = number[id]; });
}

std::vector<ChosenAlgorithm> chosen_algorithms(const FusedGraph& fused) {
  std::vector<ChosenAlgorithm> all = fused.chosen;
  for (const FusedRegion& region : fused.regions)
    for (const FusedGraph& body : region.bodies) {
      const std::vector<ChosenAlgorithm> more = chosen_algorithms(body);
      all.insert(all.end(), more.begin(), more.end());
    }
  return all;
}

} // namespace svod
