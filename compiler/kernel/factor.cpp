// A factor is repeated by expands and unit axes until it has the shape of the product;
// the walk down keeps, for each of its own axes, which axis of the product it is.
#include "compiler/kernel/factor.h"

#include <algorithm>

namespace svod {

bool widens_bytes(const Graph& g, NodeId n) {
  if (g[n].op != Op::Cast || g[n].dtype != DType::I32) return false;
  DType from = g[g[n].inputs[0]].dtype;
  return from == DType::U8 || from == DType::I8;
}

bool Factor::varies_along(int64_t axis) const {
  return std::find(domain_axis.begin(), domain_axis.end(), axis) != domain_axis.end();
}

Factor factor_of(const Graph& g, NodeId product, size_t which) {
  Factor f{g[product].inputs[which], {}};
  std::vector<int64_t> where(g[product].shape.size());
  for (size_t i = 0; i < where.size(); ++i) where[i] = static_cast<int64_t>(i);
  while (true) {
    const Node& n = g[f.node];
    const Shape& shape = n.shape;
    if (n.op == Op::Expand) {
      const Shape& from = g[n.inputs[0]].shape;
      for (size_t i = 0; i < shape.size(); ++i)
        if (from[i] == 1) where[i] = -1;
      f.node = n.inputs[0];
      continue;
    }
    if (widens_bytes(g, f.node)) {
      f.node = n.inputs[0];
      continue;
    }
    if (n.op != Op::Reshape) break;
    // Only unit axes are added: the others keep their order.
    const Shape& from = g[n.inputs[0]].shape;
    Shape a, b;
    for (int64_t e : shape)
      if (e != 1) a.push_back(e);
    for (int64_t e : from)
      if (e != 1) b.push_back(e);
    if (a != b) break;
    std::vector<int64_t> kept;
    for (size_t i = 0; i < shape.size(); ++i)
      if (shape[i] != 1) kept.push_back(where[i]);
    where.assign(from.size(), -1);
    size_t next = 0;
    for (size_t i = 0; i < from.size(); ++i)
      if (from[i] != 1) where[i] = kept[next++];
    f.node = n.inputs[0];
  }
  f.domain_axis = std::move(where);
  return f;
}

} // namespace svod
