// Passes: their names, what is kept of their runs, and the rounds in which the graph is
// cut.
#include "compiler/fuse.h"
#include "compiler/ir/build.h"
#include "compiler/pipeline.h"
#include "compiler/support/nearest.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace svod;

TEST_CASE("a word means the pass of its name, or the one that ends its phase",
          "[passes]") {
  CHECK(means_pass("group", "group"));
  CHECK_FALSE(means_pass("group", "layouts"));
  CHECK(means_pass("all", "layouts"));
  CHECK(means_pass("fuse", "contract-products"));
  CHECK_FALSE(means_pass("fuse", "group"));
  CHECK(means_pass("simplify", "simplify"));
  CHECK_FALSE(means_pass("simplify", "integer-contractions"));
}

TEST_CASE("the nearest word is the one with the fewest edits", "[passes]") {
  const std::vector<std::string_view> words = pass_words();
  CHECK(nearest("grop", words) == "group");
  CHECK(nearest("layout", words) == "layouts");
  CHECK(nearest("contract_products", words) == "contract-products");
}

// A convolution that reads the model's input through a pad: the first round finds that
// the padded input is to be stored.
static Graph padded_convolution() {
  Graph g;
  const NodeId x = g.add_input("x", DType::F32, {1, 16, 12, 12});
  const NodeId w = g.add_input("w", DType::F32, {16, 16, 3, 3});
  const NodeId padded = pad(g, x, {0, 0, 1, 1}, {0, 0, 1, 1}, 0);
  const NodeId rows = window(g, padded, 2, 3, 1, 1);
  const NodeId windows = window(g, rows, 3, 3, 1, 1); // [1, 16, 12, 12, 3, 3]
  const Shape full = {1, 16, 12, 12, 16, 3, 3};
  const NodeId data =
      reshape(g, permute(g, windows, {0, 2, 3, 1, 4, 5}), {1, 1, 12, 12, 16, 3, 3});
  const NodeId weights = reshape(g, w, {1, 16, 1, 1, 16, 3, 3});
  const NodeId product =
      map(g, Op::Mul, {expand(g, data, full), expand(g, weights, full)});
  g.add_output("y", reduce(g, Op::ReduceSum, product, {4, 5, 6}));
  return g;
}

TEST_CASE("the cut is repeated until no kernel requests anything", "[passes]") {
  std::vector<std::string> places;
  Passes passes({"group"}, [&](std::string_view, const std::string& place,
                               const std::string&) { places.push_back(place); });
  fuse(padded_convolution(), *find_target("x86-64-v3"), false, passes);
  const PassRun& requests = passes.runs().at("requests");
  REQUIRE(requests.end);
  CHECK(requests.end->reason == PassEnd::Fixpoint);
  CHECK(requests.end->rounds >= 2);
  CHECK(requests.end->steps >= 1);
  REQUIRE(static_cast<int>(places.size()) == requests.end->rounds);
  CHECK(places[1] == "round 2");
  CHECK(passes.runs().at("group").runs == requests.end->rounds);
}

TEST_CASE("every pass runs, and phases add up their times", "[passes]") {
  Passes passes;
  // Quantisations become integers where the target asks for it, first layers of tensor
  // cores are widened.
  for (const Target& target : {*find_target("x86-64-v3"), *find_target("cortex-m4"),
                               find_device("sm_80").value()})
    compile(padded_convolution(), {target, false, false}, passes);
  // Networks that quantise sum in doubles.
  Graph quantised;
  const NodeId x = quantised.add_input("x", DType::F32, {8});
  quantised.add_output("y", cast(quantised, map(quantised, Op::Round, {x}), DType::U8));
  compile(quantised, {*find_target("x86-64-v3"), true}, passes);
  for (const PassName& pass : pass_names()) {
    INFO(pass.name);
    CHECK(passes.runs().count(pass.name) == 1);
  }
  CHECK(passes.phase_ms("fuse") > 0);
}
