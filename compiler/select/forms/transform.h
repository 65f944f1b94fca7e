// Sums of a few values times known numbers: what fast algorithms do before and after
// their products.
#pragma once

#include "compiler/select/forms/algorithms.h"

namespace svod::select {

struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<double> values; // row-major
  double at(int64_t row, int64_t column) const { return values[row * columns + column]; }
  double& at(int64_t row, int64_t column) { return values[row * columns + column]; }
};

// [.., p at axis, ..] -> [.., r at axis, ..]: sum over p of matrix[r, p] * x[.., p, ..].
// `unroll`: kernels write it out, with the numbers in the code.
NodeId transform(Algorithms& out, const Matrix& matrix, NodeId x, size_t axis,
                 bool unroll);

// What comes of the last transform() is stored where what follows asks for it: its sum,
// as views of the result may be folded with the last of its own.
void keep_result(Algorithms& out, NodeId transformed);

} // namespace svod::select
