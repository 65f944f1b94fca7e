// What is ordered are units: a kernel, a chain or a region. For memory, one that needs no
// other runs as late as it may, right before the first that touches what it writes, and
// is one with that.
#include "compiler/plan/order_kernels.h"

#include "compiler/kernel/stage_work.h"
#include "compiler/plan/low_peak.h"
#include "compiler/plan/planner.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace svod::plan {

namespace {

struct Unit {
  std::vector<size_t> kernels;
  std::vector<size_t> regions;
};

struct Use {
  uint32_t unit = 0;
  bool reads = false, writes = false;
  bool stores = false; // it only writes, and parts of its own
};

using Units = std::vector<Unit>;
using Uses = std::map<BufferId, std::vector<Use>>; // in the order of units

// In the order in which steps are made of them.
Units units_of(const FusedGraph& f) {
  Units out;
  size_t region = 0, chain = 0;
  for (size_t i = 0; i <= f.kernels.size();) {
    for (; region < f.regions.size() && f.regions[region].kernels_before <= i; ++region)
      out.push_back({{}, {region}});
    if (i == f.kernels.size()) break;
    const bool chained = chain < f.chains.size() && f.chains[chain].first == i;
    const size_t count = chained ? f.chains[chain++].count : 1;
    out.emplace_back();
    for (const size_t end = i + count; i < end; ++i) out.back().kernels.push_back(i);
  }
  return out;
}

// Of an input and an output that are one memory, the input.
std::map<BufferId, BufferId> kept_places(const FusedGraph& f) {
  std::map<BufferId, BufferId> out;
  for (const StateLink& link : f.graph.states()) {
    const auto [in, written] = state_buffers(f, link);
    if (in != kNoBuffer && written != kNoBuffer) out[written] = in;
  }
  return out;
}

Uses uses_of(const FusedGraph& f, const Units& units) {
  const std::map<BufferId, BufferId> kept = kept_places(f);
  Uses out;
  const auto note = [&](BufferId id, const Use& use) {
    if (id == kNoBuffer) return;
    const auto place = kept.find(id);
    std::vector<Use>& uses = out[place == kept.end() ? id : place->second];
    if (uses.empty() || uses.back().unit != use.unit) {
      uses.push_back(use);
      return;
    }
    Use& last = uses.back();
    last.reads |= use.reads, last.writes |= use.writes, last.stores &= use.stores;
  };
  for (uint32_t u = 0; u < units.size(); ++u) {
    for (const size_t kernel : units[u].kernels)
      for (const Argument& a : f.kernels[kernel].arguments)
        if (a.kind == Argument::Kind::Buffer)
          note(a.id, {u, a.read, a.written, !a.read && only_stores(f.kernels[kernel])});
    for (const size_t number : units[u].regions) {
      const FusedRegion& region = f.regions[number];
      for (const Argument& a : region.inputs)
        if (a.kind == Argument::Kind::Buffer) note(a.id, {u, true, a.written, false});
      for (const BufferId id : region.results) note(id, {u, true, true, false});
      note(region.value, {u, true, true, false});
    }
  }
  return out;
}

// By unit, those that have to come before it: they write what it touches (read after
// write), or touch what it writes (write after read, write after write).
std::vector<std::vector<uint32_t>> needs_of(const Uses& uses, size_t units) {
  std::vector<std::vector<uint32_t>> out(units);
  for (const auto& [id, all] : uses)
    for (size_t j = 0; j < all.size(); ++j)
      for (size_t i = 0; i < j; ++i)
        if ((all[i].writes || all[j].writes) && !(all[i].stores && all[j].stores))
          out[all[j].unit].push_back(all[i].unit);
  return out;
}

// Units that need none become one with the first that needs them.
void delay_sources(const FusedGraph& f, Units& units) {
  const auto needs = needs_of(uses_of(f, units), units.size());
  std::vector<uint32_t> first(units.size(), ~0u);
  for (uint32_t u = 0; u < units.size(); ++u)
    for (const uint32_t before : needs[u]) first[before] = std::min(first[before], u);
  for (uint32_t u = 0; u < units.size(); ++u) {
    if (!needs[u].empty() || first[u] == ~0u) continue;
    Unit& to = units[first[u]];
    if (!to.regions.empty() || !units[u].regions.empty()) continue;
    to.kernels.insert(to.kernels.begin(), units[u].kernels.begin(),
                      units[u].kernels.end());
    units[u].kernels.clear();
  }
  std::erase_if(units,
                [](const Unit& u) { return u.kernels.empty() && u.regions.empty(); });
}

UnitGraph unit_graph(const FusedGraph& f, const Units& units) {
  std::set<BufferId> passed;
  for (const Chain& chain : f.chains)
    for (const Chain::Passed& p : chain.buffers) passed.insert(p.buffer);
  const Uses uses = uses_of(f, units);
  UnitGraph out{needs_of(uses, units.size()), {}};
  for (const auto& [id, all] : uses) {
    const Buffer& b = f.buffers[id];
    if (b.input >= 0 || !b.outputs.empty() || passed.contains(id)) continue;
    out.blocks.push_back({static_cast<uint64_t>(b.bytes()), {}});
    for (const Use& use : all) out.blocks.back().users.push_back(use.unit);
  }
  return out;
}

FusedGraph reordered(FusedGraph f, const Units& units,
                     const std::vector<uint32_t>& order) {
  std::vector<ScheduledKernel> kernels;
  std::vector<FusedRegion> regions;
  std::map<size_t, size_t> moved; // kernels
  for (const uint32_t u : order) {
    for (const size_t kernel : units[u].kernels) {
      moved[kernel] = kernels.size();
      kernels.push_back(std::move(f.kernels[kernel]));
    }
    for (const size_t region : units[u].regions) {
      regions.push_back(std::move(f.regions[region]));
      regions.back().kernels_before = kernels.size();
    }
  }
  for (Chain& chain : f.chains) chain.first = moved.at(chain.first);
  std::ranges::sort(f.chains, {}, &Chain::first);
  f.kernels = std::move(kernels);
  f.regions = std::move(regions);
  return f;
}

} // namespace

std::optional<FusedGraph> order_kernels(const FusedGraph& fused) {
  Units units = units_of(fused);
  const UnitGraph as_it_is = unit_graph(fused, units);
  delay_sources(fused, units);
  const UnitGraph graph = unit_graph(fused, units);
  const std::vector<uint32_t> order = low_peak_order(graph);
  if (peak_of(graph, order) >= peak_of(as_it_is, as_written(as_it_is)))
    return std::nullopt;
  return reordered(fused, units, order);
}

// As many of one side as can run, then of the other, `first` of calls or of kernels.
static std::vector<uint32_t> in_turns(const std::vector<bool>& calls,
                                      const std::vector<std::vector<uint32_t>>& needs,
                                      bool first) {
  std::vector<uint32_t> out;
  std::vector<bool> done(calls.size());
  for (bool side = first; out.size() < calls.size(); side = !side)
    for (uint32_t u = 0; u < calls.size(); ++u) {
      const bool ready =
          std::ranges::all_of(needs[u], [&](uint32_t n) { return done[n]; });
      if (done[u] || calls[u] != side || !ready) continue;
      done[u] = true;
      out.push_back(u);
    }
  return out;
}

static size_t count_turns(const std::vector<bool>& calls,
                          const std::vector<uint32_t>& order) {
  size_t out = 1;
  for (size_t i = 1; i < order.size(); ++i) out += calls[order[i]] != calls[order[i - 1]];
  return out;
}

std::optional<FusedGraph> gather_calls(const FusedGraph& fused) {
  const Units units = units_of(fused);
  std::vector<bool> calls;
  for (const Unit& unit : units)
    calls.push_back(std::ranges::any_of(
        unit.kernels, [&](size_t k) { return fused.kernels[k].call() != nullptr; }));
  if (std::ranges::count(calls, true) < 2) return std::nullopt;
  const auto needs = needs_of(uses_of(fused, units), units.size());
  std::vector<uint32_t> best(units.size());
  std::iota(best.begin(), best.end(), 0);
  const size_t before = count_turns(calls, best);
  for (const bool first : {false, true}) {
    std::vector<uint32_t> order = in_turns(calls, needs, first);
    if (count_turns(calls, order) < count_turns(calls, best)) best = std::move(order);
  }
  if (count_turns(calls, best) == before) return std::nullopt;
  return reordered(fused, units, best);
}

} // namespace svod::plan
