// The floats of eight bits and less: every code and hard values against expectations made
// here from the specification's description of each format, by search over all its codes.
#include "compiler/pipeline.h"
#include "tests/support/compare.h"
#include "tests/support/run_kernels.h"
#include "tests/support/run_rule.h"

#include <bit>
#include <numeric>
#include <random>

using namespace svod;
using namespace svod::rule_test;
using svod::test::compare_tensors;
using svod::test::KernelRun;
using svod::test::run_kernels;

namespace {

constexpr DType kTypes[] = {DType::F8E4M3FN, DType::F8E4M3FNUZ, DType::F8E5M2,
                            DType::F8E5M2FNUZ, DType::F4E2M1};

// The value of a code, from the tables of ONNX's "Float stored in 8 bits" and the
// "4 bit types".
double expected_value(DType dtype, int code) {
  const bool five = dtype == DType::F8E5M2 || dtype == DType::F8E5M2FNUZ;
  const int mantissa = dtype == DType::F4E2M1 ? 1 : five ? 2 : 3;
  const int width = dtype == DType::F4E2M1 ? 3 : 7;
  const int bias = dtype == DType::F4E2M1       ? 1
                   : dtype == DType::F8E4M3FN   ? 7
                   : dtype == DType::F8E4M3FNUZ ? 8
                   : dtype == DType::F8E5M2     ? 15
                                                : 16;
  const int size = code & ((1 << width) - 1), exponent = size >> mantissa;
  const double part = std::ldexp(size & ((1 << mantissa) - 1), -mantissa);
  const double sign = code >> width ? -1 : 1;
  if (dtype == DType::F8E4M3FN && size == 0x7f) return NAN;
  if (dtype == DType::F8E5M2 && size > 0x7c) return NAN;
  if (dtype == DType::F8E5M2 && size == 0x7c) return sign * INFINITY;
  const bool one_zero = dtype == DType::F8E4M3FNUZ || dtype == DType::F8E5M2FNUZ;
  if (one_zero && code == 0x80) return NAN;
  return sign * (exponent == 0 ? std::ldexp(part, 1 - bias)
                               : std::ldexp(1 + part, exponent - bias));
}

int codes(DType dtype) { return 1 << info(dtype).bits; }

double largest(DType dtype) {
  return dtype == DType::F4E2M1       ? 6
         : dtype == DType::F8E4M3FN   ? 448
         : dtype == DType::F8E4M3FNUZ ? 240
                                      : 57344;
}

// Round to nearest, ties to the even code, as if the exponent had no bound: the neighbour
// above the largest value is there, too.
double expected_rounding(DType dtype, double x, bool saturate) {
  if (std::isnan(x)) return dtype == DType::F4E2M1 ? 0 : NAN;
  const double top = largest(dtype), size = std::fabs(x);
  int top_code = 0, best = 0;
  for (int code = 0; code < codes(dtype) / 2; ++code)
    if (expected_value(dtype, code) == top) top_code = code;
  if (size > top) best = top_code;
  for (int code = 0; code <= top_code && size <= top; ++code) {
    const double gap = std::fabs(expected_value(dtype, code) - size);
    const double least = std::fabs(expected_value(dtype, best) - size);
    if (gap < least || (gap == least && code % 2 == 0)) best = code;
  }
  const double step = top - expected_value(dtype, top_code - 1);
  const double half = size - top - step / 2; // > 0: nearer to the next value
  const bool beyond = half > 0 || (half == 0 && top_code % 2 == 1);
  const double sign = std::signbit(x) ? -1 : 1;
  if (beyond && !saturate && dtype != DType::F4E2M1)
    return dtype == DType::F8E5M2 ? sign * INFINITY : NAN;
  return sign * expected_value(dtype, best);
}

// Values of each format, the middles between them, their neighbours, and what lies
// beyond.
std::vector<float> hard_values(DType dtype) {
  std::vector<float> values{0.0f, -0.0f,  INFINITY, -INFINITY, NAN,
                            -NAN, 1e-30f, 3e38f,    1e-45f};
  std::vector<double> exact;
  for (int code = 0; code < codes(dtype); ++code)
    if (std::isfinite(expected_value(dtype, code)))
      exact.push_back(expected_value(dtype, code));
  exact.push_back(largest(dtype) * 1.2);
  exact.push_back(-largest(dtype) * 1.2);
  std::sort(exact.begin(), exact.end());
  const double top = largest(dtype);
  for (double edge : {464.0, 248.0, 61440.0, 65536.0, 6.5, 7.0, top}) {
    exact.push_back(edge);
    exact.push_back(-edge);
  }
  for (size_t i = 0; i + 1 < exact.size(); ++i)
    for (double at : {exact[i], (exact[i] + exact[i + 1]) / 2}) {
      const auto x = static_cast<float>(at);
      values.insert(values.end(),
                    {x, std::nextafter(x, INFINITY), std::nextafter(x, -INFINITY)});
    }
  std::mt19937 random(5);
  for (int i = 0; i < 2000; ++i) {
    const uint32_t bits = random();
    float x;
    std::memcpy(&x, &bits, sizeof x);
    values.push_back(x);
    values.push_back(
        std::ldexp(static_cast<float>(random()) - 0x1p31f, int(random() % 40) - 56));
  }
  return values;
}

bool same(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

Operator cast_to(DType dtype, bool saturate) {
  return {"Cast",
          25,
          {attribute("to", int64_t{info(dtype).onnx}),
           attribute("saturate", int64_t{saturate})}};
}

std::vector<uint8_t> cast_codes(Operator op, const Tensor& x) {
  op.run({x});
  INFO(op.failure);
  REQUIRE(op.results.size() == 1);
  return values<uint8_t>(op.results[0]);
}

} // namespace

TEST_CASE("every code of the small floats has its value and comes back", "[types]") {
  for (DType dtype : kTypes) {
    INFO(info(dtype).text);
    std::vector<uint8_t> all;
    for (int code = 0; code < codes(dtype); ++code) all.push_back(uint8_t(code));
    const Tensor x = tensor(dtype, {codes(dtype)}, all);
    const auto wide = apply({"Cast", 25, {attribute("to", int64_t{1})}}, {x});
    int wrong = 0;
    for (int code = 0; code < codes(dtype); ++code)
      wrong += !same(wide[size_t(code)], expected_value(dtype, code)) ||
               !same(scalar_value(dtype, uint64_t(code)), expected_value(dtype, code));
    CHECK(wrong == 0);
    const auto back = cast_codes(cast_to(dtype, false), f32({codes(dtype)}, wide));
    for (int code = 0; code < codes(dtype); ++code)
      if (!std::isnan(expected_value(dtype, code))) wrong += back[size_t(code)] != code;
    CHECK(wrong == 0);
  }
}

TEST_CASE("casts to the small floats follow the tables of the specification", "[types]") {
  for (DType dtype : kTypes) {
    const std::vector<float> x = hard_values(dtype);
    const auto count = static_cast<int64_t>(x.size());
    for (bool saturate : {false, true}) {
      const auto got = cast_codes(cast_to(dtype, saturate), f32({count}, x));
      for (size_t i = 0; i < x.size(); ++i) {
        double want = expected_rounding(dtype, x[i], saturate);
        const bool one_zero = dtype == DType::F8E4M3FNUZ || dtype == DType::F8E5M2FNUZ;
        if (one_zero && want == 0) want = 0.0;
        INFO(info(dtype).text << " of " << x[i] << " saturate " << saturate);
        if (!same(expected_value(dtype, got[i]), want)) {
          CHECK(expected_value(dtype, got[i]) == want);
          break;
        }
      }
    }
  }
}

TEST_CASE("a double is rounded to a small float once", "[types]") {
  // Just above the middle of 1 and 1.125: as a float it is the middle, which goes to 1.
  const Tensor x = tensor(DType::F64, {2}, std::vector<double>{1.0625 + 1e-12, 1.0625});
  const auto got = cast_codes(cast_to(DType::F8E4M3FN, true), x);
  CHECK(expected_value(DType::F8E4M3FN, got[0]) == 1.125);
  CHECK(expected_value(DType::F8E4M3FN, got[1]) == 1);
}

TEST_CASE("exponents: three ways to round, what is too large, and what is no number",
          "[types]") {
  const std::vector<float> x{1,           1.25f,       1.5f,      1.75f,   0x1p-127f,
                             0x1.8p-127f, 0x1.ap-127f, 0x1p-126f, 3e38f,   INFINITY,
                             NAN,         0,           0x1p-130f, 0x1p127f};
  const auto cast = [&](const char* mode, int64_t saturate) {
    Operator op{
        "Cast", 25, {attribute("to", int64_t{24}), attribute("saturate", saturate)}};
    op.attributes.push_back(attribute("round_mode", mode));
    return cast_codes(op, f32({int64_t(x.size())}, x));
  };
  using Codes = std::vector<uint8_t>;
  CHECK(cast("up", 1) == Codes{127, 128, 128, 128, 0, 1, 1, 1, 254, 254, 255, 0, 0, 254});
  CHECK(cast("down", 1) ==
        Codes{127, 127, 127, 127, 0, 0, 0, 1, 254, 254, 255, 0, 0, 254});
  CHECK(cast("nearest", 1) ==
        Codes{127, 127, 128, 128, 0, 1, 1, 1, 254, 254, 255, 0, 0, 254});
  CHECK(cast("nearest", 0) ==
        Codes{127, 127, 128, 128, 0, 1, 1, 1, 255, 255, 255, 255, 255, 254});
  // Values come back, the smallest as a subnormal float.
  Operator wide{"Cast", 25, {attribute("to", int64_t{1})}};
  const auto back = apply(wide, {tensor(DType::F8E8M0, {4}, Codes{0, 1, 127, 255})});
  CHECK(back[0] == 0x1p-127f);
  CHECK(back[1] == 0x1p-126f);
  CHECK(back[2] == 1);
  CHECK(std::isnan(back[3]));
}

TEST_CASE("integers of two and four bits keep the low bits", "[types]") {
  const Tensor x = f32({7}, {-9, -8, -1.7f, 0.9f, 7, 8, 300});
  const Tensor n = tensor(DType::I32, {5}, std::vector<int32_t>{-9, 7, 8, 17, 255});
  const auto cast = [](DType to, const Tensor& from) {
    Operator op{"Cast", 25, {attribute("to", int64_t{info(to).onnx})}};
    op.run({from});
    REQUIRE(op.results.size() == 1);
    CHECK(op.results[0].dtype == to);
    Operator wide{"Cast", 25, {attribute("to", int64_t{1})}};
    return apply(wide, {op.results[0]});
  };
  using Floats = std::vector<float>;
  CHECK(cast(DType::I4, x) == Floats{7, -8, -1, 0, 7, -8, -4});
  CHECK(cast(DType::U4, x) == Floats{7, 8, 15, 0, 7, 8, 12});
  CHECK(cast(DType::I2, x) == Floats{-1, 0, -1, 0, -1, 0, 0});
  CHECK(cast(DType::U2, x) == Floats{3, 0, 3, 0, 3, 0, 0});
  CHECK(cast(DType::I4, n) == Floats{7, 7, -8, 1, -1});
  CHECK(cast(DType::U4, n) == Floats{7, 7, 8, 1, 15});
  CHECK(cast(DType::I2, n) == Floats{-1, -1, 0, 1, -1});
  CHECK(cast(DType::U2, n) == Floats{3, 3, 0, 1, 3});
}

TEST_CASE("kernels convert small floats as the evaluator does", "[types][kernels]") {
  CompileOptions options;
  options.target = *find_target("native");
  for (DType dtype : kTypes) {
    const std::vector<float> x = hard_values(dtype);
    const Tensor in = f32({int64_t(x.size())}, x);
    std::vector<uint8_t> all(256);
    for (size_t i = 0; i < all.size(); ++i) all[i] = uint8_t(int(i) % codes(dtype));
    const Tensor every = tensor(dtype, {256}, all);
    Graph g;
    NodeId a = g.add_input("a", DType::F32, in.shape);
    NodeId b = g.add_input("b", dtype, every.shape, Interface{2, every.shape});
    g.add_output("c", cast(g, a, dtype), Interface{2, in.shape});
    g.add_output("d", cast(g, b, DType::F32));
    const Evaluated want = evaluate(g, {in, every});
    KernelRun run =
        run_kernels(compile(std::move(g), options), options.target, {in, every});
    REQUIRE(run.error == "");
    CHECK(compare_tensors(run.outputs[0], want.outputs[0], 0, 0) == "");
    CHECK(compare_tensors(run.outputs[1], want.outputs[1], 0, 0) == "");
  }
}

TEST_CASE("kernels convert half precision to the bits of the evaluator",
          "[types][kernels]") {
  CompileOptions options;
  options.target = *find_target("native");
  std::vector<float> values;
  // Every normal half with the middle to the next one and its neighbours; any bits.
  for (uint32_t half = 0; half < 0x7c00; half += 3)
    for (uint32_t rest : {0u, 0xfffu, 0x1000u, 0x1001u})
      values.push_back(std::bit_cast<float>(0x38000000 + (half << 13) + rest));
  std::mt19937 random(6);
  for (int i = 0; i < 20000; ++i)
    values.push_back(std::bit_cast<float>(uint32_t(random())));
  for (uint32_t bits : {0x7f800000u, 0xff800000u, 0x7f800001u, 0x7fa00000u, 0xffc12345u,
                        0x477fefffu, 0x477ff000u, 0x33000000u, 0x33000001u, 0x1u})
    values.push_back(std::bit_cast<float>(bits));
  std::vector<uint16_t> codes(65536);
  std::iota(codes.begin(), codes.end(), uint16_t{0});
  const Tensor in = f32({int64_t(values.size())}, values);
  const Tensor every = tensor(DType::U16, {65536}, codes);
  Graph g;
  NodeId a = g.add_input("a", DType::F32, in.shape);
  NodeId b = g.add_input("b", DType::U16, every.shape);
  g.add_output("c", bitcast(g, cast(g, a, DType::F16), DType::U16));
  g.add_output("d",
               bitcast(g, cast(g, bitcast(g, b, DType::F16), DType::F32), DType::U32));
  const Evaluated want = evaluate(g, {in, every});
  KernelRun run =
      run_kernels(compile(std::move(g), options), options.target, {in, every});
  REQUIRE(run.error == "");
  CHECK(run.outputs[0].bytes == want.outputs[0].bytes);
  CHECK(run.outputs[1].bytes == want.outputs[1].bytes);
}
