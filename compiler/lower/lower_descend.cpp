// Walks down decision trees. Tables are weights, so what a walk may touch is checked
// here, once, and kernels walk without looking.
#include "compiler/lower/lowering.h"
#include "compiler/support/check.h"

#include <cstring>
#include <limits>

namespace svod::lower {

// Whether every step from every node stays among the nodes and the columns. The value of
// a last node is the largest there is: no key goes beyond it.
template <class K>
static bool is_closed(const Tensor& nodes, const Tensor& roots, int64_t columns) {
  constexpr int kHalf = 4 * sizeof(K);
  auto count = static_cast<uint64_t>(nodes.shape[0]);
  for (uint64_t i = 0; i < count; ++i) {
    K pair[2];
    std::memcpy(pair, nodes.bytes.data() + i * sizeof pair, sizeof pair);
    uint64_t link = pair[1];
    uint64_t column = link & ((uint64_t(1) << kHalf) - 1), next = i + (link >> kHalf);
    bool stays = pair[0] == std::numeric_limits<K>::max();
    if (column >= static_cast<uint64_t>(columns)) return false;
    if (next >= count || (!stays && next + 1 >= count)) return false;
  }
  for (size_t i = 0; i < roots.bytes.size(); i += sizeof(int64_t)) {
    uint64_t root = 0;
    std::memcpy(&root, roots.bytes.data() + i, sizeof root);
    if (root >= count) return false;
  }
  return true;
}

ExprId Lowering::descend(NodeId n, const At& at) {
  const Node& node = g[n];
  NodeId key = node.inputs[0], nodes = node.inputs[1], roots = node.inputs[2];
  const Grouping& grouping = s_.grouping;
  SVOD_CHECK(grouping.stored[key] && grouping.known[nodes] && grouping.known[roots])
      << "node " << n << " walks down trees that are not known";
  Tensor table = evaluate_known(g, nodes), starts = evaluate_known(g, roots);
  bool closed = node.dtype == DType::U64
                    ? is_closed<uint64_t>(table, starts, g[key].shape[1])
                    : is_closed<uint32_t>(table, starts, g[key].shape[1]);
  SVOD_CHECK(closed) << "node " << n << " walks out of its trees";
  BufferId id = s_.buffer_of.at(key);
  const Buffer b = s_.buffers[id];
  SVOD_CHECK(b.layout.block_axis < 0) << "keys in blocks";
  Expr e{Expr::Kind::Descend, node.dtype};
  e.inputs = {value(roots, {at[1]})};
  e.argument = argument(Argument::Kind::Buffer, id, b.dtype, false);
  e.table = dense_weight(nodes);
  e.limit = node.payload[0];
  At first = {at[0], IndexPool::constant(0)}, second = {at[0], IndexPool::constant(1)};
  e.index = layout_offset(pool(), b.layout, b.shape, first);
  Index next = layout_offset(pool(), b.layout, b.shape, second);
  e.stride = IndexPool::add(next, IndexPool::scale(e.index, -1)).constant;
  e.bounds = overflow({at[0]}, {b.shape[0]});
  e.bounds.insert(e.bounds.end(), conditions_.begin(), conditions_.end());
  return k().add(std::move(e));
}

} // namespace svod::lower
