// For each row of x: its elements times the attribute `weights`, and their sum; of rows
// before `first` the sum is 0. The sums' shape is declared by the model.
#include <stdint.h>

namespace rows {

[[clang::annotate("svod::op", "my.domain", "WeighRows", "same(0)", "declared")]]
void weigh(const float* x, const int64_t* x_dims, int64_t x_rank, const float* scale,
           float* weighed, int64_t* sums, int64_t sums_size,
           [[clang::annotate("svod::attribute")]] const int64_t* weights,
           int64_t weights_size, int64_t first = 0) {
  int64_t columns = x_dims[x_rank - 1];
  for (int64_t row = 0; row < sums_size; ++row) {
    float sum = 0;
    for (int64_t i = 0; i < columns; ++i) {
      float value = x[row * columns + i] * scale[0] * float(weights[i % weights_size]);
      weighed[row * columns + i] = value;
      sum += value;
    }
    sums[row] = row < first ? 0 : int64_t(sum);
  }
}

} // namespace rows
