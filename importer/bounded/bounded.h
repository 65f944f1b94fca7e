// Sizes that depend on data. How many elements a NonZero finds is known when the program
// runs, but it has a bound: the tensor is made as large as that, and a scalar of the run,
// its count, says how many elements along the axis are meant. What lies beyond is
// unspecified, but can be computed with.
//
// Names refer to a bounded tensor by a node of its own, a select of it with itself by the
// mask of what is meant: no other value is that node, and whoever does not know about
// bounds computes with the whole tensor. A rule sees the tensor itself and its counts.
// Only operators whose row of onnx_ops.def has `bounded` take one; others are refused.
#pragma once

#include "importer/formula/movement.h"

#include <algorithm>
#include <map>

namespace svod::importer {

struct Bounded {
  NodeId tensor;
  Counts counts; // one per axis, kNoNode: the extent is the tensor's
};

// The tensor of a state that grows from run to run, which has room for `room` rows
// behind those of a bounded tensor, its beginning.
struct RoomBehind {
  NodeId all;
  int64_t axis, room;
};

class BoundTable {
public:
  // The node by which names refer to `x`; x itself without counts.
  NodeId add(Graph& g, NodeId x, Counts counts);
  const Bounded* find(NodeId id) const {
    const auto at = bounded_.find(id);
    return at == bounded_.end() ? nullptr : &at->second;
  }

  // `tensor` of a bounded one is the beginning of what has room behind it.
  void leave_room(NodeId tensor, const RoomBehind& room) { rooms_[tensor] = room; }
  const RoomBehind* room_behind(NodeId tensor) const {
    const auto at = rooms_.find(tensor);
    return at == rooms_.end() ? nullptr : &at->second;
  }
  // The most rows that were put behind one, where there was room for them or not.
  int64_t added_rows() const { return added_rows_; }
  void note_added(int64_t rows) { added_rows_ = std::max(added_rows_, rows); }

private:
  std::map<NodeId, Bounded> bounded_;
  std::map<NodeId, RoomBehind> rooms_;
  int64_t added_rows_ = 0;
};

// For bounded rules. How many elements are meant, an i64 of no axes.
inline NodeId count_along(const NodeImport& node, size_t input, int64_t axis) {
  const Counts& counts = node.counts(input);
  return counts.empty() ? kNoNode : counts[static_cast<size_t>(axis)];
}
Expr size_along(NodeImport& node, size_t input, int64_t axis);
// Which of `extent` places are meant.
Expr meant(Expr count, int64_t extent);
// x with `fill` in place of what is not meant, along the axes of `counts` that `axes`
// names.
Expr masked(Expr x, const Counts& counts, const std::vector<int64_t>& axes, Expr fill);
Expr masked(Expr x, const Counts& counts, double fill);
// The mean of what is meant, over the axes.
Expr mean_of_meant(Expr x, const Counts& counts, const std::vector<int64_t>& axes);
// What a reduction leaves as it is.
Expr neutral(Graph& g, Op reduction, DType dtype);
// `count`; the run stops where the condition does not hold.
Expr checked(Expr count, Expr condition);
// Axes of inputs that must be equal in the run, which stops where they are not: the
// inputs are cut to one bound, and their count is given, kNoNode where it is known. With
// `broadcasts`, a known extent of 1 fits all.
struct InputAxis {
  size_t input;
  int64_t axis;
};
NodeId agreed_count(NodeImport& node, const std::vector<InputAxis>& axes,
                    bool broadcasts);
// For operators of which few sizes may be the run's: refuses those along other axes of
// the inputs, and makes the axes of each group agree, in so far as they are given.
void agree_on_groups(NodeImport& node, const std::vector<std::vector<InputAxis>>& groups);
// `rows` written at `offset` + 0, 1, .. along the axis behind those of an input that is a
// state which grows: it has room behind them, and they stay where they are. The first
// `bound` of it; none where the input is no such state.
std::optional<Expr> written_behind(NodeImport& node, size_t input, int64_t axis,
                                   Expr rows, Expr offset, int64_t bound);
// Zeros in place of what is not meant of an input: numbers of rows must be of rows.
void zero_beyond(NodeImport& node, size_t input);
[[noreturn]] void refuse_bounded(const NodeImport& node, size_t input, int64_t axis);
// The counts, or none when all are kNoNode.
Counts tidy(Counts counts);

// The true places of a condition [n] in their order and how many they are; the rest of
// `places` is 0.
struct Places {
  Expr places, count;
};
Places true_places(Expr condition);

// x reshaped to sizes of the run. `sizes` have no axes; a size that is not known has the
// bound given for it.
struct Size {
  Expr size;     // i64, no axes
  int64_t bound; // = size where that is known
};
Size known_size(Graph& g, int64_t extent);
Shape bounds_of(const std::vector<Size>& sizes);
// The range of a number of the run.
inline std::optional<ValueRange> range_of(const NodeImport& node, Expr number,
                                          Trust trust = Trust::Integers) {
  return range_of(node.g, number.id, 0, trust, node.ranges);
}
// The plainest node that is this size: sizes are known to be equal by being one node.
NodeId simplest(Graph& g, NodeId size);
// A size that only the run knows, within its bound: where arithmetic alone does not keep
// it there, the run stops beyond. One without a bound has that of --limit-size;
// needs_value_of() without that.
inline constexpr int64_t kMostExtent = 1 << 24;
Size bounded_size(NodeImport& node, Expr size);
// How many sizes a list has. Every one becomes nodes: more than any model has axes are
// refused.
int64_t listed_axes(NodeImport& node, size_t input);
// Entry i of a list of sizes: the number itself, as it was put into the list, an i64.
Expr entry_of(Expr list, int64_t i);
std::vector<Size> sizes_of(NodeImport& node, size_t input); // along every axis
void give_bounded(NodeImport& node, size_t out, Expr x, const std::vector<Size>& sizes);

} // namespace svod::importer
