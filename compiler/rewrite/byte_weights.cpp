#include "compiler/rewrite/byte_weights.h"

#include <algorithm>
#include <cstring>

namespace svod::rewrite {

namespace {

int32_t value_at(const Tensor& values, size_t i) {
  int32_t value = 0;
  std::memcpy(&value, values.bytes.data() + 4 * i, 4);
  return value;
}

} // namespace

std::optional<ByteWeights> byte_weights(const Tensor& values) {
  const size_t count = values.bytes.size() / 4;
  ByteWeights out{{DType::I8, values.shape, {}}, {DType::I32, values.shape, {}}};
  out.bytes.bytes.resize(count);
  out.rest.bytes.resize(4 * count);
  bool any = false;
  for (size_t i = 0; i < count; ++i) {
    const int32_t value = value_at(values, i);
    const int32_t nearest = std::clamp(value, -128, 127), rest = value - nearest;
    if (rest < -128 || rest > 127) return std::nullopt;
    any = any || rest != 0;
    out.bytes.bytes[i] = static_cast<std::byte>(nearest);
    std::memcpy(out.rest.bytes.data() + 4 * i, &rest, 4);
  }
  if (!any) out.rest = {};
  return out;
}

Tensor pairs_of(const ByteWeights& weights) {
  Tensor pairs{DType::I8, weights.bytes.shape, {}};
  pairs.shape.push_back(2);
  for (size_t i = 0; i < weights.bytes.bytes.size(); ++i) {
    pairs.bytes.push_back(weights.bytes.bytes[i]);
    pairs.bytes.push_back(static_cast<std::byte>(value_at(weights.rest, i)));
  }
  return pairs;
}

std::optional<std::vector<Shape>> where_not_zero(const Tensor& values,
                                                 const Payload& axes, size_t most) {
  const Shape strides = row_major_strides(values.shape);
  std::vector<Shape> found;
  for (size_t i = 0; i < values.bytes.size() / 4; ++i) {
    if (value_at(values, i) == 0) continue;
    Shape at;
    for (int64_t axis : axes) {
      const auto a = static_cast<size_t>(axis);
      at.push_back(static_cast<int64_t>(i) / strides[a] % values.shape[a]);
    }
    const auto place = std::ranges::lower_bound(found, at);
    if (place != found.end() && *place == at) continue;
    if (found.size() == most) return std::nullopt;
    found.insert(place, std::move(at));
  }
  return found;
}

} // namespace svod::rewrite
