// Tensors in tests: making small ones, and comparing two.
#pragma once

#include "compiler/ir/evaluate.h"

#include <string>

namespace svod::test {

// A tensor of the given values, converted to the dtype.
Tensor make_tensor(DType dtype, Shape shape, const std::vector<double>& values);

// Element i as a double.
double element_value(const Tensor& tensor, size_t i);

// What differs: type, or the first element with |got - want| > atol + rtol * |want|.
// Empty when nothing does. NaN equals NaN, and zeros are equal whatever their sign.
// Integers and booleans must be equal.
std::string compare_tensors(const Tensor& got, const Tensor& want, double rtol,
                            double atol);

} // namespace svod::test
