// The search over what is stored: forced cuts compute what the evaluator does, the search
// finds what brute force finds, and it never returns what costs more than the rules.
#include "compiler/fuse.h"
#include "compiler/ir/build.h"
#include "compiler/pipeline.h"
#include "compiler/price_cut.h"
#include "compiler/rewrite/simplify.h"
#include "tests/support/check_kernels.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace svod;
using namespace svod::select;
using namespace svod::test;

namespace {

constexpr size_t kBudget = 200, kWhole = 10000;
constexpr LevelChoice kLevels[] = {{"x86-64-v4"}, {"x86-64-v3", 8}, {"x86-64-v2", 4}};

// A graph as the rules see it after their rounds, without the forms of contractions that
// have fewer products.
struct RuledGraph {
  explicit RuledGraph(const Graph& graph, const Target& target)
      : target(target), algorithms(choose_algorithms(graph, target, true)),
        pricer(algorithms.graph, algorithms.sums, requests, target, {}) {
    requests.stored = algorithms.stored;
    requests.layouts = algorithms.layouts;
    choices = group_nodes(algorithms.graph, requests.stored, algorithms.sums).choices;
  }
  Target target;
  Algorithms algorithms;
  Requests requests;
  LoweredCutPricer pricer;
  std::vector<CutChoice> choices;
};

CutDecisions decisions_of(const std::vector<CutChoice>& choices, uint64_t bits) {
  CutDecisions out;
  for (size_t i = 0; i < choices.size(); ++i)
    if ((bits >> i & 1) != 0)
      (choices[i].stored ? out.inlined : out.stored).insert(choices[i].node);
  return out;
}

codegen::Kernels emitted(FusedGraph fused, const Target& target) {
  ScheduledPlan scheduled =
      schedule(plan::plan(std::move(fused), target.machine()), target);
  return codegen::emit(std::move(scheduled.plan), target);
}

// The least that any cut costs.
double brute_force(RuledGraph& ruled) {
  double best = *seconds_of({}, ruled.pricer);
  for (uint64_t bits = 1; bits < uint64_t{1} << ruled.choices.size(); ++bits)
    if (const auto seconds = seconds_of(decisions_of(ruled.choices, bits), ruled.pricer))
      best = std::min(best, *seconds);
  return best;
}

} // namespace

TEST_CASE("a cut may be told what to store and what not", "[cut-search]") {
  // exp(x) is read for each of three columns: the rules store it.
  Graph g;
  const NodeId x = g.add_input("x", DType::F32, {4, 1});
  const NodeId e = map(g, Op::Exp, {x});
  const NodeId other = g.add_input("other", DType::F32, {4, 3});
  g.add_output("y", map(g, Op::Add, {expand(g, e, {4, 3}), other}));
  const Grouping rules = group_nodes(g, {}, {});
  REQUIRE(rules.choices.size() == 1);
  CHECK(rules.choices[0].node == e);
  CHECK(rules.choices[0].stored);
  CHECK(rules.choices[0].evaluations == 3);
  CHECK(rules.reasons.at(e) == StoreReason::Often);
  const Grouping inlined = group_nodes(g, {}, {}, {{}, {e}});
  CHECK(!inlined.stored[e]);
  REQUIRE(inlined.choices.size() == 1);
  CHECK(!inlined.choices[0].stored);
  // What has to be stored is no choice.
  const Grouping asked = group_nodes(g, {e}, {}, {{}, {e}});
  CHECK(asked.stored[e]);
  CHECK(asked.choices.empty());
}

// Cut by drawn decisions, by the search, and by the search as it is packed.
TEST_CASE("other cuts leave all outputs and compute what the evaluator does",
          "[cut-search][property][long]") {
  size_t drawn = 0, taken = 0, levels = 0; // that this machine runs
  for (const LevelChoice& level : kLevels) {
    const auto target = target_for(level);
    if (!target) continue;
    ++levels;
    for (uint64_t seed = 0; seed < 100; ++seed) {
      const RandomGraph random = large_graph(seed);
      const Graph simple = rewrite::simplify(random.graph);
      Random draw(seed);
      const CutSearchOptions any{0, 0, 0, 0, [&](const std::vector<CutChoice>& choices) {
                                   drawn += choices.size();
                                   return decisions_of(choices, draw.next());
                                 }};
      const CutSearchOptions options[] = {any, {kBudget, 0, 0}, {kBudget}};
      Passes passes;
      FusedGraph fused =
          fuse(simple, *target, true, passes, {}, options[seed % std::size(options)]);
      taken += fused.searched.taken.size();
      INFO("level " << level.name << ", seed " << seed);
      CHECK(fused.searched.after <= fused.searched.before);
      CHECK(check_answers(random, emitted(std::move(fused), *target), *target) == "");
    }
  }
  CHECK(drawn > 30 * levels);
  CHECK(taken > 6 * levels);
}

TEST_CASE("the search finds what brute force finds", "[cut-search][property][long]") {
  const Target target = *find_target("x86-64-v3");
  size_t compared = 0, better = 0;
  std::map<size_t, size_t> sizes;
  for (uint64_t seed = 0; compared < 500; ++seed) {
    const RandomGraph random = random_graph(seed);
    RuledGraph ruled(rewrite::simplify(random.graph), target);
    ++sizes[ruled.choices.size()];
    if (ruled.choices.empty() || ruled.choices.size() > 8) continue;
    ++compared;
    const SearchedCut found = search_cut(ruled.choices, ruled.pricer, {kWhole, 0, 0});
    const double best = brute_force(ruled);
    better += best < found.search.before;
    INFO("seed " << seed << "\n" << print(found.search));
    CHECK(found.search.after <= found.search.before);
    CHECK(found.search.after == Approx(best).epsilon(1e-9));
    CHECK(seconds_of(found.decisions, ruled.pricer) == found.search.after);
  }
  for (auto [size, count] : sizes) UNSCOPED_INFO(size << " choices: " << count);
  CHECK(better > 50);
}

TEST_CASE("equal budgets give equal cuts, and none prices no cut", "[cut-search]") {
  const Target target = *find_target("x86-64-v3");
  size_t out_of_budget = 0;
  for (uint64_t seed = 0; seed < 20; ++seed)
    for (const size_t budget : {size_t{0}, size_t{3}, kBudget}) {
      const Graph simple = rewrite::simplify(random_graph(seed).graph);
      Passes passes;
      const CutSearchOptions options{budget, 0, 0};
      const FusedGraph first = fuse(simple, target, true, passes, {}, options);
      const FusedGraph second = fuse(simple, target, true, passes, {}, options);
      CHECK(print(first) == print(second));
      CHECK(print(first.searched) == print(second.searched));
      const CutSearch& search = first.searched;
      CHECK((search.end == CutSearch::End::Off) == (budget == 0));
      out_of_budget += search.end == CutSearch::End::Budget;
      // What a region has begun it ends: a change that does not pay is taken back.
      CHECK(search.candidates <= budget + search.choices);
      if (search.taken.empty()) CHECK(search.after == search.before);
    }
  CHECK(out_of_budget > 5);
}

// Two gates, one that likes nothing and one that likes all.
TEST_CASE("no fusion is made that the gate objects to", "[cut-search]") {
  const Target target = *find_target("x86-64-v3");
  size_t refused = 0, made = 0, asked = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Graph simple = rewrite::simplify(random_graph(seed).graph);
    const auto searched = [&](bool likes) {
      CutSearchOptions options{kBudget, 0, 0};
      options.gate = [&, likes](const IoProfile& before, const IoProfile& after) {
        ++asked;
        CHECK(before.launches + after.launches > 0);
        return CutSearch::Gate{likes ? 1.0 : -1.0, likes};
      };
      Passes passes;
      return fuse(simple, target, true, passes, {}, options).searched;
    };
    const CutSearch none = searched(false), all = searched(true);
    refused += none.refused;
    CHECK(all.refused == 0);
    for (const CutSearch::Taken& taken : none.taken) {
      REQUIRE(taken.gate);
      CHECK(taken.inlined.empty());
    }
    for (const CutSearch::Taken& taken : all.taken) {
      REQUIRE(taken.gate);
      CHECK(taken.gate->agrees);
      made += !taken.inlined.empty();
    }
  }
  CHECK(asked > 0);
  CHECK(refused > 0);
  CHECK(made > 0);
}
