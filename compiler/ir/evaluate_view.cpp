// Views and joins, computed by copying: each is a box of elements read and written with a
// stride per axis. Axes that can be walked as one are merged first. A transposition is
// walked in tiles, as its source is read along one axis and its result written along
// another.
#include "compiler/ir/evaluate_parts.h"

#include <cstring>

namespace svod {
namespace {

// One axis of a box: extent, and the steps of source and result in elements.
struct Axis {
  int64_t extent, out, in;
};

template <class E> void copy_row(const Axis& axis, E* out, const E* in) {
  if (axis.out == 1 && axis.in == 1) {
    std::memcpy(out, in, size_t(axis.extent) * sizeof(E));
  } else if (axis.out == 1 && axis.in == 0) {
    std::fill(out, out + axis.extent, *in);
  } else {
    for (int64_t i = 0; i < axis.extent; i++) out[i * axis.out] = in[i * axis.in];
  }
}

template <class E>
void copy_tiles(const Axis& outer, const Axis& inner, E* out, const E* in) {
  constexpr int64_t kTile = 32;
  if (outer.in != 1 || inner.in == 1) {
    for (int64_t i = 0; i < outer.extent; i++)
      copy_row(inner, out + i * outer.out, in + i * outer.in);
    return;
  }
  for (int64_t i0 = 0; i0 < outer.extent; i0 += kTile)
    for (int64_t j0 = 0; j0 < inner.extent; j0 += kTile) {
      Axis part{std::min(kTile, inner.extent - j0), inner.out, inner.in};
      for (int64_t i = i0; i < std::min(i0 + kTile, outer.extent); i++)
        copy_row(part, out + i * outer.out + j0 * inner.out,
                 in + i * outer.in + j0 * inner.in);
    }
}

template <class E> void copy_axes(std::span<const Axis> axes, E* out, const E* in) {
  if (axes.empty()) {
    *out = *in;
  } else if (axes.size() == 1) {
    copy_row(axes[0], out, in);
  } else if (axes.size() == 2) {
    copy_tiles(axes[0], axes[1], out, in);
  } else {
    for (int64_t i = 0; i < axes[0].extent; i++)
      copy_axes(axes.subspan(1), out + i * axes[0].out, in + i * axes[0].in);
  }
}

// Merges neighbours that are one walk, then brings the axis that is contiguous in the
// source next to the innermost one, where copy_tiles wants it.
std::vector<Axis> merged(const std::vector<Axis>& axes) {
  std::vector<Axis> result;
  for (const Axis& axis : axes) {
    if (axis.extent == 1) continue;
    bool joins = !result.empty() && result.back().out == axis.out * axis.extent &&
                 result.back().in == axis.in * axis.extent;
    if (joins)
      result.back() = {result.back().extent * axis.extent, axis.out, axis.in};
    else
      result.push_back(axis);
  }
  if (result.size() < 3 || result.back().in == 1) return result;
  auto contiguous = std::find_if(result.begin(), result.end(),
                                 [](const Axis& axis) { return axis.in == 1; });
  if (contiguous != result.end())
    std::rotate(contiguous, contiguous + 1, result.end() - 1);
  return result;
}

void copy_box(const std::vector<Axis>& axes, int element_bytes, std::byte* out,
              const std::byte* in) {
  for (const Axis& axis : axes)
    if (axis.extent == 0) return;
  std::vector<Axis> walk = merged(axes);
  auto run = [&]<class E>(E) {
    copy_axes<E>(walk, reinterpret_cast<E*>(out), reinterpret_cast<const E*>(in));
  };
  switch (element_bytes) {
  case 1:
    return run(uint8_t());
  case 2:
    return run(uint16_t());
  case 4:
    return run(uint32_t());
  default:
    return run(uint64_t());
  }
}

// The input's strides as the result's axes see them, and the element where the walk
// starts.
struct Source {
  Shape strides;
  int64_t start = 0;
};

Source source_of(const Node& node, const Tensor& in) {
  Shape strides = row_major_strides(in.shape);
  const Payload& payload = node.payload;
  const size_t rank = in.shape.size();
  Source source{strides};
  switch (node.op) {
  case Op::Permute:
    for (size_t i = 0; i < rank; i++) source.strides[i] = strides[payload[i]];
    break;
  case Op::Expand:
    for (size_t i = 0; i < rank; i++)
      if (in.shape[i] == 1) source.strides[i] = 0;
    break;
  case Op::Slice:
    for (size_t i = 0; i < rank; i++) {
      source.start += payload[i] * strides[i];
      source.strides[i] *= payload[rank + i];
    }
    break;
  case Op::Window: {
    int64_t axis = payload[0], stride = strides[axis];
    source.strides[axis] = stride * payload[2];
    source.strides.push_back(stride * payload[3]);
    break;
  }
  default:
    SVOD_CHECK(false) << "no strided view: " << info(node.op).text;
  }
  return source;
}

// Copies all of `in` into the part of `out` that starts at element `start`.
void place(const Tensor& in, Tensor& out, int64_t start) {
  if (in.bytes.empty()) return;
  Shape from = row_major_strides(in.shape), to = row_major_strides(out.shape);
  std::vector<Axis> axes;
  for (size_t i = 0; i < in.shape.size(); i++)
    axes.push_back({in.shape[i], to[i], from[i]});
  const int size = byte_size(in.dtype);
  copy_box(axes, size, out.bytes.data() + start * size, in.bytes.data());
}

} // namespace

void evaluate_view(const Node& node, const Tensor& in, Tensor& out) {
  if (node.op == Op::Reshape) {
    SVOD_CHECK(in.bytes.size() == out.bytes.size()) << "reshape";
    out.bytes = in.bytes;
    return;
  }
  Shape to = row_major_strides(out.shape);
  if (node.op == Op::Pad) {
    const size_t rank = in.shape.size();
    fill_bits(out, uint64_t(node.payload[2 * rank]));
    int64_t start = 0;
    for (size_t i = 0; i < rank; i++) start += node.payload[i] * to[i];
    return place(in, out, start);
  }
  if (out.bytes.empty()) return;
  Source source = source_of(node, in);
  std::vector<Axis> axes;
  for (size_t i = 0; i < out.shape.size(); i++)
    axes.push_back({out.shape[i], to[i], source.strides[i]});
  const int size = byte_size(in.dtype);
  copy_box(axes, size, out.bytes.data(), in.bytes.data() + source.start * size);
}

void evaluate_concat(const Node& node, const Inputs& in, Tensor& out) {
  const int64_t axis = node.payload[0];
  const int64_t step = row_major_strides(out.shape)[axis];
  int64_t start = 0;
  for (const Tensor* part : in) {
    place(*part, out, start * step);
    start += part->shape[axis];
  }
}

} // namespace svod
