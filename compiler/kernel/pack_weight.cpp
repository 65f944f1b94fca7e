// A packed weight is an affine view of a tensor that is known when packing: element p of
// it is the source at offset + sum p_i * stride_i, or a fill value where a bound fails.
// The walk keeps the offset and the bounds' values up to date axis by axis, so an element
// costs a few additions.
#include "compiler/kernel/pack_weight.h"

#include "compiler/support/check.h"

#include <cstring>

namespace svod {

namespace {

class Walk {
public:
  Walk(const PackedWeight& weight, const Tensor& source, std::byte* out)
      : weight_(weight), source_(source), out_(out),
        bytes_(static_cast<size_t>(byte_size(weight.dtype))),
        elements_(element_count(source.shape)) {
    for (const PackedWeight::Limit& limit : weight.limits)
      values_.push_back(limit.constant);
  }

  void run(size_t axis, int64_t offset) {
    if (axis == weight_.extents.size()) return element(offset);
    for (int64_t p = 0; p < weight_.extents[axis]; p++) {
      run(axis + 1, offset + p * weight_.strides[axis]);
      advance(axis, 1);
    }
    advance(axis, -weight_.extents[axis]);
  }

private:
  void advance(size_t axis, int64_t by) {
    for (size_t i = 0; i < values_.size(); i++) {
      values_[i] += by * weight_.limits[i].coefficients[axis];
    }
  }

  bool holds() const {
    for (size_t i = 0; i < values_.size(); i++) {
      const PackedWeight::Limit& limit = weight_.limits[i];
      if (values_[i] < limit.low || values_[i] >= limit.high) return false;
    }
    return true;
  }

  void element(int64_t offset) {
    const void* from = &weight_.fill_bits;
    if (holds()) {
      SVOD_CHECK(offset >= 0 && offset < elements_)
          << "packed weight reads element " << offset << " of " << elements_;
      from = source_.bytes.data() + static_cast<size_t>(offset) * bytes_;
    }
    std::memcpy(out_, from, bytes_);
    out_ += bytes_;
  }

  const PackedWeight& weight_;
  const Tensor& source_;
  std::byte* out_;
  size_t bytes_;
  int64_t elements_;
  std::vector<int64_t> values_; // of the limits, at the current position
};

bool is_plain(const PackedWeight& weight, const Tensor& source) {
  return weight.limits.empty() && weight.offset == 0 &&
         weight.strides == row_major_strides(weight.extents) &&
         element_count(weight.extents) == element_count(source.shape);
}

} // namespace

std::vector<std::byte> pack_weight(const PackedWeight& weight, const Tensor& source) {
  SVOD_CHECK(weight.dtype == source.dtype) << "packed weight of another type";
  if (is_plain(weight, source)) return source.bytes;
  std::vector<std::byte> out(static_cast<size_t>(weight.bytes()));
  Walk(weight, source, out.data()).run(0, weight.offset);
  return out;
}

} // namespace svod
