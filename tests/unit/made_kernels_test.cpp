// Kernels that are kept from one round to the next are those that would be made anew.
#include "compiler/lower/lower.h"
#include "compiler/made_kernels.h"
#include "compiler/rewrite/simplify.h"
#include "compiler/select/assign_layouts.h"
#include "compiler/select/forms/algorithms.h"
#include "compiler/select/group.h"
#include "tests/support/model_graph.h"

#include <catch2/catch.hpp>

using namespace svod;
using namespace svod::test;

namespace {

// What kernels are made of in one round, with the buffers in one order or the other.
struct Numbered {
  Numbered(const Graph& graph, const Grouping& grouping,
           const std::map<NodeId, Layout>& layouts, bool backwards)
      : grouping(grouping), stored{graph, this->grouping, buffers, buffer_of, packed} {
    std::vector<std::pair<NodeId, Layout>> order(layouts.begin(), layouts.end());
    if (backwards) std::ranges::reverse(order);
    for (const auto& [n, layout] : order) {
      buffer_of[n] = static_cast<BufferId>(buffers.size());
      buffers.push_back({n, graph[n].dtype, graph[n].shape, layout, -1, {}});
    }
  }
  Lower lower_of(const Group& group) {
    return [this, &group](const LowerSpec& spec) {
      return lower::lower(group, spec, stored);
    };
  }
  Grouping grouping;
  std::vector<Buffer> buffers;
  std::map<NodeId, BufferId> buffer_of;
  std::vector<PackedWeight> packed;
  Stored stored;
};

// What the arguments are, whatever their numbers.
std::string text_of(const ScheduledKernel& kernel, const Numbered& round) {
  std::string out;
  for (const Argument& a : kernel.arguments)
    out += a.kind == Argument::Kind::Buffer
               ? "%" + std::to_string(round.buffers[a.id].node) + "\n"
           : a.kind == Argument::Kind::Packed
               ? "weight " + std::to_string(round.packed[a.id].source) + ", " +
                     std::to_string(round.packed[a.id].bytes()) + " bytes\n"
               : "other\n";
  ScheduledKernel unnumbered = kernel;
  for (Argument& a : unnumbered.arguments) a.id = 0;
  return out + print(unnumbered);
}

} // namespace

TEST_CASE("a kernel that is kept is the one that would be made anew",
          "[fuse][property]") {
  const Target target = *find_target("x86-64-v3");
  const Level& level = target.levels.back();
  size_t compared = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const select::Algorithms algorithms = select::choose_algorithms(
        rewrite::simplify(model_graph(seed).graph), target, true);
    const Graph& g = algorithms.graph;
    const Grouping grouping =
        select::group_nodes(g, algorithms.stored, algorithms.sums, {});
    const auto layouts =
        select::assign_layouts(g, grouping, algorithms.layouts,
                               {target.levels[0].lanes, level.bytes_across()}, {});
    Numbered first(g, grouping, layouts, false), second(g, grouping, layouts, true);
    MadeKernels known;
    for (const Group& group : grouping.groups) {
      const Op op = g[group.root].op;
      if (has_body(op) || op == Op::Call || element_count(g[group.root].shape) == 0)
        continue;
      const GroupNodes nodes = nodes_of(g, grouping, group);
      const std::string key = group_key(group, nodes, first.buffers, first.buffer_of);
      CHECK(key == group_key(group, nodes, second.buffers, second.buffer_of));
      const auto make = [&](Numbered& round) {
        const optimize::CutKernel cut =
            optimize::cut_axes(group, g, round.lower_of(group));
        return std::pair(
            cut, make_kernel(cut, group, round.stored, round.lower_of(group), target));
      };
      const auto [cut, made] = make(first);
      known.keep(key, cut, made, first.stored);
      const optimize::CutKernel kept_cut = known.cut(key, second.stored);
      const optimize::MadeKernel kept = known.made(key, second.stored);
      const auto [new_cut, anew] = make(second);
      INFO("seed " << seed << "\n" << key);
      CHECK(text_of(kept.kernel, second) == text_of(anew.kernel, second));
      CHECK(text_of(kept_cut.lowered.kernel, second) ==
            text_of(new_cut.lowered.kernel, second));
      CHECK(kept.written_out == anew.written_out);
      // Whatever its kernel touches is named by the key.
      for (const Argument& a : anew.kernel.arguments)
        if (a.kind == Argument::Kind::Buffer)
          CHECK(std::ranges::count(nodes.stored, second.buffers[a.id].node) == 1);
      ++compared;
    }
  }
  CHECK(compared > 100);
}
