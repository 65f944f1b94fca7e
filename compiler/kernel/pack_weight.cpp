// A packed weight is an affine view of a tensor that is known when packing: element p of
// it is the source at offset + sum p_i * stride_i, or a fill value where a bound fails.
// The walk keeps the offset and the bounds' values up to date axis by axis. Along the
// last axis each bound holds for one interval, so a row is a fill, a copy by one stride
// and a fill.
#include "compiler/kernel/pack_weight.h"

#include "compiler/support/check.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace svod {

namespace {

// Elements are copied as these, for their bytes alone.
template <class Element> class Walk {
public:
  Walk(const PackedWeight& weight, const PackSource& source, std::byte* out)
      : weight_(weight), source_(source), out_(out),
        elements_(static_cast<int64_t>(source.bytes.size() / sizeof(Element))) {
    for (const PackedWeight::Limit& limit : weight.limits)
      values_.push_back(limit.constant);
    std::memcpy(&fill_, &weight.fill_bits, sizeof fill_);
  }

  void run(size_t axis, int64_t offset) {
    if (axis == weight_.extents.size()) return row(1, 0, offset, {});
    if (axis + 1 == weight_.extents.size())
      return row(weight_.extents[axis], weight_.strides[axis], offset, axis);
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

  // Where all limits hold along the axis that `begin` and `end` are positions of.
  void narrow(std::optional<size_t> axis, int64_t& begin, int64_t& end) const {
    for (size_t i = 0; i < values_.size() && begin < end; i++) {
      const PackedWeight::Limit& limit = weight_.limits[i];
      const int64_t step = axis ? limit.coefficients[*axis] : 0;
      const auto holds = [&](int64_t p) {
        const int64_t value = values_[i] + p * step;
        return value >= limit.low && value < limit.high;
      };
      if (step == 0 && !holds(begin)) end = begin;
      if (step == 0) continue;
      while (begin < end && !holds(begin)) begin++;
      int64_t last = end;
      while (last > begin && !holds(last - 1)) last--;
      end = last;
    }
  }

  void row(int64_t extent, int64_t stride, int64_t offset, std::optional<size_t> axis) {
    int64_t begin = 0, end = extent;
    narrow(axis, begin, end);
    put_fill(begin);
    if (begin < end) {
      const int64_t first = offset + begin * stride, last = offset + (end - 1) * stride;
      SVOD_CHECK(std::min(first, last) >= 0 && std::max(first, last) < elements_)
          << "packed weight reads elements " << first << " to " << last << " of "
          << elements_;
      copy(first, stride, end - begin);
    }
    put_fill(extent - end);
  }

  void copy(int64_t first, int64_t stride, int64_t count) {
    const std::byte* from =
        source_.bytes.data() + static_cast<size_t>(first) * sizeof(Element);
    if (stride == 1) {
      std::memcpy(out_, from, static_cast<size_t>(count) * sizeof(Element));
      out_ += static_cast<size_t>(count) * sizeof(Element);
      return;
    }
    const int64_t step = stride * static_cast<int64_t>(sizeof(Element));
    std::byte* out = out_;
    for (int64_t i = 0; i < count; i++, out += sizeof(Element))
      std::memcpy(out, from + i * step, sizeof(Element));
    out_ = out;
  }

  void put_fill(int64_t count) {
    std::byte* out = out_;
    for (int64_t i = 0; i < count; i++, out += sizeof(Element))
      std::memcpy(out, &fill_, sizeof(Element));
    out_ = out;
  }

  const PackedWeight& weight_;
  const PackSource& source_;
  std::byte* out_;
  Element fill_;
  int64_t elements_;
  std::vector<int64_t> values_; // of the limits, at the current position
};

} // namespace

bool is_packed_already(const PackedWeight& weight, const PackSource& source) {
  return weight.limits.empty() && weight.offset == 0 &&
         weight.strides == row_major_strides(weight.extents) &&
         weight.bytes() == static_cast<int64_t>(source.bytes.size());
}

void pack_weight(const PackedWeight& weight, const PackSource& source, std::byte* out) {
  SVOD_CHECK(weight.dtype == source.dtype) << "packed weight of another type";
  if (is_packed_already(weight, source)) {
    std::ranges::copy(source.bytes, out);
    return;
  }
  const auto walk = [&]<class Element>(Element) {
    Walk<Element>(weight, source, out).run(0, weight.offset);
  };
  switch (byte_size(weight.dtype)) {
  case 1:
    walk(uint8_t());
    break;
  case 2:
    walk(uint16_t());
    break;
  case 4:
    walk(uint32_t());
    break;
  default:
    walk(uint64_t());
  }
}

std::vector<std::byte> pack_weight(const PackedWeight& weight, const PackSource& source) {
  std::vector<std::byte> out(static_cast<size_t>(weight.bytes()));
  pack_weight(weight, source, out.data());
  return out;
}

} // namespace svod
