#include "compiler/passes.h"

#include "compiler/ir/print.h"
#include "compiler/ir/verify.h"
#include "compiler/kernel/fit.h"
#include "compiler/kernel/verify.h"
#include "compiler/plan/verify.h"
#include "compiler/support/check.h"

#include <algorithm>

namespace svod {

static constexpr PassName kPasses[] = {
    {"integer-contractions", "simplify"},
    {"simplify", "simplify"},
    {"fixed-point", "simplify"},
    {"double-sums", "simplify"},
    {"equal-programs", "fuse"},
    {"wide-channels", "fuse"},
    {"algorithms", "fuse"},
    {"group", "fuse"},
    {"layouts", "fuse"},
    {"lower", "fuse"},
    {"loops", "fuse"},
    {"requests", "fuse"},
    {"cut-search", "fuse"},
    {"chains", "fuse"},
    {"run-ends", "fuse"},
    {"magnitudes", "fuse"},
    {"attention", "fuse"},
    {"order", "fuse"},
    {"contractions", "fuse"},
    {"contract-products", "fuse"},
    {"plan", "plan"},
    {"schedule", "schedule"},
    {"emit", "emit"},
};

std::span<const PassName> pass_names() { return kPasses; }

static bool ends_phase(const PassName& pass) {
  return &pass == std::end(kPasses) - 1 || (&pass)[1].phase != pass.phase;
}

bool means_pass(std::string_view word, std::string_view pass) {
  if (word == pass || word == "all") return true;
  const auto row = std::ranges::find(kPasses, pass, &PassName::name);
  return row != std::end(kPasses) && row->phase == word && ends_phase(*row);
}

std::vector<std::string_view> pass_words() {
  std::vector<std::string_view> words = {"all"};
  for (const PassName& pass : kPasses) {
    words.push_back(pass.name);
    if (ends_phase(pass) && pass.phase != pass.name) words.push_back(pass.phase);
  }
  return words;
}

bool Passes::wants(std::string_view name) const {
  return print_ && std::ranges::any_of(words_, [&](const std::string& word) {
           return means_pass(word, name);
         });
}

void Passes::note_run(std::string_view name, double ms) {
  const auto pass = std::ranges::find(kPasses, name, &PassName::name);
  SVOD_CHECK(pass != std::end(kPasses)) << "a pass without a row: " << name;
  PassRun& run = runs_[pass->name];
  run.ms += ms;
  ++run.runs;
}

void Passes::note_end(std::string_view name, const PassEnd& end) {
  std::optional<PassEnd>& all = runs_.at(name).end;
  if (!all) all = PassEnd{};
  if (end.reason == PassEnd::Limit) all->reason = PassEnd::Limit;
  all->rounds = std::max(all->rounds, end.rounds);
  all->steps += end.steps;
}

double Passes::phase_ms(std::string_view phase) const {
  double ms = 0;
  for (const PassName& pass : kPasses)
    if (const auto run = runs_.find(pass.name); pass.phase == phase && run != runs_.end())
      ms += run->second.ms;
  return ms;
}

std::string text_of(const Graph& graph) { return print_graph(graph); }

std::string text_of(const select::Algorithms& algorithms) {
  std::string out = print_graph(algorithms.graph);
  auto list = [&](const char* what, const std::set<NodeId>& nodes) {
    if (nodes.empty()) return;
    out += what;
    for (NodeId n : nodes) out += " %" + std::to_string(n);
    out += "\n";
  };
  list("unrolled", algorithms.sums.unrolled);
  list("amplified", algorithms.sums.amplified);
  list("stored", algorithms.stored);
  list("results", algorithms.results);
  for (const auto& [n, layout] : algorithms.layouts)
    out += "layout %" + std::to_string(n) + " " + print(layout) + "\n";
  return out;
}

std::string text_of(const Grouping& grouping, const Graph&) { return print(grouping); }

std::string text_of(const std::map<NodeId, Layout>& layouts, const Graph& graph) {
  std::string out;
  for (const auto& [n, layout] : layouts)
    out += "%" + std::to_string(n) + " " + std::string(info(graph[n].op).text) + " " +
           print(layout) + "\n";
  return out;
}

std::string text_of(const std::vector<ChosenAlgorithm>& chosen) { return print(chosen); }
std::string text_of(const CutSearch& search) { return print(search); }
std::string text_of(const FusedGraph& fused) { return print(fused); }
std::string text_of(const plan::Plan& plan) { return plan::print(plan); }
std::string text_of(const ScheduledPlan& scheduled) {
  return plan::print_programs(scheduled.plan);
}

std::string text_of(const codegen::Kernels& kernels) {
  std::string out;
  for (const codegen::KernelSource& source : kernels.sources)
    out += "// " + source.symbol + "\n" + source.text + "\n";
  return out;
}

void check(std::string_view pass, const Graph& graph) {
  std::vector<std::string> faults = verify(graph);
  SVOD_CHECK(faults.empty()) << "after " << pass << ": " << faults[0];
}

void check(std::string_view pass, const select::Algorithms& algorithms) {
  check(pass, algorithms.graph);
  const size_t nodes = algorithms.graph.size();
  for (const std::set<NodeId>* list :
       {&algorithms.sums.unrolled, &algorithms.sums.amplified, &algorithms.stored,
        &algorithms.results})
    SVOD_CHECK(list->empty() || *list->rbegin() < nodes)
        << "after " << pass << ": %" << *list->rbegin() << " is no node";
}

void check(std::string_view, const Grouping& grouping, const Graph& graph) {
  verify(grouping, graph);
}

void check(std::string_view pass, const std::map<NodeId, Layout>& layouts,
           const Graph& graph) {
  for (const auto& [n, layout] : layouts) {
    const size_t rank = graph[n].shape.size();
    Shape axes = layout.order;
    std::ranges::sort(axes);
    SVOD_CHECK(axes == row_major(rank).order && layout.low.size() == rank &&
               layout.high.size() == rank && layout.block >= 1 &&
               layout.block_axis < static_cast<int64_t>(rank))
        << "after " << pass << ": the layout of %" << n << " is none of its shape";
  }
}

void check(std::string_view, const std::vector<ChosenAlgorithm>&) {}
void check(std::string_view pass, const CutSearch& search) {
  SVOD_CHECK(search.after <= search.before)
      << "after " << pass << ": the rules were better";
}
void check(std::string_view, const FusedGraph& fused) { verify(fused); }
void check(std::string_view, const plan::Plan& plan) { plan::verify(plan); }
void check(std::string_view pass, const ScheduledPlan& scheduled) {
  check(pass, scheduled.plan);
  for (const ScheduledKernel& k : scheduled.plan.programs)
    for (const LevelSchedule& level : k.levels) {
      const std::string why = misfit(k, level, level);
      SVOD_CHECK(why.empty()) << "after " << pass << ", level " << level.level << ": "
                              << why;
    }
}

void check(std::string_view, const codegen::Kernels&) {}

} // namespace svod
