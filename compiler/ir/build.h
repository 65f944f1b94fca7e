// Making nodes: each function computes the result's type from its inputs, folds what is
// known, and interns the node. Callers pass valid arguments (SVOD_CHECK otherwise):
// faults of the user's model are found in importer before these are called.
//
// Folding here is cheap only: no-op views vanish, a view of a view becomes one where that
// is a node, and anything computed from constants of at most kFoldElements elements is
// evaluated.
#pragma once

#include "compiler/ir/graph.h"
#include "compiler/support/check.h"

#include <optional>

namespace svod {

// Thrown where a result would have more elements than any tensor may (kMaxElements). A
// model's numbers can ask for that anywhere, so it is found here, once; importer makes it
// an error at the model's node.
struct TooLarge : InternalError {
  using InternalError::InternalError;
};

// Thrown where an op is not defined for its operands' element types. An operator with a
// published signature never gets there; of one without, the types are the model's fault.
struct WrongType : InternalError {
  using InternalError::InternalError;
};

inline constexpr int64_t kFoldElements = 65536;
// Of more elements no list of values is made: a constant of 2^31 equal elements costs
// nothing, its list would cost 16 GiB.
inline constexpr int64_t kKnownElements = int64_t{1} << 22;

// Sources.
NodeId constant(Graph& g, DType dtype, Shape shape, double value);
NodeId constant_int(Graph& g, DType dtype, Shape shape, int64_t value);
NodeId constant_bits(Graph& g, DType dtype, Shape shape, uint64_t bits);
NodeId weight(Graph& g, DType dtype, Shape shape, uint32_t blob);
// A small tensor of known values, row-major.
NodeId tensor_i64(Graph& g, Shape shape, std::span<const int64_t> values);
NodeId tensor_f32(Graph& g, Shape shape, std::span<const float> values);
NodeId iota(Graph& g, DType dtype, Shape shape, int64_t axis);

// Element by element. map() wants equal shapes; broadcast_map() follows numpy's rule
// (ONNX "multidirectional broadcasting") by reshaping and expanding first.
NodeId map(Graph& g, Op op, std::vector<NodeId> inputs);
NodeId broadcast_map(Graph& g, Op op, std::vector<NodeId> inputs);
NodeId cast(Graph& g, NodeId x, DType dtype);
NodeId bitcast(Graph& g, NodeId x, DType dtype); // same element size

// Views.
NodeId reshape(Graph& g, NodeId x, Shape shape);
NodeId permute(Graph& g, NodeId x, std::vector<int64_t> perm);
NodeId expand(Graph& g, NodeId x, Shape shape); // same rank
// Numpy broadcasting of x to `shape` (rank may grow): reshape, then expand.
NodeId broadcast_to(Graph& g, NodeId x, const Shape& shape);
// y[i] = x[start + i * step]; step may be negative; extents given.
NodeId slice(Graph& g, NodeId x, Shape start, Shape step, Shape extent);
// One axis, step 1: elements [start, start + extent).
NodeId slice_axis(Graph& g, NodeId x, int64_t axis, int64_t start, int64_t extent);
// Non-negative amounts; outside elements are `value` (converted to x's dtype).
NodeId pad(Graph& g, NodeId x, Shape low, Shape high, double value);
NodeId pad_bits(Graph& g, NodeId x, Shape low, Shape high, uint64_t bits);
// Adds a last axis k of extent `size`: y[.., o at axis, .., k] = x[.., o*stride +
// k*dilation, ..] with o in [0, (n - (size-1)*dilation - 1) / stride + 1).
NodeId window(Graph& g, NodeId x, int64_t axis, int64_t size, int64_t stride,
              int64_t dilation);
NodeId concat(Graph& g, std::vector<NodeId> inputs, int64_t axis);

// Reductions keep reduced axes with extent 1. Over an empty axis the result is the
// identity.
NodeId reduce(Graph& g, Op op, NodeId x, std::vector<int64_t> axes);
NodeId arg_reduce(Graph& g, Op op, NodeId x, int64_t axis, bool select_last);
NodeId scan(Graph& g, Op op, NodeId x, int64_t axis);

// y[i] = data[i with axis := index[i]]. index is i64 or i32, has data's rank, and equals
// data's shape outside `axis` (expand first). Indices are not negative; checked at run
// time.
NodeId gather(Graph& g, NodeId data, NodeId index, int64_t axis);
enum class Combiner : int64_t { Set, Add, Mul, Min, Max };
NodeId scatter(Graph& g, NodeId data, NodeId index, NodeId update, int64_t axis,
               Combiner how);
// Positions along the axis in the order of their values, the first `count` of them (all
// by default): stable, NaN last.
NodeId argsort(Graph& g, NodeId x, int64_t axis, bool descending,
               std::optional<int64_t> count = {});

// Down decision trees: y[r, t] is the value of the node that row r of `key` reaches in
// `steps` steps from node root[t]. A node is a pair {value, link}, a link two unsigned
// halves: the low one is a column of `key`, the high one a distance. A step goes on by
// the distance, and one further when key[r, column] > value; so the two nodes below one
// lie side by side behind it, and one with distance 0 keeps those whose key is no larger.
// Comparisons of integers only: keys are made so that they order as their numbers do.
NodeId descend(Graph& g, NodeId key, NodeId node, NodeId root, int64_t steps);

// Any node but an input, through the function above that makes its op.
NodeId rebuild(Graph& g, const Node& node);

// Compositions used in more than one place.
// Matrix product with numpy batch rules over [.., M, K] x [.., K, N]: expand, mul, sum,
// reshape.
NodeId matmul(Graph& g, NodeId a, NodeId b);
// x to a power that is 0, or products, a root and an inverse of x; kNoNode for any other.
NodeId simple_power(Graph& g, NodeId x, double exponent);
NodeId permute_last_two(Graph& g, NodeId x);
NodeId unsqueeze(Graph& g, NodeId x, int64_t axis);
NodeId squeeze_axes(Graph& g, NodeId x, std::vector<int64_t> axes);

// The values of a node when they are known at pack time and at most kKnownElements.
std::optional<std::vector<int64_t>> known_ints(const Graph& g,
                                               NodeId id); // any integer dtype, bool
std::optional<std::vector<double>> known_floats(const Graph& g, NodeId id); // any dtype
bool is_known(const Graph& g, NodeId id); // a constant or a weight
// When every element of the node is one scalar known at pack time, its bits.
std::optional<uint64_t> splat_bits(const Graph& g, NodeId id);

// The bits of `value` converted to dtype, zero extended.
uint64_t scalar_bits(DType dtype, double value);
uint64_t scalar_bits_int(DType dtype, int64_t value);
double scalar_value(DType dtype, uint64_t bits);

} // namespace svod
