#include "compiler/egraph/alternatives.h"

#include "compiler/egraph/improve.h"
#include "compiler/rewrite/simplify.h"

#include <algorithm>
#include <map>

namespace svod::egraph {

std::string_view name_of(Aim aim) {
  constexpr std::string_view kNames[] = {"factor", "scale", "views", "join", "split"};
  return kNames[static_cast<size_t>(aim)];
}

namespace {

std::set<Family> families_of(Aim aim) {
  switch (aim) {
  case Aim::Factor:
    // Two sums are often under a view each.
    return {Family::Rules, Family::Reversed, Family::Factor, Family::Transpose};
  case Aim::Scale:
    return {Family::Rules, Family::Reversed, Family::Scale};
  case Aim::Views:
    return {Family::Rules, Family::Transpose};
  case Aim::Join:
    return {Family::Join};
  case Aim::Split:
    return {Family::Split};
  }
  return {};
}

// What places that look alike have in common: the contraction that they are, or the one
// that they become slices of, so that all of its slices are taken together.
struct Kind {
  Shape terms, results;
  Payload axes;
  DType dtype;
  auto operator<=>(const Kind&) const = default;
};

Kind kind_of(const Graph& g, const Site& site) {
  const Node& form = g[site.form];
  const Node& sum = form.op == Op::Slice ? g[form.inputs[0]] : g[site.at];
  return {g[sum.inputs[0]].shape, sum.shape, sum.payload, sum.dtype};
}

double work_of(const Kind& kind, size_t places) {
  return static_cast<double>(element_count(kind.terms)) * static_cast<double>(places);
}

// Sites by kind, those with most work first, which is a stable order.
std::vector<std::vector<Site>> kinds_of(const Graph& g, const std::vector<Site>& sites) {
  std::map<Kind, std::vector<Site>> kinds;
  for (const Site& site : sites)
    if (is_reduce(g[site.at].op)) kinds[kind_of(g, site)].push_back(site);
  std::vector<std::pair<double, std::vector<Site>>> by_work;
  for (auto& [kind, all] : kinds)
    by_work.emplace_back(work_of(kind, all.size()), std::move(all));
  std::ranges::stable_sort(by_work, std::ranges::greater{},
                           &std::pair<double, std::vector<Site>>::first);
  std::vector<std::vector<Site>> out;
  for (auto& [work, all] : by_work) out.push_back(std::move(all));
  return out;
}

// The given graph with other forms at these sites; how many there are.
size_t take_forms(const EGraph& e, const GraphProblem& from,
                  const std::map<NodeId, size_t>& number, const std::vector<Site>& sites,
                  extract::Choice& choice) {
  size_t places = 0;
  for (const Site& site : sites) {
    const auto found = number.find(e.find(site.at));
    if (found == number.end()) continue;
    const std::vector<NodeId>& forms = from.forms[found->second];
    const auto form = std::ranges::find(forms, site.form);
    if (form == forms.end()) continue; // it is one with another node
    choice[found->second] = static_cast<uint32_t>(form - forms.begin());
    ++places;
  }
  return places;
}

void add_kinds(const Graph& graph, const Machine& machine,
               const SaturateOptions& saturation, size_t most, Alternatives& out) {
  EGraph e(graph);
  out.saturation = saturate(e, saturation);
  if (out.saturation.sites.empty()) return;
  const GraphProblem from = problem_of(e, machine);
  std::map<NodeId, size_t> number;
  for (size_t i = 0; i < from.classes.size(); ++i) number[from.classes[i]] = i;
  for (const std::vector<Site>& sites : kinds_of(e.g, out.saturation.sites)) {
    if (out.graphs.size() == most) break;
    // The lowest node of each class is the graph's own.
    extract::Choice choice(from.classes.size(), 0);
    const size_t places = take_forms(e, from, number, sites, choice);
    if (places == 0 || extract::has_cycle(from.problem, choice)) continue;
    out.graphs.push_back({graph_of(e, from, choice), places});
  }
}

} // namespace

Alternatives alternatives(const Graph& graph, Aim aim, const Machine& machine,
                          const AlternativeOptions& options) {
  Alternatives out;
  SaturateOptions saturation;
  saturation.families = families_of(aim);
  saturation.keep_rounding = options.keep_rounding;
  saturation.limits = options.limits;
  if (aim == Aim::Join || aim == Aim::Split) {
    // A part of a sum is not cut again.
    if (aim == Aim::Split) saturation.limits.iterations = 1;
    add_kinds(graph, machine, saturation, options.most, out);
    return out;
  }
  ImproveOptions improved;
  improved.saturate = saturation;
  improved.candidates = options.candidates;
  improved.worth = 1;
  if (aim == Aim::Views) improved.views = Views::Moved;
  ImproveReport report;
  Graph better = improve(graph, machine, improved, &report);
  out.saturation = std::move(report.saturation);
  if (report.taken && report.cost_after < report.cost_before)
    out.graphs.push_back({std::move(better), 0});
  return out;
}

} // namespace svod::egraph
