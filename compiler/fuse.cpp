// The middle of the compiler, in rounds. A round cuts the graph by rule, gives what is
// stored a layout, lowers each group to a kernel and chooses its loops. Kernels that
// would read badly then request that a value is stored, or stored in a better order, and
// the graph is cut again. Requests only grow, and a round without a new one is the last.
#include "compiler/fuse.h"

#include "compiler/cut_round.h"
#include "compiler/price_cut.h"
#include "compiler/select/chain.h"
#include "compiler/select/magnitudes.h"
#include "compiler/select/repeated.h"
#include "compiler/select/run_ends.h"
#include "compiler/support/check.h"

#include <algorithm>

namespace svod {

namespace {

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
  Fuser(const Target& target, const select::FormOptions& forms,
        const select::RowsFirst& rows_first, const select::CutSearchOptions& cut_search,
        Passes& passes)
      : target_(target), forms_(forms), rows_first_(rows_first), cut_search_(cut_search),
        passes_(passes) {}
  FusedGraph run(const Graph& graph, const std::string& place);

private:
  struct Rounds {
    std::vector<CutChoice> choices;
    bool written_out = false;
  };
  Rounds cut_in_rounds(const select::Algorithms& algorithms,
                       const select::CutDecisions& decisions,
                       const select::RowsFirst& rows_first, const std::string& place,
                       select::Requests& requests, MadeKernels& made, FusedGraph& out);
  void search_cut(const select::Algorithms& algorithms, const select::Requests& requests,
                  std::vector<CutChoice> choices, MadeKernels& made, FusedGraph& out);
  void fuse_bodies(const std::string& place, FusedGraph& out);

  const Target& target_;
  const select::FormOptions forms_;
  const select::RowsFirst rows_first_;
  const select::CutSearchOptions cut_search_;
  Passes& passes_;
};

Fuser::Rounds Fuser::cut_in_rounds(const select::Algorithms& algorithms,
                                   const select::CutDecisions& decisions,
                                   const select::RowsFirst& rows_first,
                                   const std::string& place, select::Requests& requests,
                                   MadeKernels& made, FusedGraph& out) {
  const size_t given = requests.count();
  Rounds rounds;
  PassEnd end{PassEnd::Limit};
  for (size_t before = given + 1;
       end.rounds < kMostCutRounds && requests.count() != before; ++end.rounds) {
    before = requests.count();
    out.buffers.clear(), out.packed.clear(), out.kernels.clear(), out.regions.clear();
    passes_.set_place(place + "round " + std::to_string(end.rounds + 1));
    CutRound round(algorithms, target_, rows_first, out, passes_, decisions, made);
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
                       MadeKernels& made, FusedGraph& out) {
  const Graph& g = out.graph;
  select::CutDecisions decisions;
  cost::Surroundings around;
  out.searched = passes_.run("cut-search", [&] {
    if (cut_search_.decide) decisions = cut_search_.decide(choices);
    if (cut_search_.decide || cut_search_.budget == 0) return CutSearch();
    around = surroundings_of(out);
    const std::set<NodeId> chained = touched_by_chains(out, target_.machine());
    std::erase_if(choices, [&](const CutChoice& c) { return chained.contains(c.node); });
    LoweredCutPricer pricer(g, algorithms.sums, requests, target_, around);
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
  const bool written_out =
      cut_in_rounds(algorithms, decisions, {}, "searched, ", more, made, out).written_out;
  if (written_out && cut_search_.decide) return;
  LoweredCutPricer pricer(g, algorithms.sums, more, target_, around);
  const std::optional<double> seconds =
      written_out ? select::seconds_of(decisions, pricer) : std::nullopt;
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
      if (node.op == Op::Loop)
        select::find_repeated(region.bodies.back(), target_.machine());
    }
  }
}

FusedGraph Fuser::run(const Graph& graph, const std::string& place) {
  passes_.set_place(place);
  select::Algorithms algorithms = passes_.run("algorithms", [&] {
    select::FormOptions forms = forms_;
    if (forms.most_growth && !place.empty()) forms.direct_only = true;
    return select::choose_algorithms(graph, target_, forms);
  });
  FusedGraph out;
  out.graph = std::move(algorithms.graph);
  out.chosen = std::move(algorithms.chosen);
  select::Requests requests{algorithms.stored, algorithms.layouts};
  const select::RowsFirst rows_first = place.empty() ? rows_first_ : select::RowsFirst();
  MadeKernels made;
  Rounds rounds = cut_in_rounds(algorithms, {}, rows_first, place, requests, made, out);
  SVOD_CHECK(rounds.written_out)
      << "no cut was found in which all of a kernel can be written out";
  // Bodies are cut by the rules, and so is what is laid out to take turns row by row.
  if (place.empty() && rows_first_.empty())
    search_cut(algorithms, requests, std::move(rounds.choices), made, out);
  out.unfused_kernels = count_ops(graph);
  fuse_bodies(place, out);
  if (place.empty()) select::find_read_again(out, target_.machine());
  passes_.set_place(place);
  out = passes_.run("chains", [&] {
    // What takes turns row by row is found with the plan.
    if (rows_first_.empty() && target_.kind != TargetKind::Gpu)
      select::find_chains(out, target_.machine());
    drop_unused_weights(out);
    return std::move(out);
  });
  out = passes_.run("run-ends", [&] {
    if (place.empty() && target_.kind != TargetKind::Gpu) select::find_run_ends(out);
    return std::move(out);
  });
  return passes_.run("magnitudes", [&] {
    select::find_magnitudes(out);
    return std::move(out);
  });
}

} // namespace

FusedGraph fuse(const Graph& graph, const Target& target,
                const select::FormOptions& forms, Passes& passes,
                const select::RowsFirst& rows_first,
                const select::CutSearchOptions& cut_search) {
  FusedGraph out = Fuser(target, forms, rows_first, cut_search, passes).run(graph, "");
  passes.set_place("");
  return out;
}

FusedGraph fuse(const Graph& graph, const Target& target,
                const select::FormOptions& forms) {
  Passes passes;
  return fuse(graph, target, forms, passes);
}

} // namespace svod
