// Gradient of ai.onnx.preview.training: the derivative of one value of the graph by
// others, in reverse over the graph's nodes. Each op hands the derivative of its result
// back to its inputs; what it hands back is nodes again, so a gradient is folded and
// fused like anything else. The values `xs` are independent: nothing goes back beyond
// them.
#include "importer/formula/gradient.h"

#include "importer/formula/movement.h"

#include <algorithm>
#include <map>
#include <numbers>
#include <set>

namespace svod::importer {

namespace {

struct NotDifferentiable {
  Op op;
};

class Reverse {
public:
  Reverse(Graph& g, std::set<NodeId> xs) : g_(g), xs_(std::move(xs)) {}
  void run(NodeId y);
  NodeId of(NodeId x) const;

private:
  Expr in(const Node& node, size_t i) { return {&g_, node.inputs[i]}; }
  bool varies(NodeId id);
  void give(NodeId id, Expr amount);
  void step(NodeId id, Expr g);
  bool unary(const Node& node, Expr y, Expr g);
  bool binary(const Node& node, Expr y, Expr g);
  bool view(const Node& node, Expr g);
  void slice_back(const Node& node, Expr g);
  void window_back(const Node& node, Expr g);
  void concat_back(const Node& node, Expr g);
  bool reduce_back(const Node& node, Expr y, Expr g);
  bool index_back(const Node& node, Expr g);

  Graph& g_;
  std::set<NodeId> xs_;
  std::map<NodeId, bool> varies_;
  std::map<NodeId, NodeId> found_;
};

Expr square(Expr a) { return a * a; }

// Whether a value is computed from one of the xs. Inputs have lower ids than their users,
// so the walk needs no recursion.
bool Reverse::varies(NodeId id) {
  std::vector<NodeId> open{id};
  while (!open.empty()) {
    const NodeId at = open.back();
    if (varies_.contains(at)) {
      open.pop_back();
      continue;
    }
    if (xs_.contains(at)) {
      varies_[at] = true;
      continue;
    }
    bool ready = true, any = false;
    for (NodeId input : g_[at].inputs) {
      const auto known = varies_.find(input);
      if (known == varies_.end()) {
        open.push_back(input);
        ready = false;
      } else {
        any |= known->second;
      }
    }
    if (ready) varies_[at] = any;
  }
  return varies_[id];
}

void Reverse::give(NodeId id, Expr amount) {
  if (!varies(id) || !is_float(g_[id].dtype)) return;
  const auto [at, added] = found_.emplace(id, amount.id);
  if (!added) at->second = (Expr{&g_, at->second} + amount).id;
}

// Constant but where it jumps.
static bool is_step(Op op) {
  return op == Op::Sign || op == Op::Floor || op == Op::Ceil || op == Op::Round ||
         op == Op::Trunc;
}

bool Reverse::unary(const Node& node, Expr y, Expr g) {
  const Expr a = in(node, 0);
  const auto back = [&](Expr factor) {
    give(a.id, g * factor);
    return true;
  };
  switch (node.op) {
  case Op::Neg:
    return give(a.id, -g), true;
  case Op::Abs:
    return back(apply(Op::Sign, a));
  case Op::Sqrt:
    return back(reciprocal(y * 2));
  case Op::Reciprocal:
    return back(-square(y));
  case Op::Exp:
    return back(y);
  case Op::Log:
    return back(reciprocal(a));
  case Op::Log1p:
    return back(reciprocal(a + 1));
  case Op::Sin:
    return back(apply(Op::Cos, a));
  case Op::Cos:
    return back(-apply(Op::Sin, a));
  case Op::Tan:
    return back(square(y) + 1);
  case Op::Asin:
    return back(reciprocal(sqrt(1 - square(a))));
  case Op::Acos:
    return back(-reciprocal(sqrt(1 - square(a))));
  case Op::Atan:
    return back(reciprocal(square(a) + 1));
  case Op::Sinh:
    return back(apply(Op::Cosh, a));
  case Op::Cosh:
    return back(apply(Op::Sinh, a));
  case Op::Tanh:
    return back(1 - square(y));
  case Op::Asinh:
    return back(reciprocal(sqrt(square(a) + 1)));
  case Op::Acosh:
    return back(reciprocal(sqrt(square(a) - 1)));
  case Op::Atanh:
    return back(reciprocal(1 - square(a)));
  case Op::Erf:
    return back(exp(-square(a)) * (2 * std::numbers::inv_sqrtpi));
  case Op::Sigmoid:
    return back(y * (1 - y));
  case Op::Cast:
    return give(a.id, convert(g, a.dtype())), true;
  default:
    return is_step(node.op);
  }
}

bool Reverse::binary(const Node& node, Expr y, Expr g) {
  const Expr zero = like(g, 0);
  const auto back = [&](Expr first, Expr second) {
    give(node.inputs[0], first);
    give(node.inputs[1], second);
    return true;
  };
  if (node.op == Op::Select) {
    give(node.inputs[1], select(in(node, 0), g, zero));
    give(node.inputs[2], select(in(node, 0), zero, g));
    return true;
  }
  if (node.inputs.size() != 2) return false;
  const Expr a = in(node, 0), b = in(node, 1);
  switch (node.op) {
  case Op::Add:
    return back(g, g);
  case Op::Sub:
    return back(g, -g);
  case Op::Mul:
    return back(g * b, g * a);
  case Op::Div:
    return back(g / b, -(g * y / b));
  case Op::Pow:
    return back(g * b * apply(Op::Pow, a, b - 1),
                select(less(0, a), g * y * log(a), zero));
  case Op::Atan2:
    return back(g * b / (square(a) + square(b)), -(g * a / (square(a) + square(b))));
  case Op::Max:
    return back(select(less(a, b), zero, g), select(less(a, b), g, zero));
  case Op::Min:
    return back(select(less(b, a), zero, g), select(less(b, a), g, zero));
  default:
    return false;
  }
}

// Elements that the slice left out get nothing.
void Reverse::slice_back(const Node& node, Expr g) {
  const Shape whole = g_[node.inputs[0]].shape;
  const size_t rank = whole.size();
  Shape low(rank), high(rank), start(rank), step(rank, 1);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t by = node.payload[rank + i], extent = node.shape[i];
    if (by != 1 && by != -1 && extent > 1) throw NotDifferentiable{node.op};
    const bool turned = by == -1 && extent > 1;
    low[i] = turned ? node.payload[i] - (extent - 1) : node.payload[i];
    high[i] = whole[i] - low[i] - extent;
    if (turned) start[i] = extent - 1;
    if (turned) step[i] = -1;
  }
  give(node.inputs[0], pad(slice(g, start, step, node.shape), low, high, 0));
}

// One strided part per place in the window: zeros between its elements, then shifted.
void Reverse::window_back(const Node& node, Expr g) {
  constexpr int64_t kMostPlaces = 64;
  const Shape whole = g_[node.inputs[0]].shape;
  const int64_t axis = node.payload[0], size = node.payload[1];
  const int64_t stride = node.payload[2], dilation = node.payload[3];
  const auto at = static_cast<size_t>(axis);
  const auto rank = static_cast<int64_t>(whole.size());
  if (size > kMostPlaces || size == 0) throw NotDifferentiable{node.op};
  const int64_t count = node.shape[at], reach = (count - 1) * stride + 1;
  for (int64_t k = 0; k < size && count > 0; ++k) {
    Expr part = unsqueeze(squeeze(cut(g, rank, k, 1), rank), axis + 1);
    Shape none(whole.size() + 1), between(whole.size() + 1);
    between[at + 1] = stride - 1;
    Shape joined = whole, low(whole.size()), high(whole.size());
    joined[at] = count * stride;
    part = cut(reshape(pad(part, none, between, 0), joined), axis, 0, reach);
    low[at] = k * dilation;
    high[at] = whole[at] - low[at] - reach;
    give(node.inputs[0], pad(part, low, high, 0));
  }
}

void Reverse::concat_back(const Node& node, Expr g) {
  int64_t start = 0;
  for (NodeId input : node.inputs) {
    const int64_t extent = g_[input].shape[static_cast<size_t>(node.payload[0])];
    give(input, cut(g, node.payload[0], start, extent));
    start += extent;
  }
}

bool Reverse::view(const Node& node, Expr g) {
  const Shape& whole = g_[node.inputs[0]].shape;
  std::vector<int64_t> axes(node.payload.size());
  switch (node.op) {
  case Op::Reshape:
    return give(node.inputs[0], reshape(g, whole)), true;
  case Op::Permute:
    for (size_t i = 0; i < axes.size(); ++i)
      axes[static_cast<size_t>(node.payload[i])] = static_cast<int64_t>(i);
    return give(node.inputs[0], permute(g, axes)), true;
  case Op::Expand:
    axes.clear();
    for (size_t i = 0; i < whole.size(); ++i)
      if (whole[i] != node.shape[i]) axes.push_back(static_cast<int64_t>(i));
    return give(node.inputs[0], sum(g, axes)), true;
  case Op::Pad: {
    const Shape low(node.payload.begin(),
                    node.payload.begin() + static_cast<int64_t>(whole.size()));
    return give(node.inputs[0], slice(g, low, Shape(whole.size(), 1), whole)), true;
  }
  case Op::Slice:
    return slice_back(node, g), true;
  case Op::Window:
    return window_back(node, g), true;
  case Op::Concat:
    return concat_back(node, g), true;
  default:
    return false;
  }
}

// The greatest of several equal elements shares with them.
bool Reverse::reduce_back(const Node& node, Expr y, Expr g) {
  const Expr x = in(node, 0);
  const Shape whole = x.shape();
  if (node.op == Op::ReduceSum) return give(x.id, broadcast(g, whole)), true;
  if (node.op != Op::ReduceMax && node.op != Op::ReduceMin) return false;
  const Expr chosen = convert(equal(x, broadcast(y, whole)), g.dtype());
  give(x.id, chosen * broadcast(g / sum(chosen, node.payload), whole));
  return true;
}

bool Reverse::index_back(const Node& node, Expr g) {
  if (node.op != Op::Gather && node.op != Op::Scatter) return false;
  const Expr x = in(node, 0), index = in(node, 1);
  if (node.op == Op::Gather) {
    give(x.id, scatter(like(x, 0), index, g, node.payload[0], Combiner::Add));
    return true;
  }
  if (node.payload[1] != static_cast<int64_t>(Combiner::Add)) return false;
  give(x.id, g);
  give(node.inputs[2], gather(g, index, node.payload[0]));
  return true;
}

void Reverse::step(NodeId id, Expr g) {
  const Node node = g_[id]; // a copy: nodes are added while it is read
  const Expr y{&g_, id};
  const bool done = unary(node, y, g) || binary(node, y, g) || view(node, g) ||
                    reduce_back(node, y, g) || index_back(node, g);
  if (!done) throw NotDifferentiable{node.op};
}

// New nodes have higher ids than y, so the descent from y meets old ones only.
void Reverse::run(NodeId y) {
  if (!varies(y)) return;
  found_[y] = constant(g_, g_[y].dtype, g_[y].shape, 1);
  for (auto at = found_.find(y);;) {
    const NodeId id = at->first;
    if (!xs_.contains(id)) step(id, {&g_, at->second});
    at = found_.lower_bound(id);
    if (at == found_.begin()) return;
    --at;
  }
}

NodeId Reverse::of(NodeId x) const {
  const auto at = found_.find(x);
  return at != found_.end() ? at->second : constant(g_, g_[x].dtype, g_[x].shape, 0);
}

} // namespace

std::vector<NodeId> gradients(Graph& g, NodeId y, const std::vector<NodeId>& xs,
                              std::string& failure) {
  Reverse reverse(g, {xs.begin(), xs.end()});
  try {
    reverse.run(y);
  } catch (const NotDifferentiable& found) {
    failure = "the gradient of '" + std::string(info(found.op).text) +
              "', which the operators between are made of, is not supported";
    return {};
  }
  std::vector<NodeId> results;
  for (NodeId x : xs) results.push_back(reverse.of(x));
  return results;
}

} // namespace svod::importer
