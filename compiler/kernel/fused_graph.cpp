// The weights of a fused graph, when all kernels are settled.
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
