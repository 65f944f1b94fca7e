// The state of one graph that is being drawn, and of each of its values how exact it is.
#pragma once

#include "tests/support/random_graph.h"

namespace svod::test {

// What is known of a node's elements.
struct Value {
  double bound = 0;  // of the magnitude
  int fraction = 0;  // bits after the point
  bool exact = true; // every order of operations gives the same bits
  bool ends = false; // may hold infinities or NaN: only views follow
  bool plain =
      false; // its zeros have the sign they were given; rewriting may change it of others
  int precision = 53; // mantissa bits of the coarsest float on the way here
};

inline constexpr DType kTypes[] = {DType::F32, DType::F32,  DType::F32,  DType::F32,
                                   DType::I64, DType::I32,  DType::Bool, DType::F64,
                                   DType::F16, DType::BF16, DType::I8,   DType::U8,
                                   DType::I16, DType::U16,  DType::U32,  DType::U64};

int mantissa_bits(DType dtype); // 53 of all but the shorter floats

// Magnitude of a float that operations may reach.
inline constexpr double kLargest = 4096;

class Drawer {
public:
  Drawer(uint64_t seed, const RandomGraphOptions& options)
      : random_(seed), options_(options) {}
  RandomGraph run();

private:
  Graph& g() { return out_.graph; }
  // Copies: making a node moves the others.
  Shape shape(NodeId id) { return g()[id].shape; }
  Value value(NodeId id) { return values_.at(id); }

  // Sources and operands: random_sources.cpp.
  Shape random_shape();
  double random_scalar(DType dtype);
  Value scalar_value_info(DType dtype);
  Tensor random_tensor(DType dtype, const Shape& shape);
  NodeId record(NodeId id, Value value);
  NodeId add_input_tensor(Tensor tensor, Value value);
  NodeId add_input(DType dtype);
  NodeId add_known(Tensor tensor, Value value);
  NodeId add_constant(DType dtype, const Shape& shape, double scalar, Value value);
  // A known value of this type: a constant, weights, or weights that repeat along some
  // axes.
  NodeId draw_known(DType dtype, const Shape& shape);
  NodeId draw_source(Op op);
  // Mostly a recent value, so that chains form.
  NodeId draw_value();
  NodeId draw_matching(NodeId like, DType dtype);
  int64_t draw_axis(NodeId x);
  // Indices into [0, extent), known or not.
  NodeId draw_index(const Shape& shape, int64_t extent);

  // Interns the node if it is valid and small, and its values stay in bounds.
  bool finish(Node node, Value value);
  bool draw_node();
  // Every value that no other uses, and the last one.
  void add_outputs();

  // Views, and what takes elements from elsewhere: random_views.cpp.
  bool draw_convert(Op op, NodeId x);
  bool draw_view(Op op, NodeId x);
  // The same elements under other extents: neighbours are merged, extents split, ones
  // come and go.
  Shape regrouped(Shape shape);
  bool draw_slice(Node node, Value v);
  // x cut in two along an axis, and put together again in either order.
  bool draw_cut_concat(NodeId x);
  bool draw_concat(NodeId x);
  // Every step leads on, and none beyond the last node, whose value nothing exceeds.
  bool draw_descend(NodeId x);
  bool draw_indexed(Op op, NodeId x);
  bool draw_argsort(NodeId x);

  // Reductions and maps: random_maps.cpp.
  bool draw_reduce(Op op, NodeId x);
  static bool allows_bool(Op op);
  bool draw_map(Op op, NodeId x);
  // Second operands that rules look for come up often enough.
  NodeId draw_operand(Op op, NodeId x);
  // Bounds of a map on floats; false where the operands do not suit it.
  bool float_result(Op op, const Value& a, const Value& b, Value& out);
  bool draw_select(NodeId x);
  bool draw_mul_add(NodeId x);

  // What models are made of, and random nodes seldom meet.
  // Softmax along the last axis, as it is imported.
  bool draw_softmax(NodeId x);
  bool draw_gelu(NodeId x);         // by way of erf, its factors in some order
  bool draw_swish(NodeId x);        // its factor inside the sigmoid or not
  bool draw_hard_swish(NodeId x);   // its product or what is clamped over 6
  bool draw_clamped_cast(NodeId x); // to bytes, after a minimum with their largest
  // Records nodes that the builder made since `first`; exactly as loose as the last of
  // them.
  bool finish_idiom(size_t first, NodeId result, Value v);
  bool draw_idiom();

  Random random_;
  RandomGraphOptions options_;
  RandomGraph out_;
  std::vector<Value> values_;
  std::vector<NodeId> pool_; // what operands are drawn from, newest last
};

} // namespace svod::test
