// What a plan takes for granted of values: the same answers hit, another one misses, and
// what is computed from weights is computed from those of the graph that asks.
#include "compiler/ir/evaluate.h"
#include "compiler/ir/parse.h"
#include "compiler/stored_plan.h"

#include <catch2/catch.hpp>

using namespace svod;

namespace {

Graph parsed(const std::string& text) {
  Diags diags;
  auto graph = parse_graph(text, diags);
  INFO(text << diags.text("text"));
  REQUIRE(graph);
  return std::move(*graph);
}

CompileOptions options() {
  CompileOptions out{*find_target("x86-64-v3")};
  out.facts = std::make_shared<ValueFacts>();
  return out;
}

std::vector<std::byte> kept(const Graph& graph, const std::string& key) {
  const CompileOptions options = ::options();
  CompiledPlan plan;
  plan.kernels = compile(graph, options);
  plan.facts = options.facts;
  const auto bytes = plan_bytes(plan, graph, key);
  REQUIRE(bytes);
  return *bytes;
}

// The values that each packed weight of a plan is of.
std::vector<std::vector<std::byte>> weights_of(const plan::Plan& plan) {
  std::vector<std::vector<std::byte>> out;
  for (const PackedWeight& packed : plan.packed)
    out.push_back(evaluate_known(plan.graph, packed.source).bytes);
  return out;
}

// Whether the plan of one text is one for the other, which has other values. If so, it is
// the one that the other has by itself.
bool hits(const std::string& made_for, const std::string& asked_for) {
  const Graph graph = parsed(made_for), other = parsed(asked_for);
  const std::string key = stored_plan_key(graph, options(), "build");
  if (stored_plan_key(other, options(), "build") != key) return false;
  const auto read = plan_from_bytes(kept(graph, key), other, key);
  if (!read) return false;
  const codegen::Kernels own = compile(other, options());
  CHECK(print(read->kernels.plan) == print(own.plan));
  CHECK(weights_of(read->kernels.plan) == weights_of(own.plan));
  REQUIRE(read->kernels.sources.size() == own.sources.size());
  for (size_t i = 0; i < own.sources.size(); i++)
    CHECK(read->kernels.sources[i].text == own.sources[i].text);
  return true;
}

std::string scaled(const std::string& op, const std::string& values) {
  return "%0 = input \"x\" : f32[2,3]\n"
         "%1 = weight #0 {" +
         values +
         "} : f32[1,3]\n"
         "%2 = expand %1 : f32[2,3]\n"
         "%3 = " +
         op +
         " %0 %2\n"
         "output \"y\" %3\n";
}

// x * (a - b), which is folded.
std::string folded(const std::string& a, const std::string& b) {
  return "%0 = input \"x\" : f32[3]\n"
         "%1 = weight #0 {" +
         a +
         "} : f32[3]\n"
         "%2 = weight #1 {" +
         b +
         "} : f32[3]\n"
         "%3 = sub %1 %2\n"
         "%4 = mul %0 %3\n"
         "output \"y\" %4\n";
}

std::string gathered(const std::string& index) {
  return "%0 = input \"x\" : f32[8]\n"
         "%1 = weight #0 {" +
         index +
         "} : i64[3]\n"
         "%2 = gather %0 %1 axis=0\n"
         "output \"y\" %2\n";
}

// (x + (a + b)) * c
std::string three(const std::string& a, const std::string& b, const std::string& c) {
  return "%0 = input \"x\" : f32[3]\n"
         "%1 = weight #0 {" +
         a +
         "} : f32[3]\n"
         "%2 = weight #1 {" +
         b +
         "} : f32[3]\n"
         "%3 = weight #2 {" +
         c +
         "} : f32[3]\n"
         "%4 = add %1 %2\n"
         "%5 = add %0 %4\n"
         "%6 = mul %5 %3\n"
         "output \"y\" %6\n";
}

} // namespace

TEST_CASE("weights that are only packed may be any", "[plan][cache]") {
  CHECK(hits(scaled("mul", "1, 2, 3"), scaled("mul", "7, -2, 1e30")));
  CHECK_FALSE(hits(scaled("mul", "1, 2, 3"), scaled("mul", "5, 5, 5")));
}

TEST_CASE("folded values are folded again", "[plan][cache]") {
  CHECK(hits(folded("1, 2, 3", "3, 5, 9"), folded("4, 2, 3", "3, 5, 8")));
}

TEST_CASE("a folded value that does not vary is another plan", "[plan][cache]") {
  CHECK_FALSE(hits(folded("1, 2, 3", "3, 5, 9"), folded("1, 2, 3", "0, 1, 2")));
  CHECK_FALSE(hits(folded("1, 2, 3", "0, 1, 2"), folded("2, 3, 4", "0, 1, 2")));
}

TEST_CASE("divisors are asked what a division may become", "[plan][cache]") {
  CHECK(hits(scaled("div", "2, 4, 8"), scaled("div", "8, 4, 0.5")));
  CHECK_FALSE(hits(scaled("div", "2, 4, 8"), scaled("div", "2, 4, 7")));
  CHECK_FALSE(hits(scaled("div", "3, 5, 7"), scaled("div", "2, 4, 8")));
  CHECK(hits(scaled("div", "3, 5, 7"), scaled("div", "3.1, 5.1, 7.2")));
  CHECK_FALSE(hits(scaled("div", "3, 5, 7"), scaled("div", "3, 5, 1e-40")));
}

TEST_CASE("known positions are asked for as they are", "[plan][cache]") {
  CHECK(hits(gathered("1, 3, 5"), gathered("1, 3, 5")));
  CHECK_FALSE(hits(gathered("1, 3, 5"), gathered("1, 2, 3")));
  CHECK_FALSE(hits(gathered("1, 3, 5"), gathered("1, 3, 4")));
}

TEST_CASE("values that are one have to stay equal", "[plan][cache]") {
  const std::string made_for = three("1, 2, 4", "3, 5, 7", "4, 7, 11");
  CHECK(hits(made_for, three("2, 2, 4", "3, 5, 7", "5, 7, 11")));
  CHECK_FALSE(hits(made_for, three("1, 2, 4", "3, 5, 8", "4, 7, 11")));
  CHECK_FALSE(hits(made_for, three("1, 2, 4", "3, 5, 7", "4, 7, 12")));
}

TEST_CASE("weights that were two and are one are another plan", "[plan][cache]") {
  CHECK_FALSE(hits(three("1, 2, 4", "3, 5, 7", "9, 8, 7"),
                   three("1, 2, 4", "1, 2, 4", "9, 8, 7")));
}

TEST_CASE("who looks at bytes and says nothing is asked for just these",
          "[plan][cache]") {
  const auto facts = std::make_shared<ValueFacts>();
  const Graph graph = with_traces(parsed(scaled("mul", "1, 2, 3")), facts);
  graph.blob(0).bytes();
  REQUIRE(facts->facts().size() == 1);
  CHECK(facts->facts().begin()->question == ValueQuestion::Equals);
  CHECK(facts->facts().begin()->digest == graph.blob(0).digest);
  facts->close();
}
