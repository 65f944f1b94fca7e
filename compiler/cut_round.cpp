#include "compiler/cut_round.h"

#include "compiler/kernel/verify.h"
#include "compiler/lower/lower.h"
#include "compiler/optimize/choose.h"
#include "compiler/optimize/make_kernel.h"
#include "compiler/select/channels_last.h"
#include "compiler/support/check.h"

#include <algorithm>

namespace svod {

// A kernel with its axes cut. A border or a call has no group.
struct CutRound::LoweredGroup {
  const Group* group = nullptr;
  optimize::CutKernel cut;
  std::string key = {}; // of the group
  const ScheduledKernel& kernel() const { return cut.lowered.kernel; }
};

std::string text_of(const std::vector<CutRound::LoweredGroup>& lowered,
                    const FusedGraph&) {
  std::string out;
  for (size_t i = 0; i < lowered.size(); ++i)
    out += "kernel " + std::to_string(i) + "\n" + print(lowered[i].kernel());
  return out;
}

void check(std::string_view, const std::vector<CutRound::LoweredGroup>& lowered,
           const FusedGraph& fused) {
  for (size_t i = 0; i < lowered.size(); ++i) verify(fused, lowered[i].kernel(), i);
}

// With its loops.
struct CutRound::ScheduledGroup {
  const Group* group = nullptr;
  optimize::MadeKernel made;
};

std::string text_of(const std::vector<CutRound::ScheduledGroup>& groups,
                    const FusedGraph&) {
  std::string out;
  for (size_t i = 0; i < groups.size(); ++i)
    out += "kernel " + std::to_string(i) + "\n" + print(groups[i].made.kernel);
  return out;
}

void check(std::string_view, const std::vector<CutRound::ScheduledGroup>& groups,
           const FusedGraph& fused) {
  for (size_t i = 0; i < groups.size(); ++i) verify(fused, groups[i].made.kernel, i);
}

namespace {

// All requests so far.
struct AllRequests {
  select::Requests requests;
};

std::string text_of(const AllRequests& all, const Graph&) { return print(all.requests); }

void check(std::string_view pass, const AllRequests& all, const Graph& graph) {
  const std::set<NodeId>& stored = all.requests.stored;
  SVOD_CHECK(stored.empty() || *stored.rbegin() < graph.size())
      << "after " << pass << ": %" << *stored.rbegin() << " is no node";
}

} // namespace

Lower CutRound::lower_of(const Group& group) {
  return [this, &group](const LowerSpec& spec) {
    return lower::lower(group, spec, stored_);
  };
}

StoreReason CutRound::reason_of(NodeId stored) const {
  const StoreReason reason = grouping_.reasons.at(stored);
  const bool own =
      reason == StoreReason::Requested && algorithms_.stored.count(stored) != 0;
  return own ? StoreReason::Algorithm : reason;
}

void CutRound::make_buffers(const std::map<NodeId, Layout>& layouts) {
  for (const auto& [n, layout] : layouts) {
    buffer_of_[n] = static_cast<BufferId>(out_.buffers.size());
    out_.buffers.push_back({n, g[n].dtype, g[n].shape, layout, -1, {}, reason_of(n)});
  }
  for (size_t i = 0; i < g.inputs().size(); ++i)
    if (auto found = buffer_of_.find(g.inputs()[i].node); found != buffer_of_.end())
      out_.buffers[found->second].input = static_cast<int32_t>(i);
  for (size_t i = 0; i < g.outputs().size(); ++i)
    out_.buffers[buffer_of_.at(g.outputs()[i].node)].outputs.push_back(
        static_cast<int32_t>(i));
}

Argument CutRound::region_input(NodeId node) {
  const DType dtype = g[node].dtype;
  if (!grouping_.known[node])
    return {Argument::Kind::Buffer, buffer_of_.at(node), dtype, false, true};
  PackedWeight dense{node, dtype, {element_count(g[node].shape)}, {1}, 0, {}, 0};
  auto found = std::find(out_.packed.begin(), out_.packed.end(), dense);
  auto id = static_cast<PackedId>(found - out_.packed.begin());
  if (found == out_.packed.end()) out_.packed.push_back(std::move(dense));
  return {Argument::Kind::Packed, id, dtype, false, true};
}

// Its bodies are fused when the cut around it is settled.
void CutRound::add_region(NodeId node, size_t kernels_before) {
  FusedRegion region;
  region.node = node;
  region.kernels_before = kernels_before;
  for (NodeId input : g[node].inputs) region.inputs.push_back(region_input(input));
  const auto body = static_cast<uint32_t>(g[node].payload[0]);
  region.results.assign(g.body(body)->outputs().size(), kNoBuffer);
  for (const auto& [n, buffer] : buffer_of_) {
    if (n == node) region.value = buffer;
    if (g[n].op == Op::Result && g[n].inputs[0] == node)
      region.results[static_cast<size_t>(g[n].payload[0])] = buffer;
  }
  out_.regions.push_back(std::move(region));
}

std::vector<CutRound::LoweredGroup> CutRound::lower_groups() {
  std::vector<LoweredGroup> lowered;
  auto add_plain = [&](ScheduledKernel kernel) {
    lowered.emplace_back().cut.lowered.kernel = std::move(kernel);
  };
  auto is_called = [&](NodeId call) { // the first of its outputs makes the kernel of all
    return std::ranges::any_of(lowered, [&](const LoweredGroup& l) {
      return l.kernel().call() && std::ranges::count(l.kernel().nodes, call) != 0;
    });
  };
  std::set<NodeId> bordered;
  for (const Group& group : grouping_.groups) {
    const Node& root = g[group.root];
    if (has_body(root.op)) {
      add_region(group.root, lowered.size());
      continue;
    }
    if (element_count(root.shape) == 0) continue;
    if (root.op == Op::Call && group.target == group.root) {
      if (!is_called(group.root)) add_plain(lower::lower_call(group.root, stored_));
      continue;
    }
    const BufferId target = buffer_of_.at(group.target);
    if (out_.buffers[target].layout.has_border() && bordered.insert(group.target).second)
      add_plain(lower::lower_border(target, out_.buffers[target], lanes_));
    const std::string key =
        group_key(group, nodes_of(g, grouping_, group), out_.buffers, buffer_of_);
    lowered.push_back({&group,
                       made_.has(key) ? made_.cut(key, stored_)
                                      : optimize::cut_axes(group, g, lower_of(group)),
                       key});
  }
  return lowered;
}

std::vector<CutRound::ScheduledGroup>
CutRound::schedule(std::vector<LoweredGroup> lowered) {
  std::vector<ScheduledGroup> scheduled;
  for (LoweredGroup& l : lowered) {
    if (l.group != nullptr) {
      if (!made_.has(l.key))
        made_.keep(
            l.key, l.cut,
            optimize::make_kernel(l.cut, *l.group, stored_, lower_of(*l.group), target_),
            stored_);
      scheduled.push_back({l.group, made_.made(l.key, stored_)});
      continue;
    }
    ScheduledGroup& plain = scheduled.emplace_back();
    plain.made.kernel = std::move(l.cut.lowered.kernel);
    if (!plain.made.kernel.call())
      optimize::choose_chunks(plain.made.kernel, out_.packed, out_.buffers, level_);
  }
  return scheduled;
}

bool CutRound::run(select::Requests& requests, bool last) {
  grouping_ = passes_.run(
      "group",
      [&] {
        return select::group_nodes(g, requests.stored, algorithms_.sums, decisions_);
      },
      g);
  select::RequestFinder finder(stored_, algorithms_.results, target_, requests);
  const size_t before = requests.count();
  finder.look_at_groups();
  if (requests.count() != before && !last) return true;
  make_buffers(passes_.run(
      "layouts",
      [&] {
        std::map<NodeId, Layout> layouts = select::assign_layouts(
            g, grouping_, requests.layouts,
            {lanes_, level_.byte_block(), level_.has_tiles()}, rows_first_);
        if (target_.kind == TargetKind::Gpu)
          select::lay_channels_last(g, grouping_, layouts);
        return layouts;
      },
      g));
  std::vector<LoweredGroup> lowered =
      passes_.run("lower", [&] { return lower_groups(); }, out_);
  std::vector<ScheduledGroup> scheduled =
      passes_.run("loops", [&] { return schedule(std::move(lowered)); }, out_);
  passes_.run(
      "requests",
      [&] {
        for (const ScheduledGroup& s : scheduled)
          if (s.group != nullptr)
            finder.look_at(*s.group, s.made.kernel, s.made.written_out);
        finder.look_at_reads();
        return AllRequests{requests};
      },
      g);
  bool written_out = true;
  for (ScheduledGroup& s : scheduled) {
    written_out &= s.made.written_out;
    out_.kernels.push_back(std::move(s.made.kernel));
  }
  return written_out;
}

} // namespace svod
