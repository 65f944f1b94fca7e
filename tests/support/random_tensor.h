// Tensors of random numbers.
#pragma once

#include "tests/support/random_graph.h"

namespace svod::test {

// Of thousandths in [-1, 1].
inline Tensor random_tensor(Random& random, Shape shape) {
  std::vector<double> values;
  for (int64_t i = 0; i < element_count(shape); ++i)
    values.push_back(double(random.between(-1000, 1000)) / 1000);
  return make_tensor(DType::F32, std::move(shape), values);
}

} // namespace svod::test
