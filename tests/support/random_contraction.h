// Random convolutions and matrix products in the form in which models are imported, with
// what follows them in models: bias, scale, activation, residual, pooling, another one.
#pragma once

#include "tests/support/random_graph.h"

namespace svod::test {

// A node and what its elements are: see random_graph.cpp.
struct Contracted {
  NodeId node = kNoNode;
  double bound = 0;
  int fraction = 0;
  bool exact = true;
};

struct ContractionSource {
  Graph& g;
  Random& random;
  bool large;
  DType dtype;
  // An input of multiples of 1/4 up to 3.
  std::function<NodeId(const Shape&)> input;
};

Contracted random_contraction(const ContractionSource& source);

} // namespace svod::test
