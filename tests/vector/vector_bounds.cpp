// The error bounds of tests/unit/scalar_bounds.def, kept by vectors on targets with and
// without fused multiply-add. Prints what breaks its bound; built and run by
// check_vectors.py.
#include "compiler/ir/scalar_angle.h"
#include "compiler/ir/scalar_power.h"
#include "tests/unit/ulp.h"

#include <bit>
#include <cstdint>
#include <cstdio>
#include <random>

namespace {

constexpr int kLanes = 16, kVectors = 4000;
int failures = 0;

// Half of the samples have random bits, half lie where functions are not constant.
template <class T> T sample(std::mt19937_64& random, bool wild) {
  using U = scalar::UintOf<T>;
  uint64_t bits = random();
  if (wild) return std::bit_cast<T>(U(bits));
  return T(std::ldexp(double(int64_t(bits)), int(random() % 16) - 68));
}

template <class T, class F, class R>
void check(const char* name, double bound, F f, R truth) {
  using V = scalar::Vector<T, kLanes>;
  std::mt19937_64 random(17);
  double worst = 0;
  T at[2] = {};
  for (int i = 0; i < kVectors; i++) {
    V x, y;
    for (int lane = 0; lane < kLanes; lane++) {
      x[lane] = sample<T>(random, lane % 2);
      y[lane] = lane % 4 == 3 ? std::round(sample<T>(random, false))
                              : sample<T>(random, lane % 2);
    }
    V result = f(x, y);
    for (int lane = 0; lane < kLanes; lane++) {
      double error = ulp_error<T>(result[lane], truth(x[lane], y[lane]));
      if (error > worst) worst = error, at[0] = x[lane], at[1] = y[lane];
    }
  }
  if (worst <= bound) return;
  failures++;
  std::printf("%s %s: %g ulp at %a %a, allowed %g\n", name,
              sizeof(T) == 4 ? "f32" : "f64", worst, double(at[0]), double(at[1]), bound);
}

} // namespace

#define CHECK_BOTH(function, call, float_bound, double_bound, reference)                 \
  {                                                                                      \
    auto f = [](auto x, [[maybe_unused]] auto y) { return scalar::call; };               \
    auto truth = [](long double x, [[maybe_unused]] long double y) -> long double {      \
      return reference;                                                                  \
    };                                                                                   \
    check<float>(#function, float_bound, f, truth);                                      \
    check<double>(#function, double_bound, f, truth);                                    \
  }
#define BOUND(function, float_bound, double_bound, reference)                            \
  CHECK_BOTH(function, function(x), float_bound, double_bound, reference)
#define BOUND2(function, float_bound, double_bound, reference)                           \
  CHECK_BOTH(function, function(x, y), float_bound, double_bound, reference)

int main() {
#include "tests/unit/scalar_bounds.def"
  return failures != 0;
}
