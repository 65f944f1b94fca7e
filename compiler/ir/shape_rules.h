// What a node's result must be, from its op, inputs and payload: the `shape` column of
// ops.def.
#pragma once

#include "compiler/ir/graph.h"

namespace svod {

// Elements one tensor may have at most, so that byte counts never overflow.
inline constexpr int64_t kMaxElements = int64_t{1} << 48;
inline constexpr char kTooLarge[] = "too many elements";
inline constexpr char kDtypesDiffer[] = "inputs differ in dtype";
inline constexpr char kNotDefined[] = "not defined for "; // an element type

// Sets node.dtype and node.shape to what follows from the rest, and checks arity, dtypes
// and payload. Where the row says `given` (and for the dtype of sources, cast and
// bitcast) they are read from the node and checked. Returns why the node is wrong, empty
// when it is right.
[[nodiscard]] std::string infer_type(const Graph& g, Node& node);

// What keeps a node's bytes from being those of a caller's tensor; empty when nothing.
// Elements of types that are not in dtypes.def have no size that is known here.
std::string interface_fault(const Graph& g, NodeId id, const Interface& seen);

} // namespace svod
