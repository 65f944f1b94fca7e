// y = x / (1 + |beta x|), for both widths of float.
#include <stdint.h>

template <class T> static void run(const T* x, int64_t count, T* y, T beta) {
  for (int64_t i = 0; i < count; ++i) {
    T t = beta * x[i];
    y[i] = x[i] / (1 + (t < 0 ? -t : t));
  }
}

[[clang::annotate("svod::op", "my.domain", "SoftSwish", "same(0)")]]
void soft_swish(const float* x, int64_t x_size, float* y, float beta = 1.0f) {
  run(x, x_size, y, beta);
}

[[clang::annotate("svod::op", "my.domain", "SoftSwish", "same(0)")]]
void soft_swish(const double* x, int64_t x_size, double* y, float beta = 1.0f) {
  run(x, x_size, y, double(beta));
}
