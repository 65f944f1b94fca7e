// Rows that are no whole vectors begin anywhere in a cache line, and each vector of them
// lies in two. With room for whole ones they do not: a block as wide as a vector along
// the innermost axis changes nothing but where the next row begins. The scores of 1500
// tokens went from 112 to 116 GFLOP/s where all is in the first cache.
#include "compiler/select/whole_rows.h"

#include <algorithm>
#include <set>

namespace svod::select {

// Rows shorter than this many vectors would waste too much room.
static constexpr int64_t kFewestVectors = 8;

static bool keeps_axes(const Shape& from, const Shape& to) {
  Shape a = from, b = to;
  std::erase(a, 1);
  std::erase(b, 1);
  return a == b;
}

// Whether all that reads the stored node does so axis by axis.
static bool read_as_rows(const Graph& g, const Grouping& grouping, const Users& users,
                         NodeId stored) {
  std::vector<NodeId> open = {stored};
  std::set<NodeId> seen;
  while (!open.empty()) {
    const NodeId n = open.back();
    open.pop_back();
    if (!seen.insert(n).second) continue;
    for (NodeId user : users[n]) {
      const Op op = g[user].op;
      if (is_reduce(op)) continue;
      const bool same = op == Op::Reshape
                            ? keeps_axes(g[n].shape, g[user].shape)
                            : op == Op::Expand || op == Op::Permute || is_map(op);
      if (!same) return false;
      if (!grouping.stored[user]) open.push_back(user);
    }
  }
  return true;
}

std::optional<Layout> whole_rows(const Graph& g, const Grouping& grouping,
                                 const Users& users, const Group& group, int lanes) {
  const NodeId n = group.target;
  const bool contracts = group.base != kNoNode && is_reduce(g[group.base].op) &&
                         is_contraction(g, group.base);
  if (n != group.root || (!contracts && group.rows.empty())) return std::nullopt;
  const Shape& shape = g[n].shape;
  auto last = static_cast<int64_t>(shape.size()) - 1;
  while (last > 0 && shape[last] == 1) --last;
  if (last <= 0 || shape[last] < kFewestVectors * lanes || shape[last] % lanes == 0 ||
      !read_as_rows(g, grouping, users, n))
    return std::nullopt;
  return blocked(shape.size(), last, lanes);
}

} // namespace svod::select
