#include "compiler/select/read_as.h"

#include <optional>

namespace svod::select {

// The dimensions of `flat` that are several of `shape`: their extents, in order.
static std::map<int64_t, Shape> several_of(const Shape& flat, const Shape& shape) {
  std::map<int64_t, Shape> out;
  size_t d = 0;
  for (size_t axis = 0; axis < flat.size(); ++axis) {
    Shape extents;
    int64_t product = 1;
    for (; d < shape.size() && product * shape[d] <= flat[axis]; product *= shape[d++])
      if (shape[d] != 1) extents.push_back(shape[d]);
    if (product != flat[axis]) return {};
    if (extents.size() > 1) out[static_cast<int64_t>(axis)] = extents;
  }
  return out;
}

// Whether each element of the result is computed by itself.
static bool by_position(const Group& group, Op op) {
  return group.rows.empty() && (is_map(op) || is_view(op) || is_reduce(op) ||
                                op == Op::Cast || op == Op::Gather);
}

std::map<int64_t, Shape> read_as(const Graph& g, const Users& users, const Group& group) {
  const NodeId n = group.root;
  if (group.target != n || !by_position(group, g[n].op)) return {};
  std::optional<std::map<int64_t, Shape>> out;
  for (NodeId user : users[n]) {
    if (g[user].op != Op::Reshape) return {};
    std::map<int64_t, Shape> own = several_of(g[n].shape, g[user].shape);
    own.erase(static_cast<int64_t>(g[n].shape.size()) - 1);
    if (out && *out != own) return {};
    out = std::move(own);
  }
  return out.value_or(std::map<int64_t, Shape>());
}

} // namespace svod::select
