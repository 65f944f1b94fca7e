// Temporaries in several memories, the fastest one first. What is touched most often for
// its bytes goes into the first memory that it fits into; where that leaves too much for
// the last one, the largest go first instead. Each memory is planned like an arena of its
// own. They follow each other in the offsets of the plan, so that nothing else has to
// know of them.
#include "compiler/plan/planner.h"

#include <algorithm>
#include <numeric>

namespace svod::plan {

namespace {

// Some of the lifetimes, planned as if they were all.
struct Part {
  std::vector<uint32_t> members;
  MemoryPlan memory;
};

class Pools {
public:
  Pools(const std::vector<Lifetime>& lives, const std::vector<MemoryPair>& pairs,
        const PlanOptions& options)
      : lives_(lives), pairs_(pairs), options_(options) {}

  // In this order; what fits nowhere stays with the last.
  std::vector<Part> fill(const std::vector<uint32_t>& order) const {
    std::vector<Part> out(options_.pools.size());
    for (const uint32_t i : order)
      for (size_t p = 0; p < out.size(); ++p) {
        Part with{out[p].members, {}};
        with.members.push_back(i);
        plan_part(with, false);
        if (with.memory.bytes > options_.pools[p] && p + 1 < out.size()) continue;
        out[p] = std::move(with);
        break;
      }
    for (Part& part : out) plan_part(part, true);
    return out;
  }

private:
  void plan_part(Part& part, bool thorough) const {
    std::ranges::sort(part.members);
    std::vector<Lifetime> lives;
    for (const uint32_t i : part.members) lives.push_back(lives_[i]);
    const auto number = [&](uint32_t i) {
      return static_cast<uint32_t>(std::ranges::lower_bound(part.members, i) -
                                   part.members.begin());
    };
    std::vector<MemoryPair> pairs;
    for (MemoryPair p : pairs_) {
      if (!std::ranges::binary_search(part.members, p.first) ||
          !std::ranges::binary_search(part.members, p.second))
        continue;
      p.first = number(p.first), p.second = number(p.second);
      pairs.push_back(p);
    }
    part.memory = plan_memory(lives, options_.align, pairs, thorough);
  }

  const std::vector<Lifetime>& lives_;
  const std::vector<MemoryPair>& pairs_;
  const PlanOptions& options_;
};

} // namespace

MemoryPlan Planner::plan_pools(const std::vector<Lifetime>& lives,
                               const std::vector<MemoryPair>& pairs,
                               const std::vector<int64_t>& touched) {
  std::vector<uint32_t> busy(lives.size()), large(lives.size());
  std::iota(busy.begin(), busy.end(), 0);
  large = busy;
  std::ranges::stable_sort(large, std::greater(),
                           [&](uint32_t i) { return lives[i].bytes; });
  std::ranges::stable_sort(busy, [&](uint32_t a, uint32_t b) {
    return static_cast<double>(touched[a]) * static_cast<double>(lives[b].bytes) >
           static_cast<double>(touched[b]) * static_cast<double>(lives[a].bytes);
  });
  const Pools pools(lives, pairs, options_);
  std::vector<Part> parts = pools.fill(busy);
  if (parts.back().memory.bytes > options_.pools.back()) {
    std::vector<Part> other = pools.fill(large);
    if (other.back().memory.bytes < parts.back().memory.bytes) parts = std::move(other);
  }
  MemoryPlan out;
  out.offsets.resize(lives.size());
  for (const Part& part : parts) {
    for (size_t i = 0; i < part.members.size(); ++i)
      out.offsets[part.members[i]] = out.bytes + part.memory.offsets[i];
    for (const uint32_t i : part.memory.at_peak) out.at_peak.push_back(part.members[i]);
    out.bytes += part.memory.bytes;
    out.lower_bound += part.memory.lower_bound;
    out_.pool_bytes.push_back(part.memory.bytes);
  }
  return out;
}

} // namespace svod::plan
