// The same bytes on every processor: sums of floats in doubles, and products that are
// added with one rounding where no instruction does that.
#define SVOD_ROUNDS_ONCE
namespace without_fma {
#include "compiler/ir/scalar_functions.h"
}
#undef SVOD_ROUNDS_ONCE
#undef SVOD_SCALAR_FUNCTIONS

#include "compiler/ir/build.h"
#include "compiler/ir/evaluate.h"
#include "compiler/pipeline.h"
#include "compiler/rewrite/double_sums.h"
#include "tests/support/random_graph.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>

using namespace svod;
using namespace svod::test;

namespace {

// A mean that is quantised.
Graph quantised_mean(bool rounds) {
  Graph g;
  const NodeId x = g.add_input("x", DType::F32, {3, 40});
  NodeId mean = map(
      g, Op::Mul, {reduce(g, Op::ReduceSum, x, {1}), constant(g, DType::F32, {3, 1}, 8)});
  if (rounds) mean = map(g, Op::Round, {mean});
  g.add_output("y", cast(g, mean, DType::U8));
  return g;
}

size_t count(const Graph& g, Op op, DType dtype) {
  size_t found = 0;
  for (const NodeId id : g.live_nodes()) found += g[id].op == op && g[id].dtype == dtype;
  return found;
}

uint32_t bits(float x) { return std::bit_cast<uint32_t>(x); }

} // namespace

TEST_CASE("products are added in doubles as by an instruction that rounds once",
          "[double]") {
  Random random(7);
  size_t twice = 0;
  const auto check = [&](float a, float b, float c) {
    const float got = without_fma::scalar::ma_by_doubles(a, b, c);
    const float want = std::fma(a, b, c);
    if (std::isnan(want) ? !std::isnan(got) : bits(got) != bits(want))
      FAIL(a << " * " << b << " + " << c << " is " << want << ", not " << got);
    twice += bits(float(double(a) * double(b) + double(c))) != bits(want);
  };
  const auto any = [&] { return std::bit_cast<float>(uint32_t(random.next())); };
  for (int i = 0; i < 300'000; ++i) check(any(), any(), any());
  // A sum in the middle of two floats but for the last bits of a small product is what
  // two roundings miss.
  for (int i = 0; i < 300'000; ++i) {
    const float a = 1 + float(random.below(1 << 12)) * 0x1p-12f;
    const float b = 1 + float(random.below(1 << 12)) * 0x1p-12f;
    const auto scale = static_cast<int>(random.between(-60, 60));
    check(a, std::ldexp(b, scale), 1 + float(random.below(1 << 23)) * 0x1p-23f);
  }
  const float next = std::nextafter(1.0f, 2.0f);
  check(0x1p-24f, next, 1), check(-0x1p-25f, next, 1), check(0x1p-24f, -next, next);
  check(0, 0, -0.0f), check(-0.0f, 1, -0.0f), check(INFINITY, 1, -INFINITY);
  check(INFINITY, 2, 1), check(0x1p127f, 2, -0x1p127f), check(0x1p-75f, 0x1p-75f, 0);
  check(0x1p-149f, 0.5f, 0x1p-149f), check(0x1.8p-75f, 0x1p-75f, 0x1p-149f);
  CHECK(twice > 0); // the cases reach where it matters
}

TEST_CASE("what is rounded to bytes quantises", "[double]") {
  CHECK(rewrite::quantises(quantised_mean(true)));
  CHECK(!rewrite::quantises(quantised_mean(false)));
}

TEST_CASE("sums in double keep what floats lose", "[double]") {
  Graph g;
  const NodeId x = g.add_input("x", DType::F32, {1, 3});
  const NodeId w = tensor_f32(g, {3, 1}, std::array{1.0f, 1.0f, 1.0f});
  g.add_output("sum", reduce(g, Op::ReduceSum, x, {1}));
  g.add_output("product", matmul(g, x, w));
  const Tensor given = make_tensor(DType::F32, {1, 3}, {1e8, 1, -1e8});
  const Graph wide = rewrite::sums_in_double(g);
  CHECK(count(wide, Op::ReduceSum, DType::F64) == 2);
  CHECK(count(wide, Op::ReduceSum, DType::F32) == 0);
  const Evaluated got = evaluate(wide, {given});
  for (const Tensor& output : got.outputs) {
    CHECK(output.dtype == DType::F32);
    CHECK(element_value(output, 0) == 1);
  }
}

TEST_CASE("sums in double leave all else as it is", "[double][property]") {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    const RandomGraph random = random_graph(seed);
    const Graph wide = rewrite::sums_in_double(random.graph);
    const Evaluated before = evaluate(random.graph, random.inputs),
                    after = evaluate(wide, random.inputs);
    for (size_t o = 0; o < before.outputs.size(); ++o) {
      CHECK(after.outputs[o].dtype == before.outputs[o].dtype);
      CHECK(after.outputs[o].shape == before.outputs[o].shape);
      if (random.tolerance[random.graph.outputs()[o].node] == 0)
        CHECK(after.outputs[o].bytes == before.outputs[o].bytes);
    }
  }
}

TEST_CASE("exact packs of what quantises sum in double and round once", "[double]") {
  for (const bool exact : {true, false})
    for (const bool rounds : {true, false}) {
      CAPTURE(exact, rounds);
      CompileOptions options{*find_target("x86-64"), exact};
      const codegen::Kernels kernels = compile(quantised_mean(rounds), options);
      for (const codegen::KernelSource& source : kernels.sources) {
        const bool doubles =
            source.text.find("f64", source.prelude_bytes) != std::string::npos;
        CHECK(doubles == (exact && rounds));
        const bool once = std::ranges::count(source.flags, "-DSVOD_ROUNDS_ONCE") == 1;
        CHECK(once == (exact && rounds && source.level == "v2"));
      }
    }
}
