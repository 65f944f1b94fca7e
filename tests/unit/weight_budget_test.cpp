// What --max-weights chooses: which contractions get larger weights, and how large.
#include "compiler/pipeline.h"
#include "compiler/select/forms/weight_budget.h"
#include "tests/support/convolve.h"
#include "tests/support/random_tensor.h"

#include <catch2/catch.hpp>

#include <numeric>

using namespace svod;
using namespace svod::select;
using namespace svod::test;

TEST_CASE("a budget goes where it saves most time", "[weight_budget]") {
  const std::vector<std::vector<FormPrice>> forms{
      {{100, 50}, {90, 10}}, {{30, 10}}, {}, {{5, 0}}};
  CHECK(spend(forms, 0) == std::vector<uint64_t>{0, 0, 0, 0});
  CHECK(spend(forms, 9) == std::vector<uint64_t>{0, 0, 0, 0});
  CHECK(spend(forms, 19) == std::vector<uint64_t>{10, 0, 0, 0});
  CHECK(spend(forms, 20) == std::vector<uint64_t>{10, 10, 0, 0});
  CHECK(spend(forms, 60) == std::vector<uint64_t>{50, 10, 0, 0});
}

TEST_CASE("a budget is never exceeded, and more of it saves no less", "[weight_budget]") {
  Random random(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::vector<FormPrice>> forms(size_t(random.between(1, 6)));
    for (auto& of_one : forms)
      for (int64_t i = random.below(4); i > 0; --i)
        of_one.push_back({double(random.below(1000)), uint64_t(random.below(1000))});
    const auto budget = uint64_t(random.below(3000));
    const std::vector<uint64_t> spent = spend(forms, budget);
    REQUIRE(spent.size() == forms.size());
    CHECK(std::accumulate(spent.begin(), spent.end(), uint64_t{0}) <= budget);
    for (size_t i = 0; i < forms.size(); ++i) {
      const bool is_form =
          std::ranges::count(forms[i], spent[i], &FormPrice::more_bytes) != 0;
      CHECK((spent[i] == 0 || is_form));
    }
  }
}

TEST_CASE("the bound of weights is kept for what a plan stores", "[weight_budget]") {
  // Layouts add a fifth to what is counted.
  const auto stored = [](uint64_t growth) { return 1000 + growth * 6 / 5; };
  CHECK(growth_within({500, 0}, stored) == 0);
  CHECK(growth_within({1000, 0}, stored) == 0);
  for (uint64_t most : {1100, 1500, 4000}) {
    const uint64_t growth = growth_within({most, 0}, stored);
    CHECK(growth > 0);
    CHECK(stored(growth) <= most);
  }
  CHECK(stored(growth_within({0, 1.5}, stored)) <= 1500);
}

static uint64_t weights_of(const Graph& g, std::optional<WeightBound> bound) {
  CompileOptions options{*find_target("x86-64-v3")};
  options.most_weights = bound;
  return compile(g, options).plan.weight_bytes;
}

TEST_CASE("a convolution's weights grow as far as they may", "[weight_budget]") {
  Random random(7);
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {1, 32, 24, 24});
  for (int i = 0; i < 2; ++i)
    x = convolve(g, x, random_tensor(random, {32, 32, 3, 3}), 1);
  g.add_output("y", x);
  const uint64_t free = weights_of(g, std::nullopt);
  const uint64_t written = weights_of(g, WeightBound{0, 1});
  CHECK(written < free);
  uint64_t last = written;
  for (double factor : {1.5, 2.0, 3.0, 10.0}) {
    const uint64_t got = weights_of(g, WeightBound{0, factor});
    CHECK(got <= std::max(written, uint64_t(factor * double(written))));
    CHECK(got >= last);
    last = got;
  }
  CHECK(last == free);
  CompileOptions options{*find_target("x86-64-v3")};
  const plan::Plan plan = compile(g, options).plan;
  CHECK(plan.fast_form_bytes == free - written);
}
