// Sums of products with random views between what is given and the product, and their
// values as a contraction's maps give them.
#pragma once

#include "compiler/contraction/contraction.h"
#include "tests/support/random_graph.h"

namespace svod::test {

// Adds inputs of small whole numbers and the sum to `out`; sums are exact in f32.
NodeId random_sum_of_products(Random& random, RandomGraph& out);

// The elements that the product reads of an operand, in the order of the contraction's
// loops, taken from one of its views.
std::vector<float> mapped_values(const Contraction& c, const OperandView& view,
                                 const Tensor& values);

// The sum over the reduced axes, from the first views of both operands.
std::vector<float> summed(const Graph& g, const Contraction& c, const Tensor& left,
                          const Tensor& right);

} // namespace svod::test
