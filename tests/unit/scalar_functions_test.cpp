// The scalar functions that evaluator and kernels share: their error against long double,
// integer arithmetic against wider integers, conversions against the ones of scalar.cpp.
#include "compiler/ir/build.h"
#include "compiler/ir/scalar_angle.h"
#include "compiler/ir/scalar_convert.h"
#include "compiler/ir/scalar_power.h"
#include "tests/unit/ulp.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cstring>
#include <numbers>
#include <random>

using namespace svod;

namespace {

// The largest error over some samples, and where.
template <class T> struct Worst {
  double error = 0;
  T x = 0, y = 0;
  void add(double e, T at_x, T at_y = 0) {
    if (e > error) error = e, x = at_x, y = at_y;
  }
};

template <class T> const std::vector<T>& special_values() {
  using L = std::numeric_limits<T>;
  static const std::vector<T> values = [] {
    std::vector<T> v{0,
                     T(0.5),
                     1,
                     T(1.5),
                     2,
                     3,
                     T(2.5),
                     T(1e9),
                     T(16777215),
                     T(0.25),
                     T(80),
                     T(700),
                     L::max(),
                     L::min(),
                     L::denorm_min(),
                     L::infinity(),
                     std::nextafter(T(1), T(0)),
                     std::nextafter(T(1), T(2))};
    for (size_t i = 0, n = v.size(); i < n; i++) v.push_back(-v[i]);
    v.push_back(L::quiet_NaN());
    return v;
  }();
  return values;
}

template <class F, class R> Worst<float> sweep_float(uint64_t stride, F f, R reference) {
  Worst<float> worst;
  auto check = [&](float x) { worst.add(ulp_error(f(x), reference(x)), x); };
  for (float x : special_values<float>()) check(x);
  for (uint64_t bits = 0; bits < (uint64_t(1) << 32); bits += stride)
    check(std::bit_cast<float>(uint32_t(bits)));
  return worst;
}

// Half of the samples have random bits, half lie where functions are not constant.
double sample_double(std::mt19937_64& random, bool wild) {
  uint64_t bits = random();
  if (wild) return std::bit_cast<double>(bits);
  return std::ldexp(double(int64_t(bits)), int(random() % 16) - 68);
}
template <class F, class R> Worst<double> sweep_double(int count, F f, R reference) {
  Worst<double> worst;
  std::mt19937_64 random(7);
  auto check = [&](double x) { worst.add(ulp_error(f(x), reference(x)), x); };
  for (double x : special_values<double>()) check(x);
  for (int i = 0; i < count; i++) check(sample_double(random, i % 2 == 0));
  return worst;
}

template <class T, class F, class R> Worst<T> sweep_pairs(int count, F f, R reference) {
  Worst<T> worst;
  std::mt19937_64 random(11);
  auto check = [&](T x, T y) { worst.add(ulp_error(f(x, y), reference(x, y)), x, y); };
  for (T x : special_values<T>())
    for (T y : special_values<T>()) check(x, y);
  for (int i = 0; i < count; i++) {
    T x = T(sample_double(random, false)), y = T(sample_double(random, false));
    check(x, y);
    check(std::round(x), std::round(y));
    check(1 + x * T(0x1p-10), std::ldexp(y, int(random() % 20)));
    uint64_t bits[2] = {random(), random()};
    std::memcpy(&x, &bits[0], sizeof x);
    std::memcpy(&y, &bits[1], sizeof y);
    check(x, y);
  }
  return worst;
}

void expect_bounds(uint64_t float_stride, int doubles) {
#define BOUND(function, float_bound, double_bound, reference)                            \
  {                                                                                      \
    auto truth = [](long double x) -> long double { return reference; };                 \
    auto f =                                                                             \
        sweep_float(float_stride, [](float x) { return scalar::function(x); }, truth);   \
    INFO(#function << " float " << f.error << " at " << std::hexfloat << f.x);           \
    CHECK(f.error <= float_bound);                                                       \
    auto d = sweep_double(doubles, [](double x) { return scalar::function(x); }, truth); \
    INFO(#function << " double " << d.error << " at " << std::hexfloat << d.x);          \
    CHECK(d.error <= double_bound);                                                      \
  }
#define BOUND2(function, float_bound, double_bound, reference)                           \
  {                                                                                      \
    auto truth = [](long double x, long double y) -> long double { return reference; };  \
    auto f = sweep_pairs<float>(                                                         \
        doubles / 4, [](float x, float y) { return scalar::function(x, y); }, truth);    \
    INFO(#function << " float " << f.error << " at " << f.x << ", " << f.y);             \
    CHECK(f.error <= float_bound);                                                       \
    auto d = sweep_pairs<double>(                                                        \
        doubles / 4, [](double x, double y) { return scalar::function(x, y); }, truth);  \
    INFO(#function << " double " << d.error << " at " << d.x << ", " << d.y);            \
    CHECK(d.error <= double_bound);                                                      \
  }
#include "tests/unit/scalar_bounds.def"
}

// All pairs of a small integer type, against int.
template <class T, class F> void all_pairs(F&& f) {
  for (int a = std::numeric_limits<T>::min(); a <= std::numeric_limits<T>::max(); a++)
    for (int b = std::numeric_limits<T>::min(); b <= std::numeric_limits<T>::max(); b++)
      f(a, b);
}
template <class T> void check_integers() {
  int wrong = 0;
  all_pairs<T>([&](int a, int b) {
    T x = T(a), y = T(b);
    int floored = b == 0 ? 0 : a - b * int(std::floor(double(a) / b));
    wrong += scalar::div_(x, y) != T(b == 0 ? 0 : a / b);
    wrong += scalar::fmod_(x, y) != T(b == 0 ? 0 : a % b);
    wrong += scalar::mod_(x, y) != T(floored);
    wrong += scalar::min_(x, y) != T(std::min(a, b));
    wrong += scalar::max_(x, y) != T(std::max(a, b));
    bool inside = b >= 0 && b < 8;
    wrong += scalar::shl_(x, y) != T(inside ? a << b : 0);
    wrong += scalar::shr_(x, y) != T(inside ? a >> b : 0);
    uint64_t power = 1;
    for (int i = 0; i < b; i++) power *= uint64_t(a);
    int inverse = a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
    wrong += scalar::pow_(x, y) != (b < 0 ? T(inverse) : T(power));
    wrong += scalar::abs_(x) != T(std::abs(a));
    wrong += scalar::sign_(x) != T((a > 0) - (a < 0));
  });
  CHECK(wrong == 0);
}

// The value an element of type E takes for x, by the rules of cast.
template <class E> E saturated(long double x) {
  using L = std::numeric_limits<E>;
  if (std::isnan(x)) return 0;
  if (x >= static_cast<long double>(L::max())) return L::max();
  if (x <= static_cast<long double>(L::min())) return L::min();
  return E(x);
}
template <class E, class F> int wrong_casts(F x) {
  return scalar::convert_<E>(x) != saturated<E>(static_cast<long double>(x));
}
template <class F> int wrong_casts_to_any(F x) {
  return wrong_casts<int8_t>(x) + wrong_casts<uint8_t>(x) + wrong_casts<int16_t>(x) +
         wrong_casts<uint16_t>(x) + wrong_casts<int32_t>(x) + wrong_casts<uint32_t>(x) +
         wrong_casts<int64_t>(x) + wrong_casts<uint64_t>(x);
}

} // namespace

TEST_CASE("scalar functions keep their error bounds", "[scalar]") {
  expect_bounds(40009, 40000);
}

TEST_CASE("scalar functions keep their error bounds, densely", "[scalar][long]") {
  expect_bounds(97, 4000000);
}

// Its tail vanishes, so the error is in units of x: one unit of it on its way through
// erf.
TEST_CASE("gelu is near x times the normal distribution, and 0 where that ends",
          "[scalar]") {
  const auto truth = [](long double x) {
    return x / 2 * erfcl(-x * std::numbers::sqrt2_v<long double> / 2);
  };
  double worst = 0, worst_double = 0;
  for (uint64_t bits = 0; bits < (uint64_t(1) << 32); bits += 4001) {
    const float x = std::bit_cast<float>(uint32_t(bits));
    if (!(std::fabs(x) > 1e-30f && std::fabs(x) < 1e30f)) continue;
    const double y = double(scalar::gelu_(x));
    worst = std::max(worst, std::fabs(double((y - truth(x)) / x)));
    worst_double =
        std::max(worst_double,
                 std::fabs(double((scalar::gelu_(double(x)) - truth(double(x))) / x)));
  }
  CHECK(worst < 0x1p-22);
  CHECK(worst_double < 0x1p-51);
  CHECK(scalar::gelu_(-6.0f) == 0);
  CHECK(scalar::gelu_(-3e38f) == 0);
  CHECK(scalar::gelu_(3e38f) == 3e38f);
  CHECK(scalar::gelu_(HUGE_VALF) == HUGE_VALF);
  CHECK(std::signbit(scalar::gelu_(-0.0f)));
  CHECK(std::isnan(scalar::gelu_(NAN)));
}

TEST_CASE("rounding functions agree with the library for every kind of value",
          "[scalar]") {
  int wrong = 0;
  auto same = [](auto a, auto b) {
    return (a != a && b != b) || (a == b && std::signbit(a) == std::signbit(b));
  };
  auto check = [&](auto x) {
    wrong += !same(scalar::floor_(x), std::floor(x));
    wrong += !same(scalar::ceil_(x), std::ceil(x));
    wrong += !same(scalar::trunc_(x), std::trunc(x));
    wrong += !same(scalar::round_(x), std::nearbyint(x));
  };
  for (uint64_t bits = 0; bits < (uint64_t(1) << 32); bits += 4001)
    check(std::bit_cast<float>(uint32_t(bits)));
  for (int i = -40; i <= 40; i++) check(float(i) / 4), check(double(i) / 4);
  std::mt19937_64 random(3);
  for (int i = 0; i < 200000; i++) check(sample_double(random, i % 2 == 0));
  for (double x : special_values<double>()) check(x);
  CHECK(wrong == 0);
}

TEST_CASE("integer functions agree with int arithmetic for all bytes", "[scalar]") {
  check_integers<int8_t>();
  check_integers<uint8_t>();
  CHECK(scalar::div_(INT64_MIN, int64_t(-1)) == INT64_MIN);
  CHECK(scalar::fmod_(INT64_MIN, int64_t(-1)) == 0);
  CHECK(scalar::mod_(INT64_MIN, int64_t(-1)) == 0);
}

TEST_CASE("the upper half of a product comes of products of 32 bits", "[scalar]") {
  std::mt19937 random(5);
  std::vector<int32_t> values{0, 1, -1, INT32_MAX, INT32_MIN, 0xffff, -0x10000, 0x7fff};
  for (int i = 0; i < 300; ++i) values.push_back(static_cast<int32_t>(random()));
  for (int32_t a : values)
    for (int32_t b : values)
      CHECK(scalar::high_of_halves(a, b) == int32_t((int64_t{a} * b) >> 32));
}

TEST_CASE("float remainders have the sign they should", "[scalar]") {
  CHECK(scalar::fmod_(-7.5f, 2.0f) == -1.5f);
  CHECK(scalar::mod_(-7.5f, 2.0f) == 0.5f);
  CHECK(scalar::mod_(7.5f, -2.0f) == -0.5f);
  CHECK(std::signbit(scalar::mod_(-4.0f, 2.0f)) == false);
  CHECK(std::signbit(scalar::fmod_(-4.0f, 2.0f)) == true);
  CHECK(std::isnan(scalar::mod_(1.0f, 0.0f)));
}

TEST_CASE("casts to integers truncate and saturate", "[scalar]") {
  int wrong = 0;
  for (uint64_t bits = 0; bits < (uint64_t(1) << 32); bits += 9973)
    wrong += wrong_casts_to_any(std::bit_cast<float>(uint32_t(bits)));
  for (float x : special_values<float>()) wrong += wrong_casts_to_any(x);
  for (double x : special_values<double>()) wrong += wrong_casts_to_any(x);
  for (int power = 0; power < 66; power++)
    for (double sign : {1.0, -1.0})
      for (double offset : {-1.0, -0.5, 0.0, 0.5, 1.0})
        wrong += wrong_casts_to_any(sign * (std::ldexp(1.0, power) + offset));
  CHECK(wrong == 0);
}

TEST_CASE("16-bit floats: all values, and rounding once", "[scalar]") {
  int wrong = 0;
  auto nan_or = [](float x, double y) { return x != x ? y != y : x == y; };
  for (uint32_t h = 0; h < 0x10000; h++) {
    float half = scalar::f16_to_float(uint16_t(h)),
          brain = scalar::bf16_to_float(uint16_t(h));
    wrong += !nan_or(half, scalar_value(DType::F16, h));
    wrong += !nan_or(brain, scalar_value(DType::BF16, h));
    if (half == half) wrong += scalar::float_to_f16(half) != h;
    if (brain == brain) wrong += scalar::float_to_bf16(brain) != h;
  }
  auto check = [&](double x) {
    float f = float(x), odd = scalar::odd_float(x);
    wrong += scalar::float_to_f16(f) != scalar_bits(DType::F16, f);
    wrong += scalar::float_to_bf16(f) != scalar_bits(DType::BF16, f);
    wrong += scalar::float_to_f16(odd) != scalar_bits(DType::F16, x);
    wrong += scalar::float_to_bf16(odd) != scalar_bits(DType::BF16, x);
  };
  for (uint64_t bits = 0; bits < (uint64_t(1) << 32); bits += 9973)
    if (float x = std::bit_cast<float>(uint32_t(bits)); x == x) check(x);
  std::mt19937_64 random(5);
  for (int i = 0; i < 300000; i++)
    check(std::ldexp(double(int64_t(random())), int(random() % 60) - 90));
  // Halfway between neighbours of either format, and just beside it.
  for (int i = 0; i < 60000; i++) {
    double half = scalar::f16_to_float(uint16_t(random() & 0x7bff)),
           unit = std::ldexp(half, -11);
    for (double x :
         {half + unit, half + unit * (1 + 0x1p-30), half + unit * (1 - 0x1p-30)})
      check(x);
  }
  CHECK(wrong == 0);
  CHECK(scalar::f16_to_float(scalar::float_to_f16(NAN)) !=
        scalar::f16_to_float(scalar::float_to_f16(NAN)));
  CHECK(std::isnan(
      scalar::bf16_to_float(scalar::float_to_bf16(std::bit_cast<float>(0x7f800001u)))));
}
