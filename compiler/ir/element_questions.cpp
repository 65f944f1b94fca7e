// What a value can be asked of each of its elements.
#include "compiler/ir/fold.h"
#include "compiler/support/check.h"

#include <algorithm>
#include <cmath>

namespace svod {

static bool is_power_of_two(double value, DType dtype) {
  int exponent = 0;
  if (!std::isnormal(value) || std::fabs(std::frexp(value, &exponent)) != 0.5)
    return false;
  return scalar_value(dtype, scalar_bits(dtype, 1 / value)) == 1 / value;
}

static double least_normal(DType dtype) {
  return std::ldexp(1.0, dtype == DType::F16 ? -14 : dtype == DType::F64 ? -1022 : -126);
}

bool holds_for_all(const Tensor& values, ValueQuestion question, DType dtype) {
  const auto holds = [&](double value) {
    switch (question) {
    case ValueQuestion::Positive:
      return value > 0;
    case ValueQuestion::PowersOfTwo:
      return is_power_of_two(value, dtype);
    case ValueQuestion::Normal:
      return std::isfinite(value) && std::fabs(value) >= least_normal(values.dtype);
    case ValueQuestion::Finite:
      return std::isfinite(value);
    case ValueQuestion::FitsByte:
      return value >= -128 && value <= 127;
    default:
      SVOD_CHECK(false) << "no question of an element";
      return false;
    }
  };
  return std::ranges::all_of(doubles_of(values), holds);
}

} // namespace svod
