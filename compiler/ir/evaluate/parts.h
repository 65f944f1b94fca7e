// What the parts of the evaluator share. One part per class of ops; each computes a node
// whose result `out` has its dtype, shape and bytes (zeros) already.
#pragma once

#include "compiler/ir/evaluate.h"
#include "compiler/ir/scalar_convert.h"
#include "compiler/ir/scalar_functions.h"
#include "compiler/ir/strided.h"
#include "compiler/support/check.h"

#include <algorithm>

namespace svod {

using Inputs = std::vector<const Tensor*>;

void lay_out(const Strided& view, Tensor& out);

// sum(a * b) over the axes of `sum`, without the products in memory. For dtypes that are
// their own compute type.
void evaluate_sum_of_products(const Node& sum, const Strided& a, const Strided& b,
                              Tensor& out);

void evaluate_map(const Node& node, const Inputs& in, Tensor& out);
void evaluate_cast(const Tensor& in, Tensor& out);
void evaluate_view(const Node& node, const Tensor& in, Tensor& out);
void evaluate_concat(const Node& node, const Inputs& in, Tensor& out);
void evaluate_reduce(const Node& node, const Tensor& in, Tensor& out);
void evaluate_arg_reduce(const Node& node, const Tensor& in, Tensor& out);
void evaluate_scan(const Node& node, const Tensor& in, Tensor& out);
void evaluate_argsort(const Node& node, const Tensor& in, Tensor& out);
// False: an index was out of range.
[[nodiscard]] bool evaluate_gather(const Inputs& in, int64_t axis, Tensor& out);
[[nodiscard]] bool evaluate_scatter(const Node& node, const Inputs& in, Tensor& out);
[[nodiscard]] bool evaluate_descend(const Node& node, const Inputs& in, Tensor& out);

// Every element of `out` becomes the one with these bits.
void fill_bits(Tensor& out, uint64_t bits);

// A row-major shape seen from one of its axes.
struct AxisView {
  int64_t outer = 1, extent = 1, inner = 1;
};
AxisView axis_view(const Shape& shape, int64_t axis);

// `count` elements of a narrow float's type, to float and rounded back.
void widen(DType dtype, const std::byte* from, int64_t count, float* to);
void narrow(DType dtype, const float* from, int64_t count, std::byte* to);

// Elements in their compute type. Narrow floats are converted in pieces of at most
// kPiece; all others are used where they lie.
inline constexpr int64_t kPiece = 512;

template <class T>
const T* load_piece(const Tensor& t, int64_t at, int64_t count, T* room) {
  const std::byte* from = t.bytes.data() + at * byte_size(t.dtype);
  if constexpr (std::is_same_v<T, float>)
    if (is_narrow_float(t.dtype)) {
      widen(t.dtype, from, count, room);
      return room;
    }
  return reinterpret_cast<const T*>(from);
}

// Where to write a piece; store_piece then brings it into `t`.
template <class T> T* piece_room(Tensor& t, int64_t at, T* room) {
  if constexpr (std::is_same_v<T, float>)
    if (is_narrow_float(t.dtype)) return room;
  return reinterpret_cast<T*>(t.bytes.data()) + at;
}
template <class T> void store_piece(Tensor& t, int64_t at, int64_t count, const T* room) {
  if constexpr (std::is_same_v<T, float>)
    if (is_narrow_float(t.dtype))
      narrow(t.dtype, room, count, t.bytes.data() + at * byte_size(t.dtype));
}

// Calls f(at, count) for pieces that cover [0, total).
template <class F> void for_pieces(int64_t total, F&& f) {
  for (int64_t at = 0; at < total; at += kPiece) f(at, std::min(kPiece, total - at));
}

// A whole tensor in compute type T, converted if need be into `room`.
template <class T> const T* load_all(const Tensor& t, std::vector<T>& room) {
  if (is_narrow_float(t.dtype)) room.resize(element_count(t.shape));
  return load_piece<T>(t, 0, element_count(t.shape), room.data());
}

} // namespace svod
