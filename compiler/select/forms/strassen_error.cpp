// How far seven products are from eight, measured with the layer's own weights on sampled
// inputs.
#include "compiler/select/forms/samples.h"
#include "compiler/select/forms/strassen.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace svod::select {

namespace {

constexpr int64_t kColumns = 6;

// The weights as a matrix.
class Weights {
public:
  Weights(const Graph& g, const MatrixProduct& p) : values_(known_values(g, p.weight)) {
    const Shape strides = row_major_strides(p.weight.shape);
    inner_ = strides[p.inner], column_ = strides[p.column];
  }
  float at(int64_t inner, int64_t column) const {
    return values_[inner * inner_ + column * column_];
  }

private:
  std::vector<float> values_;
  int64_t inner_ = 0, column_ = 0;
};

// matrix * x, rounded as kernels round.
std::vector<float> times(const Matrix& m, const std::vector<float>& x) {
  std::vector<float> out(static_cast<size_t>(m.rows));
  for (int64_t i = 0; i < m.rows; ++i)
    for (int64_t j = 0; j < m.columns; ++j) out[i] += float(m.at(i, j)) * x[j];
  return out;
}

} // namespace

double strassen_error(const Graph& g, const MatrixProduct& p) {
  const Weights weights(g, p);
  const StrassenMatrices& m = strassen_matrices();
  const int64_t columns = p.full[p.column] / 2, inner = p.full[p.inner] / 2;
  const int64_t step = std::max<int64_t>(1, columns / kColumns);
  Samples samples;
  std::array<double, 4> worst = {}, squares = {};
  int64_t counted = 0;
  for (int64_t n = 0; n < columns; n += step, ++counted) {
    std::vector<float> sums(7);
    std::vector<double> direct(4);
    for (int64_t k = 0; k < inner; ++k) {
      std::vector<float> a(4), b(4);
      for (float& value : a) value = samples.next();
      for (int64_t i = 0; i < 4; ++i)
        b[i] = weights.at(k + i / 2 * inner, n + i % 2 * columns);
      for (int64_t i = 0; i < 4; ++i)
        for (int64_t j = 0; j < 2; ++j)
          direct[i] += double(a[i / 2 * 2 + j]) * double(b[2 * j + i % 2]);
      const std::vector<float> v = times(m.input, a), u = times(m.weight, b);
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += v[i] * u[i];
    }
    const std::vector<float> y = times(m.output, sums);
    for (size_t i = 0; i < y.size(); ++i) {
      worst[i] = std::max(worst[i], std::fabs(double(y[i]) - direct[i]));
      squares[i] += direct[i] * direct[i];
    }
  }
  double error = 0;
  for (size_t i = 0; i < worst.size(); ++i)
    if (worst[i] > 0)
      error = std::max(error, worst[i] / std::sqrt(squares[i] / double(counted)));
  return error;
}

} // namespace svod::select
