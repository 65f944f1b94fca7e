// Extraction: against the known optimum of a graph drawn by hand, and against brute
// force.
#include "compiler/extract/extract.h"
#include "tests/support/random_graph.h"

#include <catch2/catch.hpp>

using namespace svod;
using namespace svod::extract;
using test::Random;

namespace {

// The least cost of all choices without cycles, one class after the other.
int64_t brute_force(const Problem& problem) {
  int64_t best = -1;
  Choice choice(problem.classes.size(), 0);
  for (;;) {
    if (!has_cycle(problem, choice)) {
      const int64_t cost = cost_of(problem, choice);
      if (best < 0 || cost < best) best = cost;
    }
    size_t c = 0;
    while (c < choice.size() && ++choice[c] == problem.classes[c].size()) choice[c++] = 0;
    if (c == choice.size()) return best;
  }
}

// Up to nine classes of up to three forms. The first form of each reads lower classes
// only, so there is a choice; others may read any, themselves included.
Problem random_problem(uint64_t seed) {
  Random random(seed);
  Problem problem;
  const int64_t count = random.between(2, 9);
  for (int64_t c = 0; c < count; ++c) {
    auto& forms = problem.classes.emplace_back();
    const int64_t several = random.between(1, 3);
    for (int64_t f = 0; f < several; ++f) {
      Form form{random.below(12), {}};
      const int64_t limit = f == 0 || random.chance(60) ? c : count;
      for (int64_t i = random.below(4); i > 0 && limit > 0; --i)
        form.inputs.push_back(static_cast<ClassId>(random.below(limit)));
      forms.push_back(std::move(form));
    }
  }
  for (int64_t r = random.between(1, 2); r > 0; --r)
    problem.roots.push_back(static_cast<ClassId>(count - 1 - random.below(count) / 2));
  return problem;
}

} // namespace

// Class 3 may read 1 and 2, which are cheap apart, or 4, which is dear but read by the
// other root in any case. A tree cost counts 0 twice and takes 4 for both roots.
TEST_CASE("extraction counts what is shared once", "[extract]") {
  Problem p;
  p.classes = {{{10, {}}},              // 0
               {{1, {0}}},              // 1
               {{1, {0}}},              // 2
               {{2, {1, 2}}, {1, {4}}}, // 3
               {{14, {}}},              // 4
               {{3, {3}}, {20, {}}},    // 5
               {{1, {1, 5}}}};          // 6
  p.roots = {6};
  const Extraction found = extract::extract(p);
  // 6, 5 by 3, 3 by 1 and 2, 0: 1 + 3 + 2 + 1 + 1 + 10.
  CHECK(found.cost == 18);
  CHECK(found.cost == brute_force(p));
  CHECK(found.greedy_cost > found.cost);
  CHECK(found.choice[3] == 0);
  CHECK(found.choice[4] == kNotTaken);
  CHECK(found.optimal);
}

TEST_CASE("extraction equals brute force on random problems", "[extract][property]") {
  int with_cycles = 0, greedy_misses = 0;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    const Problem problem = random_problem(seed);
    INFO("seed " << seed);
    const Extraction found = extract::extract(problem);
    REQUIRE(found.optimal);
    REQUIRE(!has_cycle(problem, found.choice));
    REQUIRE(cost_of(problem, found.choice) == found.cost);
    REQUIRE(found.cost == brute_force(problem));
    greedy_misses += found.greedy_cost != found.cost;
    Choice highest(problem.classes.size());
    for (size_t c = 0; c < highest.size(); ++c)
      highest[c] = static_cast<uint32_t>(problem.classes[c].size() - 1);
    with_cycles += has_cycle(problem, highest);
  }
  // Or nothing hard was drawn.
  CHECK(with_cycles > 100);
  CHECK(greedy_misses > 50);
}

TEST_CASE("what is given stays where nothing is truly cheaper", "[extract]") {
  Problem p;
  p.classes = {{{4, {}}}, {{4, {}}}, {{1, {1}}, {1, {0}}}};
  p.roots = {2};
  ExtractOptions options;
  for (uint32_t given : {0u, 1u}) {
    options.given = {0, 0, given};
    const Extraction found = extract::extract(p, options);
    CHECK(found.cost == 5);
    CHECK(found.choice[2] == given);
  }
  p.classes[0][0].cost = 3;
  options.given = {0, 0, 0};
  CHECK(extract::extract(p, options).choice[2] == 1);
}

TEST_CASE("extraction stops when the candidates are used up", "[extract]") {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    const Problem problem = random_problem(seed);
    INFO("seed " << seed);
    const int64_t best = brute_force(problem);
    for (int64_t budget : {0, 1, 3, 10}) {
      ExtractOptions options;
      options.candidates = budget;
      const Extraction found = extract::extract(problem, options);
      REQUIRE(found.candidates <= budget);
      REQUIRE(!has_cycle(problem, found.choice));
      REQUIRE(found.cost >= best);
      REQUIRE(found.cost <= found.greedy_cost);
      if (found.optimal) REQUIRE(found.cost == best);
    }
  }
}

// A chain of diamonds: each class may be read through one of two others, which share what
// they read with the next.
TEST_CASE("candidates grow with the classes and no faster", "[extract]") {
  const auto chain = [](uint32_t length) {
    Problem p;
    p.classes.push_back({{1, {}}});
    for (uint32_t i = 0; i < length; ++i) {
      const auto below = static_cast<ClassId>(p.classes.size() - 1);
      p.classes.push_back({{3, {below}}});
      p.classes.push_back({{2, {below}}});
      p.classes.push_back({{1, {below + 1}}, {1, {below + 2}}});
    }
    p.roots = {static_cast<ClassId>(p.classes.size() - 1)};
    return p;
  };
  const Extraction small = extract::extract(chain(400)),
                   large = extract::extract(chain(1600));
  CHECK(small.optimal);
  CHECK(large.optimal);
  CHECK(large.cost == 1 + 1600 * 3);
  CHECK(large.candidates <= 4 * small.candidates + 16);
}

TEST_CASE("a form may read more classes than lists of needed ones hold", "[extract]") {
  Problem p;
  Form wide{1, {}};
  for (ClassId c = 0; c < 200; ++c) {
    p.classes.push_back({{2, {}}, {1, {}}});
    wide.inputs.push_back(c);
  }
  p.classes.push_back({wide});
  p.roots = {200};
  const Extraction found = extract::extract(p);
  CHECK(found.cost == 201);
  CHECK(found.optimal);
}
