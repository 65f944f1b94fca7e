// Tensors of random numbers.
#pragma once

#include "tests/support/random_graph.h"

namespace svod::test {

// Of thousandths in [-1, 1]; of a byte's type any byte.
inline Tensor random_tensor(Random& random, Shape shape, DType dtype = DType::F32) {
  std::vector<double> values;
  const int lowest = dtype == DType::I8 ? -128 : 0;
  for (int64_t i = 0; i < element_count(shape); ++i)
    values.push_back(is_byte(dtype) ? double(random.between(lowest, lowest + 255))
                                    : double(random.between(-1000, 1000)) / 1000);
  return make_tensor(dtype, std::move(shape), values);
}

} // namespace svod::test
