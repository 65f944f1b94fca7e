#include "compiler/select/forms/reading.h"

#include "compiler/ir/build.h"
#include "compiler/ir/evaluate.h"

#include <algorithm>
#include <cstring>

namespace svod::select {

Reading reading(NodeId node, const std::vector<size_t>& have, Shape extents,
                const std::vector<size_t>& want, Shape shape) {
  Reading out{node, std::move(extents), {}, std::move(shape)};
  for (size_t name : want)
    out.order.push_back(std::ranges::find(have, name) - have.begin());
  if (std::ranges::is_sorted(out.order)) out.order.clear();
  return out;
}

// The axes of the contraction that the view's axes run through, outermost first. nullopt:
// the view repeats elements of the operand, pads it or adds two axes to one coordinate.
static std::optional<std::vector<size_t>> runs_of(const Graph& g, const Contraction& c,
                                                  const Operand& operand,
                                                  const OperandView& view) {
  if (!view.map || !view.map->guards.empty()) return std::nullopt;
  for (size_t axis = 0; axis < c.axes.size(); ++axis)
    if (varies_along(*view.map, axis) != operand.varies(axis)) return std::nullopt;
  std::vector<size_t> all;
  for (size_t i = 0; i < view.map->at.size(); ++i) {
    const auto run = run_of(view.map->at[i], g[view.node].shape[i], c.axes);
    if (!run) return std::nullopt;
    all.insert(all.end(), run->begin(), run->end());
  }
  return all;
}

static Shape extents_of(const Contraction& c, const std::vector<size_t>& axes) {
  Shape extents;
  for (size_t axis : axes) extents.push_back(c.axes[axis].extent);
  return extents;
}

std::optional<Reading> operand_in_order(const Graph& g, const Contraction& c,
                                        const Operand& operand,
                                        const std::vector<size_t>& want, Shape shape) {
  std::optional<Reading> best;
  int least = 3;
  for (const OperandView& view : operand.views) {
    const auto have = runs_of(g, c, operand, view);
    if (!have || !std::ranges::is_permutation(*have, want)) continue;
    Reading found = reading(view.node, *have, extents_of(c, *have), want, shape);
    const int work = !found.order.empty() ? 2 : g[view.node].shape != shape ? 1 : 0;
    if (work >= least) continue;
    least = work;
    best = std::move(found);
  }
  return best;
}

Reading result_in_order(const Graph& g, const Contraction& c,
                        const std::vector<size_t>& have) {
  std::vector<size_t> want = have;
  std::ranges::sort(want);
  return reading(kNoNode, have, extents_of(c, have), want, g[c.sum].shape);
}

NodeId arranged(Graph& g, NodeId now, const Reading& reading) {
  if (!reading.order.empty())
    now = permute(g, reshape(g, now, reading.cut), reading.order);
  return reshape(g, now, reading.shape);
}

std::vector<float> known_values(const Graph& g, const Reading& reading) {
  Tensor values = evaluate_unnoted(g, reading.node);
  if (!reading.order.empty()) {
    Graph moved;
    const uint32_t blob = moved.add_blob(std::move(values.bytes));
    const NodeId node = weight(moved, values.dtype, g[reading.node].shape, blob);
    values = evaluate_known(moved, arranged(moved, node, reading));
  }
  std::vector<float> out(values.bytes.size() / sizeof(float));
  std::memcpy(out.data(), values.bytes.data(), values.bytes.size());
  return out;
}

} // namespace svod::select
