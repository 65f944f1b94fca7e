// Nodes that compute nothing: casts, views, concats, gathers, scatters and sorts.
#include "tests/support/random_drawer.h"

#include "compiler/ir/build.h"

#include <algorithm>
#include <cmath>

namespace svod::test {

bool Drawer::draw_convert(Op op, NodeId x) {
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

bool Drawer::draw_view(Op op, NodeId x) {
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
      std::swap(node.payload[i - 1], node.payload[static_cast<size_t>(random_.below(i))]);
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
    node.payload.push_back(static_cast<int64_t>(
        scalar_bits(g()[x].dtype, random_.chance(60) ? 0 : random_scalar(g()[x].dtype))));
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

Shape Drawer::regrouped(Shape shape) {
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

bool Drawer::draw_slice(Node node, Value v) {
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

bool Drawer::draw_cut_concat(NodeId x) {
  Shape whole = shape(x);
  size_t axis = static_cast<size_t>(draw_axis(x));
  if (whole[axis] < 2) return false;
  int64_t at = random_.between(1, whole[axis] - 1);
  std::vector<NodeId> parts;
  for (int part = 0; part < 2; ++part) {
    Node node{Op::Slice, {}, whole, Payload(2 * whole.size(), 0), {x}};
    std::fill(node.payload.begin() + std::ptrdiff_t(whole.size()), node.payload.end(), 1);
    node.shape[axis] = part ? whole[axis] - at : at;
    node.payload[axis] = part ? at : 0;
    if (!finish(std::move(node), value(x))) return false;
    parts.push_back(pool_.back());
  }
  if (random_.chance(50)) std::swap(parts[0], parts[1]);
  return finish({Op::Concat, {}, {}, {int64_t(axis)}, parts}, value(x));
}

bool Drawer::draw_concat(NodeId x) {
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

bool Drawer::draw_descend(NodeId x) {
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

bool Drawer::draw_indexed(Op op, NodeId x) {
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
  v.fraction = how == 2 ? v.fraction + 4 * u.fraction : std::max(v.fraction, u.fraction);
  if (how == 2) // up to four updates meet at one element
    v.bound = std::max(1.0, v.bound) * std::pow(std::max(1.0, u.bound), 4.0);
  else
    v.bound += 4 * u.bound;
  return finish({op, {}, {}, {axis, how}, {x, at, update}}, v);
}

bool Drawer::draw_argsort(NodeId x) {
  if (shape(x).empty() || !value(x).exact) return false;
  const int64_t axis = draw_axis(x), extent = shape(x)[size_t(axis)];
  const int64_t count = random_.below(2) ? extent : random_.between(1, extent);
  return finish({Op::ArgSort, {}, {}, {axis, random_.below(2), count}, {x}},
                {8, 0, true, false});
}

} // namespace svod::test
