#include "compiler/select/size_kernels.h"

#include "compiler/kernel/buffer_uses.h"

#include <algorithm>
#include <iterator>
#include <set>

namespace svod::select {

namespace {

// Kernels that make the sizes of outputs, and what these are made of: as few positions
// each as a list of sizes has.
class SizeKernels {
public:
  explicit SizeKernels(const FusedGraph& fused) : f_(fused), uses_(buffer_uses(fused)) {}
  // Of all outputs whose sizes are made of nothing else; in ascending order.
  std::set<size_t> run();

private:
  bool add(BufferId buffer, std::set<size_t>& found) const;
  bool is_short(size_t kernel) const;

  const FusedGraph& f_;
  const std::vector<BufferUse> uses_;
};

bool SizeKernels::is_short(size_t kernel) const {
  constexpr int64_t kFewPositions = 16;
  const ScheduledKernel& k = f_.kernels[kernel];
  const bool chained = std::ranges::any_of(f_.chains, [&](const Chain& c) {
    return kernel >= c.first && kernel < c.first + c.count;
  });
  int64_t positions = 1;
  for (AxisId a = 0; a < k.indices.axis_count(); ++a) positions *= k.indices.extent(a);
  return !chained && !k.call() && !k.sequence() && positions <= kFewPositions;
}

// False where it is made of something else.
bool SizeKernels::add(BufferId buffer, std::set<size_t>& found) const {
  if (f_.buffers[buffer].input >= 0) return true;
  for (const size_t i : uses_[buffer].writers) {
    if (!found.insert(i).second) continue;
    if (!is_short(i)) return false;
    for (const Argument& a : f_.kernels[i].arguments)
      if (a.kind == Argument::Kind::Buffer && a.read && !a.written && !add(a.id, found))
        return false;
  }
  return !uses_[buffer].writers.empty();
}

std::set<size_t> SizeKernels::run() {
  std::set<size_t> out;
  for (BufferId id = 0; id < f_.buffers.size(); ++id)
    for (const GraphOutput& output : f_.graph.outputs()) {
      std::set<size_t> found = out;
      if (output.seen.extents >= 0 &&
          std::ranges::count(f_.buffers[id].outputs, output.seen.extents) != 0 &&
          add(id, found))
        out = std::move(found);
    }
  return out;
}

} // namespace

void put_sizes_first(FusedGraph& f) {
  const std::set<size_t> first = SizeKernels(f).run();
  std::vector<size_t> order(first.begin(), first.end());
  for (size_t i = 0; i < f.kernels.size(); ++i)
    if (!first.contains(i)) order.push_back(i);
  std::vector<ScheduledKernel> kernels;
  for (const size_t i : order) kernels.push_back(std::move(f.kernels[i]));
  f.kernels = std::move(kernels);
  const auto behind = [&](size_t i) { // of those that come first
    return static_cast<size_t>(std::ranges::distance(first.lower_bound(i), first.end()));
  };
  for (Chain& c : f.chains) c.first += behind(c.first);
  for (FusedRegion& r : f.regions) r.kernels_before += behind(r.kernels_before);
}

} // namespace svod::select
