// Drawing graphs. The hard part is that a pass may reorder float operations, and that
// floor, less or argmax turn a rounding difference into a different answer. So the
// generator knows of each value a bound and how many fraction bits it has. Inputs are
// multiples of 1/4; as long as bound and fraction bits fit the mantissa, sums and
// products are exact in any order ("exact"), and only exact values go into functions with
// jumps. What exp and the like make is not exact; from then on only smooth functions
// follow, and the tolerance grows with the bound.
#include "tests/support/random_contraction.h"

#include "compiler/ir/build.h"
#include "compiler/ir/shape_rules.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace svod::test {

uint64_t Random::next() {
  uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

namespace {

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

int mantissa_bits(DType dtype) {
  switch (dtype) {
  case DType::F16:
    return 11;
  case DType::BF16:
    return 8;
  case DType::F32:
    return 24;
  default:
    return 53;
  }
}

// Rounding of one operation, relative, with room for some dozens of them.
double relative_error(const Value& value) {
  return 64 * std::ldexp(1.0, -value.precision);
}

constexpr double kLargest = 4096;

// All but regions, which random_region.h draws, the call, which the evaluator cannot run,
// and the descent, drawn where a gather could be, of which it is a rare kind.
std::vector<Op> drawn_ops() {
  std::vector<Op> ops;
#define OP(name, text, class, arity, shape, payload)                                     \
  if (OpClass::class != OpClass::Region && Op::name != Op::Call &&                       \
      Op::name != Op::Descend)                                                           \
    ops.push_back(Op::name);
#define MAP(name, text, arity, result, cell) ops.push_back(Op::name);
#include "compiler/ir/ops.def"
  return ops;
}

constexpr DType kTypes[] = {DType::F32, DType::F32,  DType::F32,  DType::F32,
                            DType::I64, DType::I32,  DType::Bool, DType::F64,
                            DType::F16, DType::BF16, DType::I8,   DType::U8,
                            DType::I16, DType::U16,  DType::U32,  DType::U64};

class Drawer {
public:
  Drawer(uint64_t seed, const RandomGraphOptions& options)
      : random_(seed), options_(options) {}

  RandomGraph run() {
    int sources = static_cast<int>(random_.between(2, 4));
    for (int i = 0; i < sources; ++i) add_input(kTypes[random_.below(std::size(kTypes))]);
    for (int tries = 0, made = 0; made < options_.nodes && tries < 50 * options_.nodes;
         ++tries)
      made += random_.chance(6) ? draw_idiom() : draw_node();
    add_outputs();
    out_.tolerance.resize(out_.graph.size());
    for (NodeId id = 0; id < out_.graph.size(); ++id) {
      const Value& value = values_[id];
      DType dtype = g()[id].dtype;
      if (!value.exact && is_float(dtype))
        out_.tolerance[id] = relative_error(value) * std::max(1.0, value.bound);
    }
    return std::move(out_);
  }

private:
  Graph& g() { return out_.graph; }
  // Copies: making a node moves the others.
  Shape shape(NodeId id) { return g()[id].shape; }
  Value value(NodeId id) { return values_.at(id); }

  // ---- sources

  Shape random_shape() {
    static constexpr int64_t kSmall[] = {1, 1, 2, 3, 4, 5, 7};
    static constexpr int64_t kLarge[] = {1, 3, 8, 13, 16, 17, 33};
    const auto& extents = options_.large ? kLarge : kSmall;
    Shape shape;
    for (int64_t rank = random_.between(0, 4); rank > 0; --rank) {
      int64_t extent = extents[random_.below(7)];
      if (element_count(shape) * extent <= options_.max_elements) shape.push_back(extent);
    }
    return shape;
  }

  double random_scalar(DType dtype) {
    if (dtype == DType::Bool) return static_cast<double>(random_.below(2));
    int64_t quarter = random_.between(-12, 12);
    if (is_float(dtype)) return static_cast<double>(quarter) / 4;
    return static_cast<double>(info(dtype).kind == DTypeKind::Uint ? std::abs(quarter)
                                                                   : quarter);
  }

  Value scalar_value_info(DType dtype) {
    return {is_float(dtype) ? 3.0 : 12.0, is_float(dtype) ? 2 : 0, true, false, true};
  }

  Tensor random_tensor(DType dtype, const Shape& shape) {
    std::vector<double> values(static_cast<size_t>(element_count(shape)));
    for (double& v : values) v = random_scalar(dtype);
    return make_tensor(dtype, shape, values);
  }

  NodeId record(NodeId id, Value value) {
    values_.resize(std::max<size_t>(values_.size(), g().size()));
    values_[id] = value;
    if (std::find(pool_.begin(), pool_.end(), id) == pool_.end()) pool_.push_back(id);
    return id;
  }

  NodeId add_input_tensor(Tensor tensor, Value value) {
    std::string name = "x" + std::to_string(out_.inputs.size());
    NodeId id = g().add_input(name, tensor.dtype, tensor.shape);
    out_.inputs.push_back(std::move(tensor));
    return record(id, value);
  }

  NodeId add_input(DType dtype) {
    return add_input_tensor(random_tensor(dtype, random_shape()),
                            scalar_value_info(dtype));
  }

  NodeId add_known(Tensor tensor, Value value) {
    uint32_t blob = g().add_blob(std::move(tensor.bytes));
    return record(g().intern({Op::Weight, tensor.dtype, tensor.shape, {blob}, {}}),
                  value);
  }

  NodeId add_constant(DType dtype, const Shape& shape, double scalar, Value value) {
    auto bits = static_cast<int64_t>(scalar_bits(dtype, scalar));
    return record(g().intern({Op::Constant, dtype, shape, {bits}, {}}), value);
  }

  // A known value of this type: a constant, weights, or weights that repeat along some
  // axes.
  NodeId draw_known(DType dtype, const Shape& shape) {
    Value info = scalar_value_info(dtype);
    if (random_.chance(40)) return add_constant(dtype, shape, random_scalar(dtype), info);
    Shape small = shape;
    for (int64_t& extent : small)
      if (random_.chance(50)) extent = 1;
    NodeId id = add_known(random_tensor(dtype, small), info);
    if (small == shape) return id;
    return record(g().intern({Op::Expand, dtype, shape, {}, {id}}), info);
  }

  NodeId draw_source(Op op) {
    DType dtype = kTypes[random_.below(std::size(kTypes))];
    Shape shape = random_shape();
    if (op == Op::Input) return add_input(dtype);
    if (op == Op::Weight)
      return add_known(random_tensor(dtype, shape), scalar_value_info(dtype));
    if (op == Op::Constant) return draw_known(dtype, shape);
    if (shape.empty() || dtype == DType::Bool) return kNoNode;
    return record(g().intern({Op::Iota,
                              dtype,
                              shape,
                              {random_.below(static_cast<int64_t>(shape.size()))},
                              {}}),
                  {8, 0, true, false});
  }

  // ---- operands

  // Mostly a recent value, so that chains form.
  NodeId draw_value() {
    size_t size = pool_.size();
    if (random_.chance(60))
      return pool_[size - 1 - random_.below(std::min<int64_t>(size, 4))];
    return pool_[static_cast<size_t>(random_.below(static_cast<int64_t>(size)))];
  }

  NodeId draw_matching(NodeId like, DType dtype) {
    if (random_.chance(35)) return draw_known(dtype, shape(like));
    std::vector<NodeId> found;
    for (NodeId id : pool_)
      if (g()[id].dtype == dtype && shape(id) == shape(like) && !value(id).ends)
        found.push_back(id);
    if (!found.empty()) return found[static_cast<size_t>(random_.below(found.size()))];
    if (random_.chance(50))
      return add_input_tensor(random_tensor(dtype, shape(like)),
                              scalar_value_info(dtype));
    return draw_known(dtype, shape(like));
  }

  int64_t draw_axis(NodeId x) {
    return random_.below(static_cast<int64_t>(shape(x).size()));
  }

  // Indices into [0, extent), known or not.
  NodeId draw_index(const Shape& shape, int64_t extent) {
    DType dtype = random_.chance(50) ? DType::I64 : DType::I32;
    std::vector<double> indices(static_cast<size_t>(element_count(shape)));
    for (double& index : indices) index = static_cast<double>(random_.below(extent));
    Value info{8, 0, true, false};
    Tensor tensor = make_tensor(dtype, shape, indices);
    return random_.chance(50) ? add_known(std::move(tensor), info)
                              : add_input_tensor(std::move(tensor), info);
  }

  // ---- nodes

  // Interns the node if it is valid and small, and its values stay in bounds.
  bool finish(Node node, Value value) {
    if (!infer_type(g(), node).empty()) return false;
    if (element_count(node.shape) > options_.max_elements) return false;
    value.precision = mantissa_bits(node.dtype);
    for (NodeId input : node.inputs)
      value.precision = std::min(value.precision, values_[input].precision);
    // Integers wrap; floats of any order agree only within bounds.
    if (is_float(node.dtype)) {
      if (value.bound > kLargest) return false;
      double bits = std::log2(std::max(1.0, value.bound)) + value.fraction + 1;
      if (bits > mantissa_bits(node.dtype)) value.exact = false;
    } else {
      double most = std::ldexp(1.0, 8 * byte_size(node.dtype));
      value = {std::min(value.bound, node.dtype == DType::Bool ? 1 : most), 0, true,
               value.ends};
    }
    record(g().intern(std::move(node)), value);
    return true;
  }

  bool draw_node() {
    static const std::vector<Op> kOps = drawn_ops();
    Op op = kOps[random_.below(std::ssize(kOps))];
    if (info(op).op_class == OpClass::Source) return draw_source(op) != kNoNode;
    NodeId x = draw_value();
    if (random_.chance(5)) op = g()[x].op; // twice the same, as in models
    if (op == Op::Descend) op = Op::Gather;
    OpClass kind = info(op).op_class;
    if (kind == OpClass::Source) return false;
    if (value(x).ends && kind != OpClass::View) return false;
    switch (kind) {
    case OpClass::Convert:
      return draw_convert(op, x);
    case OpClass::View:
      return draw_view(op, x);
    case OpClass::Join:
      return draw_concat(x);
    case OpClass::Reduce:
    case OpClass::Scan:
      return draw_reduce(op, x);
    case OpClass::Index:
      return draw_indexed(op, x);
    case OpClass::Order:
      return draw_argsort(x);
    default:
      return draw_map(op, x);
    }
  }

  bool draw_convert(Op op, NodeId x) {
    DType from = g()[x].dtype, to = kTypes[random_.below(std::size(kTypes))];
    if (op == Op::Bitcast) { // any bits: only of exact values, and nothing follows
      if (!value(x).plain || to == DType::Bool) return false;
      return finish({op, to, {}, {}, {x}}, {1, 0, true, true});
    }
    Value v = value(x);
    if (!is_float(to)) {
      if (!v.exact) return false; // a jump
      v.fraction = 0;
      if (to == DType::Bool) v.bound = 1;
    }
    if (is_float(to) && !is_float(from)) v.bound = std::max(v.bound, 1.0);
    // Negative values wrap to large ones.
    if (info(to).kind == DTypeKind::Uint && info(from).kind != DTypeKind::Bool)
      v.bound = std::ldexp(1.0, 8 * byte_size(to));
    return finish({op, to, {}, {}, {x}}, v);
  }

  bool draw_view(Op op, NodeId x) {
    Shape from = shape(x);
    size_t rank = from.size();
    Node node{op, {}, from, {}, {x}};
    Value v = value(x);
    switch (op) {
    case Op::Reshape:
      node.shape = regrouped(from);
      break;
    case Op::Permute:
      for (size_t i = 0; i < rank; ++i) node.payload.push_back(static_cast<int64_t>(i));
      for (size_t i = rank; i > 1; --i)
        std::swap(node.payload[i - 1],
                  node.payload[static_cast<size_t>(random_.below(i))]);
      break;
    case Op::Expand:
      for (int64_t& extent : node.shape)
        if (extent == 1) extent = random_.between(1, 4);
      break;
    case Op::Slice:
      return draw_slice(node, v);
    case Op::Pad:
      for (size_t i = 0; i < 2 * rank; ++i)
        node.payload.push_back(random_.chance(50) ? 0 : random_.between(1, 3));
      node.payload.push_back(static_cast<int64_t>(scalar_bits(
          g()[x].dtype, random_.chance(60) ? 0 : random_scalar(g()[x].dtype))));
      v.bound = std::max(v.bound, 12.0);
      v.fraction = std::max(v.fraction, 2);
      break;
    default:
      if (rank == 0) return false;
      node.payload = {draw_axis(x), random_.between(1, 3), random_.between(1, 3),
                      random_.between(1, 2)};
    }
    return finish(node, v);
  }

  // The same elements under other extents: neighbours are merged, extents split, ones
  // come and go.
  Shape regrouped(Shape shape) {
    for (int step = 0; step < 3; ++step) {
      auto at = static_cast<std::ptrdiff_t>(
          random_.below(static_cast<int64_t>(shape.size()) + 1));
      auto end = static_cast<std::ptrdiff_t>(shape.size());
      if (at + 1 < end && random_.chance(50)) {
        shape[at] *= shape[at + 1];
        shape.erase(shape.begin() + at + 1);
      } else if (at < end && shape[at] == 1) {
        shape.erase(shape.begin() + at);
      } else if (at < end && shape[at] % 2 == 0) {
        shape[at] /= 2;
        shape.insert(shape.begin() + at, 2);
      } else if (shape.size() < 5) {
        shape.insert(shape.begin() + at, 1);
      }
    }
    return shape;
  }

  bool draw_slice(Node node, Value v) {
    Shape step;
    for (int64_t& extent : node.shape) {
      int64_t size = extent, by = random_.between(1, 2), first = random_.below(size);
      if (random_.chance(30)) {
        node.payload.push_back(0), step.push_back(1);
        continue;
      }
      if (random_.chance(30)) by = -by;
      int64_t room = by > 0 ? (size - 1 - first) / by : first / -by;
      extent = random_.between(1, room + 1);
      node.payload.push_back(first), step.push_back(by);
    }
    node.payload.insert(node.payload.end(), step.begin(), step.end());
    return finish(std::move(node), v);
  }

  // x cut in two along an axis, and put together again in either order.
  bool draw_cut_concat(NodeId x) {
    Shape whole = shape(x);
    size_t axis = static_cast<size_t>(draw_axis(x));
    if (whole[axis] < 2) return false;
    int64_t at = random_.between(1, whole[axis] - 1);
    std::vector<NodeId> parts;
    for (int part = 0; part < 2; ++part) {
      Node node{Op::Slice, {}, whole, Payload(2 * whole.size(), 0), {x}};
      std::fill(node.payload.begin() + std::ptrdiff_t(whole.size()), node.payload.end(),
                1);
      node.shape[axis] = part ? whole[axis] - at : at;
      node.payload[axis] = part ? at : 0;
      if (!finish(std::move(node), value(x))) return false;
      parts.push_back(pool_.back());
    }
    if (random_.chance(50)) std::swap(parts[0], parts[1]);
    return finish({Op::Concat, {}, {}, {int64_t(axis)}, parts}, value(x));
  }

  bool draw_concat(NodeId x) {
    if (shape(x).empty()) return false;
    if (random_.chance(25)) return draw_cut_concat(x);
    // Mostly along the axis of the one before.
    bool again = g()[x].op == Op::Concat && random_.chance(80);
    Node node{Op::Concat, {}, {}, {again ? g()[x].payload[0] : draw_axis(x)}, {x}};
    Value v = value(x);
    for (int64_t more = random_.between(1, 2); more > 0; --more) {
      NodeId other = draw_matching(x, g()[x].dtype);
      v.bound = std::max(v.bound, value(other).bound);
      v.fraction = std::max(v.fraction, value(other).fraction);
      v.exact = v.exact && value(other).exact;
      v.plain = v.plain && value(other).plain;
      node.inputs.push_back(other);
    }
    return finish(std::move(node), v);
  }

  bool draw_reduce(Op op, NodeId x) {
    if (shape(x).empty() || g()[x].dtype == DType::Bool) return false;
    Value v = value(x);
    v.plain = false;
    int64_t axis = draw_axis(x), count = shape(x)[axis];
    Node node{op, {}, {}, {axis}, {x}};
    if (op == Op::ArgMin || op == Op::ArgMax) {
      if (!v.exact) return false;
      node.payload.push_back(random_.below(2));
      return finish(std::move(node), {8, 0, true, false});
    }
    if (is_reduce(op) && random_.chance(50)) { // more axes
      node.payload.clear();
      count = 1;
      for (size_t i = 0; i < shape(x).size(); ++i)
        if (random_.chance(50)) {
          node.payload.push_back(static_cast<int64_t>(i));
          count *= shape(x)[i];
        }
    }
    if (op == Op::ReduceSum || op == Op::ScanSum) v.bound *= static_cast<double>(count);
    if (op == Op::ReduceProd || op == Op::ScanProd) {
      v.bound = std::pow(std::max(1.0, v.bound), static_cast<double>(count));
      v.fraction *= static_cast<int>(count);
    }
    return finish(std::move(node), v);
  }

  // Every step leads on, and none beyond the last node, whose value nothing exceeds.
  bool draw_descend(NodeId x) {
    int64_t nodes = random_.between(2, 12), columns = shape(x)[1];
    bool wide = g()[x].dtype == DType::U64;
    double high = wide ? 4294967296.0 : 65536.0;
    std::vector<double> table, roots;
    for (int64_t i = 0; i + 1 < nodes; ++i) {
      table.push_back(static_cast<double>(random_.between(0, 6)));
      int64_t distance = random_.below(std::min<int64_t>(3, nodes - 1 - i));
      table.push_back(static_cast<double>(distance) * high +
                      static_cast<double>(random_.below(columns)));
    }
    table.insert(table.end(), {wide ? 18446744073709551615.0 : 4294967295.0, 0.0});
    for (int64_t t = random_.between(1, 5); t > 0; --t)
      roots.push_back(static_cast<double>(random_.below(nodes)));
    Value any{1.9e19, 0, true, false};
    NodeId node = add_known(make_tensor(g()[x].dtype, {nodes, 2}, table), any);
    Shape trees{static_cast<int64_t>(roots.size())};
    NodeId root = add_known(make_tensor(DType::I64, trees, roots), any);
    return finish({Op::Descend, {}, {}, {random_.below(14)}, {x, node, root}}, any);
  }

  bool draw_indexed(Op op, NodeId x) {
    if (shape(x).empty()) return false;
    int64_t axis = draw_axis(x), extent = shape(x)[axis];
    DType dtype = g()[x].dtype;
    bool keys = (dtype == DType::U32 || dtype == DType::U64) && shape(x).size() == 2;
    if (op == Op::Gather && keys && axis == 0 && g().depends_on_input(x))
      return draw_descend(x);
    Shape index = shape(x);
    index[axis] = random_.between(1, 4);
    if (element_count(index) > options_.max_elements) return false;
    NodeId at = draw_index(index, extent);
    Value v = value(x);
    if (op == Op::Gather) return finish({op, {}, {}, {axis}, {x, at}}, v);
    if (g()[x].dtype == DType::Bool) return false;
    NodeId update = draw_matching(at, g()[x].dtype);
    Value u = value(update);
    v.plain = false;
    int64_t how = random_.below(5);
    v.exact = v.exact && u.exact;
    v.fraction =
        how == 2 ? v.fraction + 4 * u.fraction : std::max(v.fraction, u.fraction);
    if (how == 2) // up to four updates meet at one element
      v.bound = std::max(1.0, v.bound) * std::pow(std::max(1.0, u.bound), 4.0);
    else
      v.bound += 4 * u.bound;
    return finish({op, {}, {}, {axis, how}, {x, at, update}}, v);
  }

  bool draw_argsort(NodeId x) {
    if (shape(x).empty() || !value(x).exact) return false;
    const int64_t axis = draw_axis(x), extent = shape(x)[size_t(axis)];
    const int64_t count = random_.below(2) ? extent : random_.between(1, extent);
    return finish({Op::ArgSort, {}, {}, {axis, random_.below(2), count}, {x}},
                  {8, 0, true, false});
  }

  // ---- maps

  static bool allows_bool(Op op) {
    switch (op) {
    case Op::Not:
    case Op::And:
    case Op::Or:
    case Op::Xor:
    case Op::Equal:
    case Op::Less:
    case Op::LessEqual:
    case Op::Min:
    case Op::Max:
      return true;
    default:
      return false;
    }
  }

  bool draw_map(Op op, NodeId x) {
    DType dtype = g()[x].dtype;
    if (op == Op::Select) return draw_select(x);
    if (!map_is_defined(op, dtype)) return false;
    if (dtype == DType::Bool && !allows_bool(op)) return false;
    // Outside bool, not is the lowest bit's; nothing makes such nodes.
    if (op == Op::Not && dtype != DType::Bool) return false;
    Node node{op, {}, {}, {}, {x}};
    if (info(op).arity == 2) {
      node.inputs.push_back(draw_operand(op, x));
      if (random_.chance(25)) std::swap(node.inputs[0], node.inputs[1]);
    }
    Value a = value(node.inputs[0]);
    Value b = value(node.inputs.back());
    Value result{1, 0, a.exact && b.exact, false};
    if (!is_float(dtype)) {
      result.bound = std::ldexp(1.0, 8 * byte_size(dtype));
      return finish(std::move(node), result);
    }
    if (!float_result(op, a, b, result)) return false;
    return finish(std::move(node), result);
  }

  // Second operands that rules look for come up often enough.
  NodeId draw_operand(Op op, NodeId x) {
    DType dtype = g()[x].dtype;
    Value info = scalar_value_info(dtype);
    if (random_.chance(35)) {
      if (op == Op::Pow && is_float(dtype)) {
        static constexpr double kPowers[] = {2, 3, 0.5, -0.5, -1, 1, 0};
        return add_constant(dtype, shape(x), kPowers[random_.below(7)], info);
      }
      if (op == Op::Div && is_float(dtype)) {
        static constexpr double kDivisors[] = {4, -0.5, 3, -7};
        return add_constant(dtype, shape(x), kDivisors[random_.below(4)], info);
      }
      if (op == Op::Min || op == Op::Max) {
        double limit = op == Op::Min ? HUGE_VAL : -HUGE_VAL;
        return add_constant(dtype, shape(x), limit, {0, 0, true, is_float(dtype)});
      }
      if (op == Op::And || op == Op::Or || op == Op::Xor || op == Op::Mul)
        return add_constant(dtype, shape(x), 0, {0, 0, true, false});
    }
    if ((op == Op::And || op == Op::Or) && random_.chance(30)) {
      auto bits =
          dtype == DType::Bool ? 1 : static_cast<int64_t>(scalar_bits_int(dtype, -1));
      return record(g().intern({Op::Constant, dtype, shape(x), {bits}, {}}), info);
    }
    return random_.chance(10) ? x : draw_matching(x, dtype);
  }

  // Bounds of a map on floats; false where the operands do not suit it.
  bool float_result(Op op, const Value& a, const Value& b, Value& out) {
    bool exact = a.exact && b.exact;
    switch (op) {
    case Op::Neg:
    case Op::Abs:
      out = a;
      out.plain = false;
      return true;
    case Op::Add:
    case Op::Sub:
      out.bound = a.bound + b.bound;
      out.fraction = std::max(a.fraction, b.fraction);
      return true;
    case Op::Mul:
      out.bound = std::max(1.0, a.bound) * std::max(1.0, b.bound);
      out.fraction = a.fraction + b.fraction;
      return true;
    case Op::Min:
    case Op::Max:
      out.bound = std::max(a.bound, b.bound);
      out.fraction = std::max(a.fraction, b.fraction);
      return true;
    case Op::Sign:
    case Op::Equal:
    case Op::Less:
    case Op::LessEqual:
    case Op::IsNan:
      return exact;
    case Op::Floor:
    case Op::Ceil:
    case Op::Round:
    case Op::Trunc:
      out.bound = a.bound + 1;
      return exact;
    case Op::Exp:
    case Op::Sinh:
    case Op::Cosh:
      out = {std::exp(std::min(a.bound, 20.0)), 0, false, false};
      return a.bound <= 6;
    case Op::Sin:
    case Op::Cos:
    case Op::Tanh:
    case Op::Erf:
    case Op::Sigmoid:
    case Op::Atan:
    case Op::Asinh:
      out = {std::max(2.0, a.bound), 0, false, false};
      return a.bound <= 16;
    default:
      // Poles, jumps or NaN: only views follow. At a pole the sign of a zero matters.
      out = {kLargest, 0, false, true};
      return exact && a.plain && b.plain;
    }
  }

  bool draw_select(NodeId x) {
    NodeId condition = draw_matching(x, DType::Bool),
           other = draw_matching(x, g()[x].dtype);
    if (random_.chance(20) && g()[x].dtype == DType::Bool) {
      bool yes = random_.chance(50);
      x = add_constant(DType::Bool, shape(x), yes, {1, 0, true, false});
      other = add_constant(DType::Bool, shape(x), !yes, {1, 0, true, false});
    }
    if (random_.chance(20) &&
        finish({Op::Not, {}, {}, {}, {condition}}, value(condition)))
      condition = pool_.back();
    Value a = value(x), b = value(other);
    return finish({Op::Select, {}, {}, {}, {condition, x, other}},
                  {std::max(a.bound, b.bound), std::max(a.fraction, b.fraction),
                   a.exact && b.exact && value(condition).exact, false});
  }

  // ---- idioms: what models are made of, and what random nodes seldom meet

  // Softmax along the last axis, as it is imported.
  bool draw_softmax(NodeId x) {
    int64_t last = static_cast<int64_t>(shape(x).size()) - 1;
    if (last < 0 || !is_float(g()[x].dtype) || value(x).bound > 16) return false;
    size_t first = g().size();
    Shape full = shape(x);
    NodeId most = reduce(g(), Op::ReduceMax, x, {last});
    NodeId e = map(g(), Op::Exp, {map(g(), Op::Sub, {x, expand(g(), most, full)})});
    NodeId sum = expand(g(), reduce(g(), Op::ReduceSum, e, {last}), full);
    return finish_idiom(first, map(g(), Op::Div, {e, sum}), {16, 0, false, false});
  }

  // Records nodes that the builder made since `first`; exactly as loose as the last of
  // them.
  bool finish_idiom(size_t first, NodeId result, Value v) {
    double bits = std::log2(std::max(1.0, v.bound)) + v.fraction + 1;
    v.precision = mantissa_bits(g()[result].dtype);
    if (bits > v.precision) v.exact = false;
    Value inner = v;
    inner.ends = true; // in the pool of none, but it has a value
    values_.resize(std::max<size_t>(values_.size(), g().size()));
    for (size_t id = first; id < g().size(); ++id)
      if (g()[id].op != Op::Input) values_[id] = inner;
    if (result < first) return false;
    record(result, v);
    return true;
  }

  bool draw_idiom() {
    if (NodeId x = draw_value(); random_.chance(30) && !value(x).ends)
      return draw_softmax(x);
    static constexpr DType kFloats[] = {DType::F32, DType::F32, DType::F32, DType::F32,
                                        DType::F64, DType::F16, DType::BF16};
    DType dtype = kFloats[random_.below(7)];
    size_t first = g().size();
    auto input = [&](const Shape& shape) {
      return add_input_tensor(random_tensor(dtype, shape), scalar_value_info(dtype));
    };
    Contracted y = random_contraction({g(), random_, options_.large, dtype, input});
    return finish_idiom(first, y.node, {y.bound, y.fraction, y.exact, false});
  }

  // ---- outputs

  // Every value that no other uses, and the last one.
  void add_outputs() {
    std::vector<bool> used(g().size());
    for (NodeId id = 0; id < g().size(); ++id)
      for (NodeId input : g()[id].inputs) used[input] = true;
    for (NodeId id = 0; id < g().size(); ++id)
      if ((!used[id] && info(g()[id].op).op_class != OpClass::Source) ||
          id + 1 == g().size())
        g().add_output("y" + std::to_string(g().outputs().size()), id);
  }

  Random random_;
  RandomGraphOptions options_;
  RandomGraph out_;
  std::vector<Value> values_;
  std::vector<NodeId> pool_; // what operands are drawn from, newest last
};

} // namespace

RandomGraph random_graph(uint64_t seed, const RandomGraphOptions& options) {
  return Drawer(seed, options).run();
}

std::string compare_outputs(const RandomGraph& original, const Graph& changed) {
  Evaluated want = evaluate(original.graph, original.inputs);
  Evaluated got = evaluate(changed, original.inputs);
  if (want.failed != kNoNode || got.failed != kNoNode) return "evaluation failed";
  if (got.outputs.size() != want.outputs.size()) return "another number of outputs";
  for (size_t i = 0; i < want.outputs.size(); ++i) {
    double tolerance = original.tolerance[original.graph.outputs()[i].node];
    std::string why =
        compare_tensors(got.outputs[i], want.outputs[i], tolerance, tolerance);
    if (!why.empty()) return "output " + std::to_string(i) + ": " + why;
  }
  return "";
}

} // namespace svod::test
