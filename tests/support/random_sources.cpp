// Inputs, weights and constants, and which value comes next.
#include "tests/support/random_drawer.h"

#include "compiler/ir/build.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace svod::test {

Shape Drawer::random_shape() {
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

double Drawer::random_scalar(DType dtype) {
  if (dtype == DType::Bool) return static_cast<double>(random_.below(2));
  int64_t quarter = random_.between(-12, 12);
  if (is_float(dtype)) return static_cast<double>(quarter) / 4;
  return static_cast<double>(info(dtype).kind == DTypeKind::Uint ? std::abs(quarter)
                                                                 : quarter);
}

Value Drawer::scalar_value_info(DType dtype) {
  return {is_float(dtype) ? 3.0 : 12.0, is_float(dtype) ? 2 : 0, true, false, true};
}

Tensor Drawer::random_tensor(DType dtype, const Shape& shape) {
  std::vector<double> values(static_cast<size_t>(element_count(shape)));
  for (double& v : values) v = random_scalar(dtype);
  return make_tensor(dtype, shape, values);
}

NodeId Drawer::record(NodeId id, Value value) {
  values_.resize(std::max<size_t>(values_.size(), g().size()));
  values_[id] = value;
  if (std::find(pool_.begin(), pool_.end(), id) == pool_.end()) pool_.push_back(id);
  return id;
}

NodeId Drawer::add_input_tensor(Tensor tensor, Value value) {
  std::string name = "x" + std::to_string(out_.inputs.size());
  NodeId id = g().add_input(name, tensor.dtype, tensor.shape);
  out_.inputs.push_back(std::move(tensor));
  return record(id, value);
}

NodeId Drawer::add_input(DType dtype) {
  return add_input_tensor(random_tensor(dtype, random_shape()), scalar_value_info(dtype));
}

NodeId Drawer::add_known(Tensor tensor, Value value) {
  uint32_t blob = g().add_blob(std::move(tensor.bytes));
  return record(g().intern({Op::Weight, tensor.dtype, tensor.shape, {blob}, {}}), value);
}

NodeId Drawer::add_constant(DType dtype, const Shape& shape, double scalar, Value value) {
  auto bits = static_cast<int64_t>(scalar_bits(dtype, scalar));
  return record(g().intern({Op::Constant, dtype, shape, {bits}, {}}), value);
}

NodeId Drawer::draw_known(DType dtype, const Shape& shape) {
  Value info = scalar_value_info(dtype);
  if (random_.chance(40)) return add_constant(dtype, shape, random_scalar(dtype), info);
  Shape small = shape;
  for (int64_t& extent : small)
    if (random_.chance(50)) extent = 1;
  NodeId id = add_known(random_tensor(dtype, small), info);
  if (small == shape) return id;
  return record(g().intern({Op::Expand, dtype, shape, {}, {id}}), info);
}

NodeId Drawer::draw_source(Op op) {
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

NodeId Drawer::draw_value() {
  size_t size = pool_.size();
  if (random_.chance(60))
    return pool_[size - 1 - random_.below(std::min<int64_t>(size, 4))];
  return pool_[static_cast<size_t>(random_.below(static_cast<int64_t>(size)))];
}

NodeId Drawer::draw_matching(NodeId like, DType dtype) {
  if (random_.chance(35)) return draw_known(dtype, shape(like));
  std::vector<NodeId> found;
  for (NodeId id : pool_)
    if (g()[id].dtype == dtype && shape(id) == shape(like) && !value(id).ends)
      found.push_back(id);
  if (!found.empty()) return found[static_cast<size_t>(random_.below(found.size()))];
  if (random_.chance(50))
    return add_input_tensor(random_tensor(dtype, shape(like)), scalar_value_info(dtype));
  return draw_known(dtype, shape(like));
}

int64_t Drawer::draw_axis(NodeId x) {
  return random_.below(static_cast<int64_t>(shape(x).size()));
}

NodeId Drawer::draw_index(const Shape& shape, int64_t extent) {
  DType dtype = random_.chance(50) ? DType::I64 : DType::I32;
  std::vector<double> indices(static_cast<size_t>(element_count(shape)));
  for (double& index : indices) index = static_cast<double>(random_.below(extent));
  Value info{8, 0, true, false};
  Tensor tensor = make_tensor(dtype, shape, indices);
  return random_.chance(50) ? add_known(std::move(tensor), info)
                            : add_input_tensor(std::move(tensor), info);
}

} // namespace svod::test
