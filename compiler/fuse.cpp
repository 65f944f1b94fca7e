// The middle of the compiler, in rounds. A round cuts the graph by rule, gives what is
// stored a layout, lowers each group to a kernel and chooses its loops. Kernels that
// would read badly then request that a value is stored, or stored in a better order, and
// the graph is cut again. Requests only grow, and a round without a new one is the last.
#include "compiler/fuse.h"

#include "compiler/kernel/verify.h"
#include "compiler/lower/lower.h"
#include "compiler/optimize/choose.h"
#include "compiler/optimize/make_kernel.h"
#include "compiler/price_cut.h"
#include "compiler/select/chain.h"
#include "compiler/select/magnitudes.h"
#include "compiler/select/requests.h"
#include "compiler/support/check.h"

#include <algorithm>

namespace svod {

namespace {

// A kernel with its axes cut. A border or a call has no group.
struct LoweredGroup {
  const Group* group = nullptr;
  optimize::CutKernel cut;
  const ScheduledKernel& kernel() const { return cut.lowered.kernel; }
};

std::string text_of(const std::vector<LoweredGroup>& lowered, const FusedGraph&) {
  std::string out;
  for (size_t i = 0; i < lowered.size(); ++i)
    out += "kernel " + std::to_string(i) + "\n" + print(lowered[i].kernel());
  return out;
}

void check(std::string_view, const std::vector<LoweredGroup>& lowered,
           const FusedGraph& fused) {
  for (size_t i = 0; i < lowered.size(); ++i) verify(fused, lowered[i].kernel(), i);
}

// With its loops.
struct ScheduledGroup {
  const Group* group = nullptr;
  optimize::MadeKernel made;
};

std::string text_of(const std::vector<ScheduledGroup>& groups, const FusedGraph&) {
  std::string out;
  for (size_t i = 0; i < groups.size(); ++i)
    out += "kernel " + std::to_string(i) + "\n" + print(groups[i].made.kernel);
  return out;
}

void check(std::string_view, const std::vector<ScheduledGroup>& groups,
           const FusedGraph& fused) {
  for (size_t i = 0; i < groups.size(); ++i) verify(fused, groups[i].made.kernel, i);
}

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

class Round {
public:
  Round(const select::Algorithms& algorithms, const Target& target,
        const select::RowsFirst& rows_first, FusedGraph& out, Passes& passes,
        const select::CutDecisions& decisions)
      : algorithms_(algorithms), target_(target), rows_first_(rows_first),
        decisions_(decisions), g(out.graph), lanes_(target.levels[0].lanes),
        level_(target.levels.back()), out_(out), passes_(passes),
        stored_{g, grouping_, out.buffers, buffer_of_, out.packed} {}
  // Fills the fused graph, as far as it is worth it, and adds to the requests.
  // Whether all that has to be is written out.
  // `last`: what is requested is not answered any more.
  bool run(select::Requests& requests, bool last);
  const std::vector<CutChoice>& choices() const { return grouping_.choices; }

private:
  StoreReason reason_of(NodeId stored) const;
  void make_buffers(const std::map<NodeId, Layout>& layouts);
  std::vector<LoweredGroup> lower_groups();
  std::vector<ScheduledGroup> schedule(std::vector<LoweredGroup> lowered);
  void add_region(NodeId node, size_t kernels_before);
  Argument region_input(NodeId node);
  Lower lower_of(const Group& group) {
    return [this, &group](const LowerSpec& spec) {
      return lower::lower(group, spec, stored_);
    };
  }

  const select::Algorithms& algorithms_;
  const Target& target_;
  const select::RowsFirst& rows_first_;
  const select::CutDecisions& decisions_;
  const Graph& g;
  int lanes_;
  const Level& level_; // chunks fit the tiles of the strongest
  FusedGraph& out_;
  Passes& passes_;
  Grouping grouping_;
  std::map<NodeId, BufferId> buffer_of_;
  Stored stored_;
};

StoreReason Round::reason_of(NodeId stored) const {
  const StoreReason reason = grouping_.reasons.at(stored);
  const bool own =
      reason == StoreReason::Requested && algorithms_.stored.count(stored) != 0;
  return own ? StoreReason::Algorithm : reason;
}

void Round::make_buffers(const std::map<NodeId, Layout>& layouts) {
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

Argument Round::region_input(NodeId node) {
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
void Round::add_region(NodeId node, size_t kernels_before) {
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

std::vector<LoweredGroup> Round::lower_groups() {
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
    lowered.push_back({&group, optimize::cut_axes(group, g, lower_of(group))});
  }
  return lowered;
}

std::vector<ScheduledGroup> Round::schedule(std::vector<LoweredGroup> lowered) {
  std::vector<ScheduledGroup> scheduled;
  for (LoweredGroup& l : lowered) {
    if (l.group != nullptr) {
      scheduled.push_back(
          {l.group, optimize::make_kernel(std::move(l.cut), *l.group, stored_,
                                          lower_of(*l.group), target_)});
      continue;
    }
    ScheduledGroup& plain = scheduled.emplace_back();
    plain.made.kernel = std::move(l.cut.lowered.kernel);
    if (!plain.made.kernel.call())
      optimize::choose_chunks(plain.made.kernel, out_.packed, out_.buffers, level_);
  }
  return scheduled;
}

bool Round::run(select::Requests& requests, bool last) {
  grouping_ = passes_.run(
      "group",
      [&] {
        return select::group_nodes(g, requests.stored, algorithms_.unrolled, decisions_);
      },
      g);
  select::RequestFinder finder(stored_, algorithms_.results, target_, requests);
  const size_t before = requests.count();
  finder.look_at_groups();
  if (requests.count() != before && !last) return true;
  make_buffers(passes_.run(
      "layouts",
      [&] {
        return select::assign_layouts(g, grouping_, requests.layouts,
                                      {lanes_, level_.bytes_across()}, rows_first_);
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

// What one kernel per op would take.
int64_t count_ops(const Graph& graph) {
  return std::ranges::count_if(graph.live_nodes(), [&](NodeId n) {
    const OpClass c = info(graph[n].op).op_class;
    return c != OpClass::Source && c != OpClass::View && c != OpClass::Region;
  });
}

// What a cut leaves in the fused graph.
struct CutResult {
  std::vector<Buffer> buffers;
  std::vector<PackedWeight> packed;
  std::vector<ScheduledKernel> kernels;
  std::vector<FusedRegion> regions;
};

void exchange(CutResult& cut, FusedGraph& fused) {
  std::swap(cut.buffers, fused.buffers);
  std::swap(cut.packed, fused.packed);
  std::swap(cut.kernels, fused.kernels);
  std::swap(cut.regions, fused.regions);
}

class Fuser {
public:
  Fuser(const Target& target, bool direct_only, const select::RowsFirst& rows_first,
        const select::CutSearchOptions& cut_search, Passes& passes)
      : target_(target), direct_only_(direct_only), rows_first_(rows_first),
        cut_search_(cut_search), passes_(passes) {}
  FusedGraph run(const Graph& graph, const std::string& place);

private:
  struct Rounds {
    std::vector<CutChoice> choices;
    bool written_out = false;
  };
  Rounds cut_in_rounds(const select::Algorithms& algorithms,
                       const select::CutDecisions& decisions,
                       const select::RowsFirst& rows_first, const std::string& place,
                       select::Requests& requests, FusedGraph& out);
  void search_cut(const select::Algorithms& algorithms, const select::Requests& requests,
                  std::vector<CutChoice> choices, FusedGraph& out);
  void fuse_bodies(const std::string& place, FusedGraph& out);

  const Target& target_;
  bool direct_only_;
  const select::RowsFirst rows_first_;
  const select::CutSearchOptions cut_search_;
  Passes& passes_;
};

Fuser::Rounds Fuser::cut_in_rounds(const select::Algorithms& algorithms,
                                   const select::CutDecisions& decisions,
                                   const select::RowsFirst& rows_first,
                                   const std::string& place, select::Requests& requests,
                                   FusedGraph& out) {
  const size_t given = requests.count();
  Rounds rounds;
  PassEnd end{PassEnd::Limit};
  for (size_t before = given + 1;
       end.rounds < kMostCutRounds && requests.count() != before; ++end.rounds) {
    before = requests.count();
    out.buffers.clear(), out.packed.clear(), out.kernels.clear(), out.regions.clear();
    passes_.set_place(place + "round " + std::to_string(end.rounds + 1));
    Round round(algorithms, target_, rows_first, out, passes_, decisions);
    rounds.written_out = round.run(requests, end.rounds + 1 == kMostCutRounds);
    rounds.choices = round.choices();
    if (requests.count() == before) end.reason = PassEnd::Fixpoint;
  }
  end.steps = static_cast<int64_t>(requests.count() - given);
  passes_.note_end("requests", end);
  return rounds;
}

// A cut that is predicted to take less than the rules' is made by the same rounds, which
// may request more; it is taken when it still takes less then.
void Fuser::search_cut(const select::Algorithms& algorithms,
                       const select::Requests& requests, std::vector<CutChoice> choices,
                       FusedGraph& out) {
  const Graph& g = out.graph;
  select::CutDecisions decisions;
  cost::Surroundings around;
  out.searched = passes_.run("cut-search", [&] {
    if (cut_search_.decide) decisions = cut_search_.decide(choices);
    if (cut_search_.decide || cut_search_.budget == 0) return CutSearch();
    around = surroundings_of(out);
    const std::set<NodeId> chained = touched_by_chains(out, target_.machine());
    std::erase_if(choices, [&](const CutChoice& c) { return chained.contains(c.node); });
    LoweredCutPricer pricer(g, algorithms.unrolled, requests, target_, around);
    select::SearchedCut found = select::search_cut(choices, pricer, cut_search_);
    decisions = std::move(found.decisions);
    return std::move(found.search);
  });
  if (out.searched.end != CutSearch::End::Off)
    passes_.note_end(
        "cut-search",
        {out.searched.end == CutSearch::End::Budget ? PassEnd::Budget : PassEnd::Fixpoint,
         1, std::ssize(out.searched.taken)});
  if (decisions.empty()) return;

  CutResult rules;
  exchange(rules, out);
  select::Requests more = requests;
  const bool made =
      cut_in_rounds(algorithms, decisions, {}, "searched, ", more, out).written_out;
  if (made && cut_search_.decide) return;
  LoweredCutPricer pricer(g, algorithms.unrolled, more, target_, around);
  const std::optional<double> seconds =
      made ? select::seconds_of(decisions, pricer) : std::nullopt;
  if (seconds && *seconds < out.searched.before) {
    out.searched.after = *seconds;
    return;
  }
  exchange(rules, out);
  out.searched.after = out.searched.before;
  out.searched.taken.clear();
}

void Fuser::fuse_bodies(const std::string& place, FusedGraph& out) {
  for (FusedRegion& region : out.regions) {
    const Node& node = out.graph[region.node];
    for (size_t b = 0; b < body_count(node.op); ++b) {
      const Graph& body = *out.graph.body(static_cast<uint32_t>(node.payload[b]));
      region.bodies.push_back(run(body, place + "body " + std::to_string(b) + " of %" +
                                            std::to_string(region.node) + ", "));
      out.unfused_kernels += region.bodies.back().unfused_kernels;
    }
  }
}

FusedGraph Fuser::run(const Graph& graph, const std::string& place) {
  passes_.set_place(place);
  select::Algorithms algorithms = passes_.run("algorithms", [&] {
    return select::choose_algorithms(graph, target_, direct_only_);
  });
  FusedGraph out;
  out.graph = std::move(algorithms.graph);
  out.chosen = std::move(algorithms.chosen);
  select::Requests requests{algorithms.stored, algorithms.layouts};
  const select::RowsFirst rows_first = place.empty() ? rows_first_ : select::RowsFirst();
  Rounds rounds = cut_in_rounds(algorithms, {}, rows_first, place, requests, out);
  SVOD_CHECK(rounds.written_out)
      << "no cut was found in which all of a kernel can be written out";
  // Bodies are cut by the rules, and so is what is laid out to take turns row by row.
  if (place.empty() && rows_first_.empty())
    search_cut(algorithms, requests, std::move(rounds.choices), out);
  out.unfused_kernels = count_ops(graph);
  fuse_bodies(place, out);
  passes_.set_place(place);
  out = passes_.run("chains", [&] {
    // What takes turns row by row is found with the plan.
    if (rows_first_.empty()) select::find_chains(out, target_.machine());
    drop_unused_weights(out);
    return std::move(out);
  });
  return passes_.run("magnitudes", [&] {
    select::find_magnitudes(out);
    return std::move(out);
  });
}

} // namespace

FusedGraph fuse(const Graph& graph, const Target& target, bool direct_only,
                Passes& passes, const select::RowsFirst& rows_first,
                const select::CutSearchOptions& cut_search) {
  FusedGraph out =
      Fuser(target, direct_only, rows_first, cut_search, passes).run(graph, "");
  passes.set_place("");
  return out;
}

FusedGraph fuse(const Graph& graph, const Target& target, bool direct_only) {
  Passes passes;
  return fuse(graph, target, direct_only, passes);
}

} // namespace svod
