// Views and joins, computed by copying: each is a box of elements read and written with a
// stride per axis. Axes that can be walked as one are merged first. A transposition is
// walked in tiles, as its source is read along one axis and its result written along
// another.
#include "compiler/ir/evaluate/parts.h"

#include <cstring>

namespace svod {
namespace {

// One axis of a box: extent, and the steps of source and result in elements.
struct CopiedAxis {
  int64_t extent, out, in;
};

template <class E> void copy_row(const CopiedAxis& axis, E* out, const E* in) {
  if (axis.out == 1 && axis.in == 1) {
    std::memcpy(out, in, size_t(axis.extent) * sizeof(E));
  } else if (axis.out == 1 && axis.in == 0) {
    std::fill(out, out + axis.extent, *in);
  } else {
    for (int64_t i = 0; i < axis.extent; i++) out[i * axis.out] = in[i * axis.in];
  }
}

template <class E>
void copy_tiles(const CopiedAxis& outer, const CopiedAxis& inner, E* out, const E* in) {
  constexpr int64_t kTile = 32;
  if (outer.in != 1 || inner.in == 1) {
    for (int64_t i = 0; i < outer.extent; i++)
      copy_row(inner, out + i * outer.out, in + i * outer.in);
    return;
  }
  for (int64_t i0 = 0; i0 < outer.extent; i0 += kTile)
    for (int64_t j0 = 0; j0 < inner.extent; j0 += kTile) {
      CopiedAxis part{std::min(kTile, inner.extent - j0), inner.out, inner.in};
      for (int64_t i = i0; i < std::min(i0 + kTile, outer.extent); i++)
        copy_row(part, out + i * outer.out + j0 * inner.out,
                 in + i * outer.in + j0 * inner.in);
    }
}

template <class E> void copy_axes(std::span<const CopiedAxis> axes, E* out, const E* in) {
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
std::vector<CopiedAxis> merged(const std::vector<CopiedAxis>& axes) {
  std::vector<CopiedAxis> result;
  for (const CopiedAxis& axis : axes) {
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
                                 [](const CopiedAxis& axis) { return axis.in == 1; });
  if (contiguous != result.end())
    std::rotate(contiguous, contiguous + 1, result.end() - 1);
  return result;
}

void copy_box(const std::vector<CopiedAxis>& axes, int element_bytes, std::byte* out,
              const std::byte* in) {
  for (const CopiedAxis& axis : axes)
    if (axis.extent == 0) return;
  std::vector<CopiedAxis> walk = merged(axes);
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

// Copies all of `in` into the part of `out` that starts at element `start`.
void place(const Tensor& in, Tensor& out, int64_t start) {
  if (in.bytes.empty()) return;
  Shape from = row_major_strides(in.shape), to = row_major_strides(out.shape);
  std::vector<CopiedAxis> axes;
  for (size_t i = 0; i < in.shape.size(); i++)
    axes.push_back({in.shape[i], to[i], from[i]});
  const int size = byte_size(in.dtype);
  copy_box(axes, size, out.bytes.data() + start * size, in.bytes.data());
}

// The strides of `in` for another shape of as many elements (not 0), if there are any:
// each run of axes that is one walk is cut anew.
std::optional<Shape> reshaped(const Strided& in, const Shape& shape) {
  struct Run {
    int64_t extent, step; // of its last axis
  };
  std::vector<Run> runs;
  for (size_t i = 0; i < in.shape.size(); i++) {
    if (in.shape[i] == 1) continue;
    bool joins = !runs.empty() && runs.back().step == in.shape[i] * in.strides[i];
    if (joins)
      runs.back() = {runs.back().extent * in.shape[i], in.strides[i]};
    else
      runs.push_back({in.shape[i], in.strides[i]});
  }
  Shape strides(shape.size(), 0);
  size_t axis = 0;
  for (const Run& run : runs)
    for (int64_t left = run.extent; left > 1; axis++) {
      if (left % shape[axis] != 0) return std::nullopt;
      left /= shape[axis];
      strides[axis] = left * run.step;
    }
  return strides;
}

} // namespace

Strided whole(std::shared_ptr<const Tensor> dense) {
  Shape shape = dense->shape;
  return {std::move(dense), shape, row_major_strides(shape)};
}

bool is_whole(const Strided& view) {
  Shape strides = row_major_strides(view.shape);
  for (size_t i = 0; i < strides.size(); i++)
    if (view.shape[i] != 1 && view.strides[i] != strides[i]) return false;
  return view.start == 0 && view.shape == view.base->shape;
}

std::optional<Strided> seen_through(const Node& view, const Strided& in) {
  const Payload& payload = view.payload;
  const size_t rank = in.shape.size();
  Strided result{in.base, view.shape, in.strides, in.start};
  switch (view.op) {
  case Op::Permute:
    for (size_t i = 0; i < rank; i++) result.strides[i] = in.strides[payload[i]];
    return result;
  case Op::Expand:
    for (size_t i = 0; i < rank; i++)
      if (in.shape[i] == 1) result.strides[i] = 0;
    return result;
  case Op::Slice:
    for (size_t i = 0; i < rank; i++) {
      result.start += payload[i] * in.strides[i];
      result.strides[i] *= payload[rank + i];
    }
    return result;
  case Op::Window:
    result.strides.push_back(in.strides[payload[0]] * payload[3]);
    result.strides[payload[0]] *= payload[2];
    return result;
  case Op::Reshape:
    if (element_count(view.shape) == 0) return std::nullopt;
    if (std::optional<Shape> strides = reshaped(in, view.shape)) {
      result.strides = *strides;
      return result;
    }
    return std::nullopt;
  default:
    return std::nullopt;
  }
}

void lay_out(const Strided& view, Tensor& out) {
  out.dtype = view.base->dtype;
  out.shape = view.shape;
  const int size = byte_size(out.dtype);
  out.bytes.assign(size_t(element_count(out.shape)) * size, {});
  if (out.bytes.empty()) return;
  Shape to = row_major_strides(out.shape);
  std::vector<CopiedAxis> axes;
  for (size_t i = 0; i < out.shape.size(); i++)
    axes.push_back({out.shape[i], to[i], view.strides[i]});
  copy_box(axes, size, out.bytes.data(), view.base->bytes.data() + view.start * size);
}

void evaluate_view(const Node& node, const Tensor& in, Tensor& out) {
  if (node.op == Op::Reshape) {
    SVOD_CHECK(in.bytes.size() == out.bytes.size()) << "reshape";
    out.bytes = in.bytes;
    return;
  }
  if (node.op == Op::Pad) {
    Shape to = row_major_strides(out.shape);
    const size_t rank = in.shape.size();
    fill_bits(out, uint64_t(node.payload[2 * rank]));
    int64_t start = 0;
    for (size_t i = 0; i < rank; i++) start += node.payload[i] * to[i];
    return place(in, out, start);
  }
  // The tensor is lent: it outlives the view of it.
  std::shared_ptr<const Tensor> lent(std::shared_ptr<void>(), &in);
  std::optional<Strided> view = seen_through(node, whole(lent));
  SVOD_CHECK(view) << "no strided view: " << info(node.op).text;
  lay_out(*view, out);
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
