// Moving elements of Exprs: the views in formula form, and taking elements of an axis by
// position. Positions known when packing turn into slices where they run with one step
// (views, free) and into expands where they repeat; only what is left is a gather.
#pragma once

#include "importer/formula/expression.h"

namespace svod::importer {

inline Expr with(Expr x, NodeId id) { return {x.g, id}; }
// A rule that asks for an axis which its input does not have stops there.
int64_t extent(Expr x, int64_t axis);
inline bool known(Expr x) { return is_known(*x.g, x.id); }

inline void give(NodeImport& node, size_t i, Expr x) { node.output(i, x.id); }

// One number, a rank-0 tensor.
inline Expr number(Graph& g, DType dtype, double value) {
  return {&g, constant(g, dtype, {}, value)};
}
// 0 .. extent-1 along `axis` of a tensor whose other extents are 1.
inline Expr count_along(Graph& g, DType dtype, int64_t extent, int64_t axis,
                        int64_t rank) {
  Shape shape(static_cast<size_t>(rank), 1);
  shape[static_cast<size_t>(axis)] = extent;
  return counter(g, dtype, std::move(shape), axis);
}
// A rank-1 x laid along `axis` of a tensor whose other extents are 1.
inline Expr along(Expr x, int64_t axis, int64_t rank) {
  Shape shape(static_cast<size_t>(rank), 1);
  shape[static_cast<size_t>(axis)] = element_count(x.shape());
  return reshape(x, std::move(shape));
}
inline Expr broadcast(Expr x, const Shape& to) {
  return with(x, broadcast_to(*x.g, x.id, to));
}
inline Expr unsqueeze(Expr x, int64_t axis) {
  return with(x, unsqueeze(*x.g, x.id, axis));
}
inline Expr squeeze(Expr x, int64_t axis) {
  return with(x, squeeze_axes(*x.g, x.id, {axis}));
}
// Elements [start, start + count) of an axis.
inline Expr cut(Expr x, int64_t axis, int64_t start, int64_t count) {
  return with(x, slice_axis(*x.g, x.id, axis, start, count));
}
inline Expr slice(Expr x, Shape start, Shape step, Shape extents) {
  return with(x,
              slice(*x.g, x.id, std::move(start), std::move(step), std::move(extents)));
}
inline Expr pad(Expr x, Shape low, Shape high, double value) {
  return with(x, pad(*x.g, x.id, std::move(low), std::move(high), value));
}
inline Expr gather(Expr x, Expr index, int64_t axis) {
  return with(x, gather(*x.g, x.id, index.id, axis));
}
inline Expr scatter(Expr x, Expr index, Expr update, int64_t axis, Combiner how) {
  return with(x, scatter(*x.g, x.id, index.id, update.id, axis, how));
}
// x with `rows` written along the axis at `offset` + 0, 1, ..; it is a number, or has one
// element along that axis.
inline Expr written_at(Expr x, Expr rows, Expr offset, int64_t axis) {
  const Expr at =
      offset + count_along(*x.g, DType::I64, extent(rows, axis), axis, rows.rank());
  return scatter(x, broadcast(at, rows.shape()), rows, axis, Combiner::Set);
}
inline Expr matmul(Expr a, Expr b) { return with(a, matmul(*a.g, a.id, b.id)); }
Expr join(const std::vector<Expr>& parts, int64_t axis);

inline Expr less_equal(Expr a, Expr b) { return apply(Op::LessEqual, a, b); }
inline Expr both(Expr a, Expr b) { return apply(Op::And, a, b); }
inline Expr clamp(Expr x, double low, double high) {
  return minimum(maximum(x, low), high);
}

// Channels from the last axis to the second, and back; invalid() below rank 3.
Expr channels_second(const NodeImport& node, Expr x);
Expr channels_last(Expr x);

// invalid() unless 0 <= value < 2^31: what counts or places elements must be within
// reach, so that sums and products of such numbers do not overflow.
int64_t within_reach(const NodeImport& node, int64_t value, const char* what);

// The one number of input i, known when packing.
int64_t known_int(const NodeImport& node, size_t i);
double known_float(const NodeImport& node, size_t i);
// The values of input i, or none when they depend on the model's inputs.
std::optional<std::vector<int64_t>> ints_if_known(const NodeImport& node, size_t i);
// The shape the model declares for output `out`, for a rule whose input i is not known:
// unsupported() naming both when there is none. `rank` < 0: any.
Shape declared_instead(const NodeImport& node, size_t i, size_t out, int64_t rank);

// `index` where the model keeps its promise about a shape, else a position outside every
// axis: the gather that reads it then stops the run.
Expr if_kept(Expr promise, Expr index);
// Lets the run end where `promise`, bool[], does not hold; what the rule gives is read
// only where it does.
void promise(NodeImport& node, Expr promise);
// ... where the entries of input i are not these.
void promise_values(NodeImport& node, size_t i, const Shape& values);
// Whether all elements of a condition are true, bool[].
Expr all_true(Expr condition);
// The positions of the true elements of a rank-1 condition, promised to be `count` many.
Expr true_positions(NodeImport& node, Expr condition, int64_t count);

// x with axis := positions, all within the axis.
Expr take(Expr x, int64_t axis, const std::vector<int64_t>& positions);
// x with axis := index[i] for a rank-1 index that may depend on the model's inputs.
Expr take(Expr x, int64_t axis, Expr index);
// x with axis replaced by the axes of an index of any rank, known or not: ONNX's Gather.
Expr take_shaped(Expr x, int64_t axis, Expr index);

// Indices as ONNX means them: a negative one counts from the end. Known ones are checked
// here (invalid() outside the axis), others when the gather or scatter runs.
Expr wrap_index(NodeImport& node, Expr index, int64_t extent);

} // namespace svod::importer
