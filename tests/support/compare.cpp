// Comparing tensors element by element.
#include "tests/support/compare.h"

#include "compiler/ir/build.h"
#include "compiler/ir/text.h"

#include <cmath>
#include <cstring>

namespace svod::test {

static uint64_t element_bits(const Tensor& tensor, size_t i) {
  size_t size = static_cast<size_t>(byte_size(tensor.dtype));
  uint64_t bits = 0;
  std::memcpy(&bits, tensor.bytes.data() + i * size, size);
  return bits;
}

Tensor make_tensor(DType dtype, Shape shape, const std::vector<double>& values) {
  size_t size = static_cast<size_t>(byte_size(dtype));
  Tensor tensor{dtype, std::move(shape), std::vector<std::byte>(values.size() * size)};
  for (size_t i = 0; i < values.size(); ++i) {
    uint64_t bits = scalar_bits(dtype, values[i]);
    std::memcpy(tensor.bytes.data() + i * size, &bits, size);
  }
  return tensor;
}

double element_value(const Tensor& tensor, size_t i) {
  return scalar_value(tensor.dtype, element_bits(tensor, i));
}

static bool close(DType dtype, uint64_t got, uint64_t want, double rtol, double atol) {
  if (got == want) return true;
  if (!is_float(dtype)) return false;
  double a = scalar_value(dtype, got), b = scalar_value(dtype, want);
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::fabs(a - b) <= atol + rtol * std::fabs(b);
}

std::string compare_tensors(const Tensor& got, const Tensor& want, double rtol,
                            double atol) {
  std::string type = type_text(want.dtype, want.shape);
  if (got.dtype != want.dtype || got.shape != want.shape)
    return "got " + type_text(got.dtype, got.shape) + ", want " + type;
  if (got.bytes.size() != want.bytes.size()) return "sizes differ";
  size_t count = static_cast<size_t>(element_count(want.shape));
  for (size_t i = 0; i < count; ++i) {
    uint64_t a = element_bits(got, i), b = element_bits(want, i);
    if (!close(want.dtype, a, b, rtol, atol))
      return type + " element " + std::to_string(i) + ": got " +
             scalar_text(want.dtype, a) + ", want " + scalar_text(want.dtype, b);
  }
  return "";
}

} // namespace svod::test
