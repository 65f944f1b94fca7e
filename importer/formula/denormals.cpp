// Weight decay multiplies what no gradient holds up by a little less than one at every
// step, down to the denormal numbers, where rounding ends it: of two layers of a detector
// of text, a third and two thirds of the weights lie there, and biases of the channels in
// front. Beside the other weights they are nothing, but each product with one takes an
// x86 core more than a hundred clocks (203 ms instead of 1.2 for the second layer).
#include "importer/formula/denormals.h"

#include "compiler/ir/dtype.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace svod::importer {

static constexpr size_t kFewest = 64;
static constexpr uint32_t kLeastNormal = 0x00800000;
static constexpr uint32_t kLargeEnough = uint32_t{127 - 64} << 23; // 2^-64

// Bits of a float's magnitude order as the magnitudes do.
static uint32_t magnitude_at(const std::byte* at) {
  uint32_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return bits & 0x7fffffff;
}

static bool is_denormal(uint32_t magnitude) { return magnitude - 1 < kLeastNormal - 1; }

std::optional<ModelTensor> without_denormals(const ModelTensor& tensor) {
  const size_t count = tensor.bytes.size() / sizeof(float);
  if (dtype_from_onnx(tensor.onnx_type) != DType::F32 || count < kFewest)
    return std::nullopt;
  // The sign bit: above zero, and below the least normal number. As signed numbers, which
  // the vectors of every x86 compare.
  uint32_t found = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t magnitude = magnitude_at(tensor.bytes.data() + i * sizeof(float));
    found |= (0 - magnitude) & (magnitude - kLeastNormal);
  }
  if (found >> 31 == 0) return std::nullopt;

  auto bytes =
      std::make_shared<std::vector<std::byte>>(tensor.bytes.begin(), tensor.bytes.end());
  uint32_t largest = 0;
  for (size_t i = 0; i < count; ++i) {
    std::byte* at = bytes->data() + i * sizeof(float);
    const uint32_t magnitude = magnitude_at(at);
    largest = std::max(largest, magnitude);
    if (is_denormal(magnitude)) std::memset(at, 0, sizeof(float));
  }
  if (largest < kLargeEnough) return std::nullopt;
  ModelTensor out = tensor;
  out.bytes = *bytes;
  out.owner = std::move(bytes);
  return out;
}

} // namespace svod::importer
