// Distance of a result from the truth in units in the last place of the truth.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

// A NaN for a number, a number for a NaN and a zero of the wrong sign count as 1e30.
template <class T> double ulp_error(T got, long double want) {
  using Limits = std::numeric_limits<T>;
  constexpr double kWrong = 1e30;
  if (std::isnan(want) || std::isnan(got))
    return std::isnan(want) == std::isnan(got) ? 0 : kWrong;
  if (want == 0 && got == 0) return std::signbit(want) == std::signbit(got) ? 0 : kWrong;
  T rounded = static_cast<T>(want);
  if (std::isinf(rounded) && rounded == got) return 0;
  if (std::isinf(want)) return kWrong;
  // Beyond the largest number, infinity stands for the next one there would be.
  auto extended = [](T x) {
    long double next = std::ldexp(1.0L, Limits::max_exponent);
    return std::isinf(x) ? std::copysign(next, static_cast<long double>(x))
                         : static_cast<long double>(x);
  };
  int exponent = rounded == 0 ? Limits::min_exponent : std::ilogb(want);
  exponent =
      std::min(std::max(exponent, Limits::min_exponent - 1), Limits::max_exponent - 1);
  long double unit = std::ldexp(1.0L, exponent - Limits::digits + 1);
  return static_cast<double>(std::fabs(extended(got) - want) / unit);
}
