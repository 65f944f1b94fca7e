// Loops and conditions: their type rules, their text, the evaluator, simplification
// across their borders, and the packed program's steps against the evaluator.
#include "compiler/ir/build.h"
#include "compiler/ir/digest.h"
#include "compiler/ir/parse.h"
#include "compiler/ir/print.h"
#include "compiler/ir/region.h"
#include "compiler/ir/verify.h"
#include "compiler/rewrite/simplify.h"
#include "tests/support/check_kernels.h"
#include "tests/support/random_region.h"
#include "tests/support/seeds.h"
#include "tests/support/sweep.h"

#include <catch2/catch.hpp>

#include <cstring>

using namespace svod;
using namespace svod::test;

namespace {

Graph parsed(const std::string& text) {
  Diags diags;
  auto graph = parse_graph(text, diags);
  INFO(diags.text("graph"));
  REQUIRE(graph);
  REQUIRE(verify(*graph).empty());
  return std::move(*graph);
}

Tensor number(int64_t value) {
  Tensor out{DType::I64, {}, std::vector<std::byte>(8)};
  std::memcpy(out.bytes.data(), &value, 8);
  return out;
}

// x is doubled `count` times, as long as it stays below 100; each value is kept.
const char* const kDoubling = R"(
body 0
  %0 = input "i" : i64[]
  %1 = input "x" : i64[]
  %2 = input "bound" : i64[]
  %3 = add %1 %1
  %4 = lt %3 %2
  output "again" %4
  output "x" %3
  output "kept" %3
end
%0 = input "count" : i64[]
%1 = input "x" : i64[]
%2 = constant value=1 : bool[]
%3 = constant value=100 : i64[]
%4 = loop %0 %2 %1 %3 body=0 carried=1 sliced=0 again=1 limit=8 reversed=[0]
%5 = result %4 number=0
%6 = result %4 number=1
output "done" %4
output "x" %5
output "kept" %6
)";

std::string bytes_text(const Tensor& t) {
  std::string out;
  for (size_t at = 0; at < t.bytes.size(); at += 8) {
    int64_t v = 0;
    std::memcpy(&v, t.bytes.data() + at, 8);
    out += std::to_string(v) + ' ';
  }
  return out;
}

std::string run_text(const Graph& g, int64_t count, int64_t x) {
  Evaluated run = evaluate(g, {number(count), number(x)});
  if (run.failed != kNoNode) return "failed";
  std::string out;
  for (const Tensor& t : run.outputs) out += bytes_text(t) + "| ";
  return out;
}

// Seeds whose graph computes something else after `change`.
int differing(uint64_t first, uint64_t last, Graph (*change)(const Graph&)) {
  int count = 0;
  for (uint64_t seed = first; seed <= last; ++seed) {
    RandomGraph random = random_region(seed);
    Graph changed = change(random.graph);
    std::string what = compare_outputs(random, changed);
    for (const std::string& fault : verify(changed)) what += fault;
    if (what.empty()) continue;
    ++count;
    UNSCOPED_INFO("seed " << seed << ": " << what << '\n' << print_graph(random.graph));
  }
  return count;
}

int failing_kernels(Seeds seeds) {
  int count = 0;
  for (uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
    RandomGraph random = random_region(seed);
    std::string what = check_kernels(random, *find_target("native"));
    if (what.empty()) continue;
    ++count;
    UNSCOPED_INFO("seed " << seed << ": " << what << '\n' << print_graph(random.graph));
  }
  return count;
}

} // namespace

TEST_CASE("a loop runs while its count and its condition say so", "[region]") {
  Graph g = parsed(kDoubling);
  CHECK(run_text(g, 3, 5) == "3 | 40 | 10 20 40 0 0 0 0 0 | ");
  CHECK(run_text(g, 7, 20) == "3 | 160 | 40 80 160 0 0 0 0 0 | ");
  CHECK(run_text(g, 0, 7) == "0 | 7 | 0 0 0 0 0 0 0 0 | ");
  CHECK(run_text(g, -4, 7) == "0 | 7 | 0 0 0 0 0 0 0 0 | ");
  CHECK(run_text(g, 9, 0) == "failed"); // over the limit
}

TEST_CASE("the text of a region reads back", "[region]") {
  std::string text = print_graph(parsed(kDoubling));
  CHECK(print_graph(parsed(text)) == text);
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    std::string once = print_graph(random_region(seed).graph);
    Graph again = parsed(once);
    REQUIRE(print_graph(again) == once);
    REQUIRE(graph_digest(again) == graph_digest(parsed(once)));
  }
}

TEST_CASE("random regions reach what a region can be", "[region]") {
  int loops = 0, branches = 0, sliced = 0, conditional = 0, reversed = 0, nested = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const Graph g = random_region(seed).graph;
    REQUIRE(verify(g).empty());
    for (NodeId id : g.live_nodes()) {
      branches += g[id].op == Op::If;
      if (g[id].op != Op::Loop) continue;
      ++loops;
      LoopSpec spec = loop_spec(g[id]);
      sliced += spec.sliced > 0;
      conditional += spec.again;
      for (int64_t flag : spec.reversed) reversed += flag != 0;
      nested += g.body(spec.body)->body_count() > 0;
    }
  }
  for (int count : {loops, branches, sliced, conditional, reversed, nested})
    CHECK(count > 20);
}

TEST_CASE("a body is part of the digest, its place is not", "[region]") {
  std::string text = kDoubling;
  Digest digest = graph_digest(parsed(text));
  std::string other = text;
  other.replace(other.find("add %1 %1"), 3, "mul");
  CHECK(graph_digest(parsed(other)) != digest);
}

TEST_CASE("a region that does not fit its body is refused", "[region]") {
  const std::pair<const char*, const char*> kChanges[] = {
      {"body=0", "body=1"},
      {"carried=1", "carried=2"},
      {"sliced=0", "sliced=1"},
      {"limit=8", "limit=-1"},
      {"reversed=[0]", "reversed=[]"},
      {"\"x\" : i64[]\n  %2", "\"x\" : i32[]\n  %2"},
      {"result %4 number=1", "result %4 number=2"},
      {"result %4 number=1", "result %3 number=0"},
      {"end\n", ""},
      {"body 0\n", "body zero\n"},
  };
  for (auto [from, to] : kChanges) {
    std::string text = kDoubling;
    text.replace(text.find(from), std::strlen(from), to);
    Diags diags;
    INFO(text);
    CHECK_FALSE(parse_graph(text, diags));
  }
}

TEST_CASE("what is known outside folds inside, what is unused goes", "[region]") {
  Graph g = parsed(R"(
body 0
  %0 = input "i" : i64[]
  %1 = input "x" : i64[]
  %2 = input "same" : i64[]
  %3 = input "known" : i64[]
  %4 = mul %3 %3
  %5 = add %1 %4
  %6 = add %5 %2
  %7 = constant value=1 : bool[]
  output "again" %7
  output "x" %6
  output "same" %2
  output "unread" %4
end
%0 = input "count" : i64[]
%1 = input "x" : i64[]
%2 = constant value=1 : bool[]
%3 = constant value=3 : i64[]
%4 = loop %0 %2 %1 %0 %3 body=0 carried=2 sliced=0 again=1 limit=8 reversed=[0]
%5 = result %4 number=0
%6 = result %4 number=1
output "x" %5
output "same" %6
)");
  std::string want = run_text(g, 4, 1);
  Graph simple = rewrite::simplify(g);
  CHECK(run_text(simple, 4, 1) == want);
  std::string text = print_graph(simple);
  CAPTURE(text);
  CHECK(text.find("carried=1 sliced=0 again=0 limit=8 reversed=[]") != std::string::npos);
  CHECK(text.find("value=9") != std::string::npos); // 3 * 3
  CHECK(text.find("output \"same\" %0") != std::string::npos);
}

TEST_CASE("an if whose condition is known is its branch", "[region]") {
  Graph g = parsed(R"(
body 0
  %0 = input "x" : i64[]
  %1 = add %0 %0
  output "" %1
end
body 1
  %0 = input "x" : i64[]
  output "" %0
end
%0 = input "count" : i64[]
%1 = input "x" : i64[]
%2 = constant value=1 : bool[]
%3 = if %2 %1 body=0 other=1
%4 = result %3 number=0
output "y" %4
)");
  Graph simple = rewrite::simplify(g);
  CHECK(print_graph(simple).find("if") == std::string::npos);
  CHECK(run_text(simple, 0, 21) == "42 | ");
}

TEST_CASE("simplifying regions keeps their values", "[region][property]") {
  CHECK(differing(1, 150, [](const Graph& g) { return rewrite::simplify(g); }) == 0);
}

TEST_CASE("packed regions compute what the evaluator computes",
          "[region][property][sweep]") {
  CHECK(failing_kernels(swept(Seeds{1, 6}, 3)) == 0);
}

TEST_CASE("many packed regions compute what the evaluator computes",
          "[region][property][long]") {
  CHECK(failing_kernels(part_of({7, 150})) == 0);
}
