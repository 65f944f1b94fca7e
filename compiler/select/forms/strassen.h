// Strassen's product of two by two blocks in seven products instead of eight, as graph
// nodes.
//
// Strassen, "Gaussian Elimination is not Optimal" (1969). The combinations of the known
// weights are made at pack time.
#pragma once

#include "compiler/select/forms/reading.h"
#include "compiler/select/forms/transform.h"

namespace svod::select {

// A sum of products of a value and known weights. Axes are those of the products: the
// input varies along `row` and not along `column`, the weights the other way round, and
// `inner` is summed up. These three are halved.
struct MatrixProduct {
  Reading input, weight; // extent 1 along axes they do not have
  Shape full;
  size_t row = 0, column = 0, inner = 0;
  int64_t rows = 1; // all positions of the input, of which `row` is one axis
  bool has_rows_behind(size_t axis) const;
};
// `lanes`: half a row of weights is whole vectors.
std::optional<MatrixProduct> match_product(const Graph& g, const Contraction& c,
                                           int64_t lanes);

// output * ((weight * b) (input * a)) are the blocks of the product of the blocks a and
// b, each numbered 2 * row + column.
struct StrassenMatrices {
  Matrix input, weight, output;
};
const StrassenMatrices& strassen_matrices();

// Adds the composition to out.graph; the result has the shape of the sum. `input` and
// `weight` are nodes of out.graph, arranged as the product's readings.
NodeId strassen(Algorithms& out, const MatrixProduct& p, NodeId input, NodeId weight,
                int64_t lanes);

// Largest error on sampled inputs in float, relative to the root mean square of the same
// block of outputs: what is large in one block is lost from the others.
double strassen_error(const Graph& g, const MatrixProduct& p);

} // namespace svod::select
