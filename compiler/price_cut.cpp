#include "compiler/price_cut.h"

#include "compiler/group_key.h"
#include "compiler/lower/lower.h"
#include "compiler/optimize/choose.h"
#include "compiler/optimize/make_kernel.h"
#include "compiler/optimize/schedule_kernel.h"
#include "compiler/select/chain.h"

#include <algorithm>
#include <limits>

namespace svod {

namespace {

constexpr double kNoKernel = std::numeric_limits<double>::infinity();

// Each tensor is found in the nearest memory that holds what is touched of it.
IoProfile profile_of(const ScheduledKernel& kernel, const std::vector<Buffer>& buffers,
                     const std::vector<PackedWeight>& packed, const Machine& machine) {
  IoProfile out;
  out.launches = 1;
  out.operations = double(kernel.flops);
  for (uint32_t i = 0; i < kernel.arguments.size(); ++i) {
    const Argument& a = kernel.arguments[i];
    const bool weight = a.kind == Argument::Kind::Packed;
    const int64_t whole = weight ? packed[a.id].bytes() : buffers[a.id].bytes();
    const int64_t bytes = touched_bytes(kernel, i, whole);
    IoProfile::Traffic& traffic = out.at(level_of(machine, bytes));
    if (a.read) traffic.read += bytes;
    if (a.written) traffic.written += bytes;
  }
  return out;
}

} // namespace

struct LoweredCutPricer::Cut {
  Grouping grouping;
  std::vector<Buffer> buffers;
  std::map<NodeId, BufferId> buffer_of;
};

LoweredCutPricer::Program LoweredCutPricer::program_of(const ScheduledKernel& kernel) {
  const auto number = static_cast<uint32_t>(programs_.size());
  const auto [entry, is_new] = programs_.try_emplace(digest_of(kernel));
  if (is_new) {
    const Level& level = target_.levels.back();
    const LevelSchedule how = optimize::schedule_kernel(kernel, level);
    entry->second = {cost::cost_of(kernel, how, level, around_).total, number};
  }
  return entry->second;
}

uint32_t LoweredCutPricer::price_group(const Group& group, Cut& cut) {
  GroupNodes nodes = nodes_of(g, cut.grouping, group);
  std::string key = group_key(group, nodes, cut.buffers, cut.buffer_of);
  const auto [entry, is_new] =
      number_.try_emplace(std::move(key), static_cast<uint32_t>(kernels_.size()));
  if (!is_new) return entry->second;

  std::vector<PackedWeight> packed;
  Stored state{g, cut.grouping, cut.buffers, cut.buffer_of, packed};
  const Lower lower = [&](const LowerSpec& spec) {
    return lower::lower(group, spec, state);
  };
  const optimize::MadeKernel made = optimize::make_kernel(
      optimize::cut_axes(group, g, lower), group, state, lower, target_);
  std::vector<NodeId> touched;
  std::ranges::set_union(nodes.computed, nodes.stored, std::back_inserter(touched));
  const Program program = made.written_out ? program_of(made.kernel) : Program{kNoKernel};
  kernels_.push_back({program.seconds, program.number, std::move(touched),
                      profile_of(made.kernel, cut.buffers, packed, target_.machine())});
  return entry->second;
}

uint32_t LoweredCutPricer::price_border(NodeId target, Cut& cut) {
  const BufferId id = cut.buffer_of.at(target);
  const Buffer& buffer = cut.buffers[id];
  const auto [entry, is_new] =
      number_.try_emplace("border " + std::to_string(target) + " " + print(buffer.layout),
                          static_cast<uint32_t>(kernels_.size()));
  if (is_new) {
    ScheduledKernel kernel = lower::lower_border(id, buffer, target_.levels[0].lanes);
    optimize::choose_chunks(kernel, {}, cut.buffers, target_.levels.back());
    const Program program = program_of(kernel);
    kernels_.push_back({program.seconds,
                        program.number,
                        {target},
                        profile_of(kernel, cut.buffers, {}, target_.machine())});
  }
  return entry->second;
}

std::optional<std::vector<uint32_t>>
LoweredCutPricer::price(const select::CutDecisions& decisions) {
  Cut cut;
  cut.grouping = select::group_nodes(g, requests_.stored, sums_, decisions);
  const select::BlockSizes blocks{target_.levels[0].lanes,
                                  target_.levels.back().byte_block(),
                                  target_.levels.back().has_tiles()};
  for (auto& [n, layout] :
       select::assign_layouts(g, cut.grouping, requests_.layouts, blocks)) {
    cut.buffer_of[n] = static_cast<BufferId>(cut.buffers.size());
    cut.buffers.push_back({n, g[n].dtype, g[n].shape, layout, -1, {}});
  }
  std::vector<uint32_t> out;
  std::set<NodeId> bordered;
  for (const Group& group : cut.grouping.groups) {
    const Node& root = g[group.root];
    const bool called = root.op == Op::Call && group.target == group.root;
    if (has_body(root.op) || called || element_count(root.shape) == 0) continue;
    const Layout& layout = cut.buffers[cut.buffer_of.at(group.target)].layout;
    if (layout.has_border() && bordered.insert(group.target).second)
      out.push_back(price_border(group.target, cut));
    out.push_back(price_group(group, cut));
    if (kernels_[out.back()].seconds == kNoKernel) return std::nullopt;
  }
  std::ranges::sort(out);
  return out;
}

cost::Surroundings surroundings_of(const FusedGraph& fused) {
  cost::Surroundings around;
  for (const PackedWeight& weight : fused.packed)
    around.run_bytes += double(weight.bytes());
  std::vector<int64_t> change(fused.kernels.size() + 1); // of bytes that are needed
  std::map<BufferId, std::pair<size_t, size_t>> used; // by which kernels first and last
  for (size_t k = 0; k < fused.kernels.size(); ++k)
    for (const Argument& a : fused.kernels[k].arguments)
      if (a.kind == Argument::Kind::Buffer)
        used.try_emplace(a.id, k, k).first->second.second = k;
  for (const auto& [id, by] : used) {
    change[by.first] += fused.buffers[id].bytes();
    change[by.second + 1] -= fused.buffers[id].bytes();
  }
  int64_t needed = 0, most = 0;
  for (int64_t bytes : change) most = std::max(most, needed += bytes);
  around.run_bytes += double(most);
  return around;
}

std::set<NodeId> touched_by_chains(FusedGraph fused, const Machine& machine) {
  select::find_chains(fused, machine);
  std::set<NodeId> out;
  for (const Chain& chain : fused.chains)
    for (size_t k = chain.first; k < chain.first + chain.count; ++k) {
      const ScheduledKernel& kernel = fused.kernels[k];
      out.insert(kernel.nodes.begin(), kernel.nodes.end());
      for (const Argument& a : kernel.arguments)
        if (a.kind == Argument::Kind::Buffer) out.insert(fused.buffers[a.id].node);
    }
  return out;
}

} // namespace svod
