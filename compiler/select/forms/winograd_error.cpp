// How far a Winograd form is from the direct sum, measured with the layer's own weights
// on sampled inputs: bounds from norms are worse than what happens by orders of
// magnitude.
#include "compiler/kernel/sum_blocks.h"
#include "compiler/select/forms/winograd.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace svod::select {

namespace {

template <class T> struct Grid {
  Grid(int64_t rows, int64_t columns)
      : columns(columns), values(static_cast<size_t>(rows * columns)) {}
  T& at(int64_t row, int64_t column) { return values[row * columns + column]; }
  int64_t columns;
  std::vector<T> values;
};

// An axis that stays as it is written: r products, one sum.
WinogradMatrices as_written(int64_t taps) {
  Matrix same{taps, taps, std::vector<double>(static_cast<size_t>(taps * taps))};
  for (int64_t i = 0; i < taps; ++i) same.at(i, i) = 1;
  return {{same}, {same}, {{1, taps, std::vector<double>(static_cast<size_t>(taps), 1)}}};
}

// rows * x * columns transposed, rounded as kernels round.
Grid<float> both_sides(const Steps& rows, const Steps& columns, Grid<float> x) {
  for (const Matrix& m : columns) {
    const auto height = static_cast<int64_t>(x.values.size()) / x.columns;
    Grid<float> out(height, m.rows);
    for (int64_t i = 0; i < height; ++i)
      for (int64_t j = 0; j < m.rows; ++j)
        for (int64_t q = 0; q < m.columns; ++q)
          out.at(i, j) += float(m.at(j, q)) * x.at(i, q);
    x = std::move(out);
  }
  for (const Matrix& m : rows) {
    Grid<float> out(m.rows, x.columns);
    for (int64_t i = 0; i < m.rows; ++i)
      for (int64_t j = 0; j < x.columns; ++j)
        for (int64_t p = 0; p < m.columns; ++p)
          out.at(i, j) += float(m.at(i, p)) * x.at(p, j);
    x = std::move(out);
  }
  return x;
}

// A part may reach beyond the last tap.
float weight_at(const std::vector<float>& weights, const Convolution& conv,
                int64_t channels, int64_t row, int64_t column) {
  if (row >= conv.taps[0] || column >= conv.taps[1]) return 0;
  return weights[(channels * conv.taps[0] + row) * conv.taps[1] + column];
}

} // namespace

namespace {

// A sum as kernels make it: of blocks of so many terms.
struct BlockedSum {
  void add(float product, int64_t block) {
    part += product;
    if (++terms % block == 0) total += std::exchange(part, 0.0F);
  }
  float value() const { return total + part; }
  float total = 0, part = 0;
  int64_t terms = 0;
};

// Of the results of the outputs that are looked at.
struct Errors {
  void add(double error, double result) {
    largest = std::max(largest, std::fabs(error));
    errors += error * error;
    results += result * result;
  }
  double largest = 0, errors = 0, results = 0; // squares
};

} // namespace

WinogradError winograd_error(const Graph& g, const Convolution& conv,
                             const WinogradForm& form, Inputs inputs) {
  const std::vector<float> weights = known_values(g, conv.weight);
  const Convolution::Pair m = form.outputs;
  Convolution::Pair r = conv.taps; // together
  std::array<WinogradMatrices, 2> axes;
  for (int a = 0; a < 2; ++a) {
    if (m[a] != 1) r[a] = form.window(conv, a);
    axes[a] = m[a] == 1 ? as_written(r[a]) : winograd_matrices(m[a], r[a]);
  }
  const int64_t rows = axes[0].input[0].columns, columns = axes[1].input[0].columns;
  Samples samples(inputs);
  Errors written, plain, blocked;
  int64_t counted = 0, step = std::max<int64_t>(1, conv.outputs / 6);
  // Few numbers say little of the size of their errors.
  constexpr int64_t kFewestResults = 64;
  const int64_t all = (conv.outputs + step - 1) / step * m[0] * m[1];
  const int64_t draws = (kFewestResults + all - 1) / all;
  for (int64_t i = 0; i < draws * conv.outputs; i += step) {
    const int64_t oc = i % conv.outputs;
    Grid<float> tile(rows, columns), w(r[0], r[1]);
    Grid<BlockedSum> as_one(rows, columns), in_blocks(rows, columns), direct(m[0], m[1]);
    Grid<double> exact(m[0], m[1]);
    // A part of each phase: its first tap; taps are one phase after the other.
    const auto [s_rows, s_columns] =
        Convolution::Pair{form.phases(conv, 0), form.phases(conv, 1)};
    const int64_t of_rows = form.parts[0] * s_rows,
                  of_columns = form.parts[1] * s_columns;
    const int64_t parts = of_rows * of_columns;
    const int64_t block = short_sum_block(conv.terms() * parts);
    for (int64_t c = 0; c < conv.terms() * parts; ++c) {
      for (float& value : tile.values) value = samples.next();
      const int64_t row = c % parts / of_columns, column = c % of_columns;
      for (int64_t p = 0; p < r[0]; ++p)
        for (int64_t q = 0; q < r[1]; ++q)
          w.at(p, q) =
              weight_at(weights, conv, oc * conv.terms() + c / parts,
                        (row / s_rows * r[0] + p) * s_rows + row % s_rows,
                        (column / s_columns * r[1] + q) * s_columns + column % s_columns);
      const Grid<float> v = both_sides(axes[0].input, axes[1].input, tile);
      const Grid<float> u = both_sides(axes[0].weight, axes[1].weight, w);
      for (size_t i = 0; i < v.values.size(); ++i) {
        const float product = v.values[i] * u.values[i];
        as_one.values[i].add(product, kSumBlock);
        in_blocks.values[i].add(product, block);
      }
      for (int64_t i = 0; i < m[0]; ++i)
        for (int64_t j = 0; j < m[1]; ++j)
          for (int64_t p = 0; p < r[0]; ++p)
            for (int64_t q = 0; q < r[1]; ++q) {
              const float x = tile.at(i + p, j + q), y = w.at(p, q);
              direct.at(i, j).add(x * y, kSumBlock);
              exact.at(i, j) += double(x) * double(y);
            }
    }
    const auto results = [&](const Grid<BlockedSum>& sums) {
      Grid<float> values(rows, columns);
      std::ranges::transform(sums.values, values.values.begin(), &BlockedSum::value);
      return both_sides(axes[0].output, axes[1].output, values);
    };
    const Grid<float> y = results(as_one), z = results(in_blocks);
    for (size_t i = 0; i < exact.values.size(); ++i, ++counted) {
      const double result = exact.values[i];
      written.add(double(direct.values[i].value()) - result, result);
      plain.add(double(y.values[i]) - result, result);
      blocked.add(double(z.values[i]) - result, result);
    }
  }
  if (counted == 0 || plain.results == 0) return {};
  WinogradError out;
  out.largest = plain.largest / std::sqrt(plain.results / double(counted));
  if (written.errors > 0) {
    out.plain = std::sqrt(plain.errors / written.errors);
    out.blocked = std::sqrt(blocked.errors / written.errors);
  }
  return out;
}

} // namespace svod::select
