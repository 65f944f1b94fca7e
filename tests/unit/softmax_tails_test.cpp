// What a mask leaves of a softmax: exponentials far below the sum of their row are 0, and
// none is subnormal.
#include "compiler/ir/build.h"
#include "compiler/pipeline.h"
#include "tests/support/check_kernels.h"
#include "tests/support/compare.h"
#include "tests/support/run_kernels.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <limits>

using namespace svod;
using namespace svod::test;

static std::vector<float> floats_of(const Tensor& t) {
  std::vector<float> out(static_cast<size_t>(element_count(t.shape)));
  std::memcpy(out.data(), t.bytes.data(), out.size() * sizeof(float));
  return out;
}

TEST_CASE("what a mask leaves of a softmax is 0 or a normal number", "[lanes]") {
  constexpr int64_t kRows = 3, kColumns = 50;
  for (const LevelChoice& level : {LevelChoice{"x86-64-v4"}, LevelChoice{"x86-64-v3", 8},
                                   LevelChoice{"x86-64-v2", 4}}) {
    const std::optional<Target> target = target_for(level);
    if (!target) continue;
    Graph g;
    NodeId x = g.add_input("x", DType::F32, {kRows, kColumns});
    NodeId greatest = expand(g, reduce(g, Op::ReduceMax, x, {1}), {kRows, kColumns});
    NodeId e = map(g, Op::Exp, {map(g, Op::Sub, {x, greatest})});
    NodeId sum = expand(g, reduce(g, Op::ReduceSum, e, {1}), {kRows, kColumns});
    g.add_output("y", map(g, Op::Div, {e, sum}));
    std::vector<double> scores(kRows * kColumns);
    const double masks[kRows] = {-100, -1e9, -std::numeric_limits<double>::infinity()};
    for (size_t i = 0; i < scores.size(); ++i)
      scores[i] = double(i % 7) / 4 + (i % 2 == 0 ? 0 : masks[i / kColumns]);
    const Tensor in = make_tensor(DType::F32, {kRows, kColumns}, scores);
    const Tensor want = evaluate(g, {in}).outputs[0];
    CompileOptions options;
    options.target = *target;
    const KernelRun run = run_kernels(compile(std::move(g), options), *target, {in});
    REQUIRE(run.error.empty());
    CHECK(compare_tensors(run.outputs[0], want, 1e-6, 1e-30) == "");
    for (float p : floats_of(run.outputs[0])) CHECK((p == 0 || std::isnormal(p)));
  }
}
