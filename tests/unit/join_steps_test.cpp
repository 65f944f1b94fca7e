// Short launches become one program, and verify reads what became of them.
#include "compiler/ir/build.h"
#include "compiler/ir/parse.h"
#include "compiler/pipeline.h"
#include "compiler/plan/verify.h"
#include "compiler/support/check.h"
#include "tests/support/check_kernels.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace svod;
using namespace svod::test;

namespace {

// A product that runs along the rows of a tensor, each kept, and its exponential.
const char* const kScan = R"(
body 0
  %0 = input "i" : i64[]
  %1 = input "x" : f32[7]
  %2 = input "row" : f32[7]
  %3 = mul %1 %2
  %4 = add %3 %2
  output "x" %3
  output "kept" %4
end
%0 = constant value=3 : i64[]
%1 = constant value=1 : bool[]
%2 = input "x" : f32[7]
%3 = input "rows" : f32[3,7]
%4 = loop %0 %1 %2 %3 body=0 carried=1 sliced=1 again=0 limit=3 reversed=[0,1]
%5 = result %4 number=0
%6 = result %4 number=1
%7 = exp %5
output "last" %7
output "kept" %6
)";

Graph chain(int64_t width) {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {4, width});
  for (int i = 0; i < 4; ++i) x = scan(g, Op::ScanSum, map(g, Op::Exp, {x}), 1);
  g.add_output("y", x);
  return g;
}

plan::Plan planned(const Graph& g) {
  CompileOptions options;
  options.target = *find_target("native");
  return compile(g, options).plan;
}

int64_t launches(const plan::Plan& s) {
  return std::ranges::count(s.steps, plan::StepKind::LaunchProgram, &plan::Step::kind);
}

Tensor tensor_of(const Shape& shape) {
  Tensor out{DType::F32, shape, {}};
  for (int64_t i = 0; i < element_count(shape); ++i) {
    const float value = 0.25F * static_cast<float>(i % 7) - 0.5F;
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    out.bytes.insert(out.bytes.end(), bytes, bytes + sizeof value);
  }
  return out;
}

} // namespace

TEST_CASE("short kernels are one program, long ones stay apart", "[plan][join]") {
  plan::Plan small = planned(chain(40));
  CHECK(launches(small) == 1);
  REQUIRE(small.programs.size() == 1);
  CHECK(small.programs[0].sequence()->steps.size() == 4);
  CHECK(launches(planned(chain(40000))) == 4);
}

TEST_CASE("a loop of known length is part of a sequence", "[plan][join]") {
  Diags diags;
  std::optional<Graph> g = parse_graph(kScan, diags);
  REQUIRE(g);
  plan::Plan plan = planned(*g);
  CHECK(launches(plan) == 1);
  CHECK(std::ranges::count(plan.steps, plan::StepKind::Loop, &plan::Step::kind) == 0);
  RandomGraph random{std::move(*g), {tensor_of({7}), tensor_of({3, 7})}, {}};
  random.tolerance.assign(random.graph.size(), 1e-6);
  CHECK(check_kernels(random, *find_target("native")).empty());
}

TEST_CASE("verify finds a sequence that leaves a slot", "[plan][join]") {
  plan::Plan plan = planned(chain(40));
  verify(plan);
  plan.programs[0].sequence()->steps[1].places[0].offset = 64;
  CHECK_THROWS_AS(verify(plan), InternalError);
  plan.programs[0].sequence()->steps[1].places.clear();
  CHECK_THROWS_AS(verify(plan), InternalError);
}
