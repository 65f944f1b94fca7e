// A product of two tensors reads each of them once for every tile of the other's rows or
// columns. Where a factor exceeds the second cache, or its rows lie at distances that
// share a few sets of it, each of these sweeps comes from beyond: lines from as many
// pages as the sum has steps. A copy in the order of the sweeps costs about as much as
// three of them, and makes of all others one after the other what a panel of weights is:
// read once from afar, and then from the second cache. (1024 x 1024 x 1024 on a Golden
// Cove core: 48 ms as it lies, 20 in panels.)
#include "compiler/select/panels.h"

#include "compiler/kernel/stage_work.h"

#include <algorithm>
#include <numeric>

namespace svod::select {

// Rows or vectors of columns that pass by in one sweep, as a register tile has them: of
// 16 registers and of 32 it has six rows, and two vectors at least.
static constexpr int64_t kRowsOfSweep = 6, kVectorsOfSweep = 2;
// A copy is read, written and read again. It has to save as much as it costs.
static constexpr int64_t kSweepsOfCopy = 3, kWorthCopy = 2;

namespace {

class PanelFinder {
public:
  PanelFinder(const Graph& graph, const Grouping& grouping, const Users& users,
              const ScheduledKernel& kernel, const Contraction& c, const Machine& machine,
              int lanes)
      : g(graph), grouping_(grouping), users_(users), k_(kernel), c_(c),
        machine_(machine), lanes_(lanes), fixed_(fixed_layouts(graph)) {}
  std::map<NodeId, Layout> run();
  std::map<NodeId, Layout> filters();

private:
  std::optional<OwnAxes> copied(const Operand& operand) const;
  bool is_reduced(int64_t axis) const;
  int64_t positions(const OwnAxes& own, const OwnAxes& other) const;
  std::optional<int64_t> distance(size_t input) const;
  bool is_far(const OwnAxes& own, const OwnAxes& other, int64_t step) const;
  Layout ordered(const OwnAxes& own, const OwnAxes& other, bool panels,
                 int64_t column) const;

  const Graph& g;
  const Grouping& grouping_;
  const Users& users_;
  const ScheduledKernel& k_;
  const Contraction& c_;
  const Machine& machine_;
  int lanes_;
  std::set<NodeId> fixed_;
};

bool PanelFinder::is_reduced(int64_t axis) const {
  return std::ranges::count(g[c_.sum].payload, axis) != 0;
}

// The value between the operand's source and the product that can be stored in an order
// of its own: a stored one that nobody else reads, else a view of it, which is a copy.
std::optional<OwnAxes> PanelFinder::copied(const Operand& operand) const {
  const OwnAxes own = own_axes(g, c_, operand);
  const int64_t count = element_count(g[own.node].shape);
  std::optional<OwnAxes> found;
  // From the product down.
  for (const OperandView& view : operand.views) {
    const NodeId n = view.node;
    if (element_count(g[n].shape) != count || fixed_.count(n) != 0) continue;
    const auto axes = whole_axes(g, c_, view);
    if (!axes) break;
    const bool shared = grouping_.stored[n] && users_[n].size() > 1;
    if (!shared) found = OwnAxes{n, *axes};
    if (n == own.node || grouping_.stored[n]) break;
  }
  return found;
}

// Of the product, along axes that only `own` varies along.
int64_t PanelFinder::positions(const OwnAxes& own, const OwnAxes& other) const {
  int64_t count = 1;
  const Shape& domain = g[c_.product].shape;
  for (int64_t a = 0; a < std::ssize(domain); ++a)
    if (own.varies_along(a) && !other.varies_along(a))
      count *= domain[static_cast<size_t>(a)];
  return count;
}

// Elements between two steps of the kernel's sum, in what it reads for the product's
// input; nothing where no distance is the same for all.
std::optional<int64_t> PanelFinder::distance(size_t input) const {
  const std::vector<ExprId> loads =
      loads_below(k_, k_.exprs[k_.stages[0].value].inputs[input]);
  if (loads.size() != 1) return std::nullopt;
  std::optional<int64_t> least;
  for (AxisId axis : k_.loops.inner[0]) {
    int64_t step = 0;
    if (k_.indices.extent(axis) == 1) continue;
    if (!k_.indices.affine_in(k_.exprs[loads[0]].index, axis, step) || step <= 0)
      return std::nullopt;
    least = least ? std::min(*least, step) : step;
  }
  return least;
}

// Whether the second cache does not hold the factor from one sweep to the next.
bool PanelFinder::is_far(const OwnAxes& own, const OwnAxes& other, int64_t step) const {
  const Cache& cache = machine_.second;
  if (cache.bytes == 0 || cache.ways == 0) return false;
  const int64_t size = byte_size(c_.dtype), terms = c_.terms();
  const int64_t bytes = positions(own, other) * terms * size;
  const int64_t apart = std::gcd(step * size, cache.set_bytes());
  const int64_t places = cache.set_bytes() / std::max(apart, cache.line);
  return bytes > cache.bytes || terms > places * cache.ways;
}

// What both factors have comes first, then the positions of `own`, then the steps of the
// sum; of panels the columns of one vector are behind these.
Layout PanelFinder::ordered(const OwnAxes& own, const OwnAxes& other, bool panels,
                            int64_t column) const {
  const size_t rank = own.axes.size();
  Layout layout = row_major(rank);
  std::stable_sort(layout.order.begin(), layout.order.end(), [&](int64_t x, int64_t y) {
    auto place = [&](int64_t axis) {
      const int64_t d = own.axes[static_cast<size_t>(axis)];
      return d < 0 || (other.varies_along(d) && !is_reduced(d)) ? 0
             : is_reduced(d)                                    ? 2
                                                                : 1;
    };
    return place(x) < place(y);
  });
  if (!panels) return layout;
  const auto at = std::ranges::find(own.axes, column);
  layout.block_axis = at - own.axes.begin();
  layout.block = lanes_;
  return layout;
}

// The filters of a convolution that the run computes or is given: each passes by all
// positions, while the windows of as many positions are several times the picture. So the
// channels of the result are the lanes, and what is copied are the filters. (32 channels
// of 80 x 80, 3x3, on a Golden Cove core: 3772 us by windows that were stored, 761.)
std::map<NodeId, Layout> PanelFinder::filters() {
  const size_t i = 1 - c_.operands[c_.windows.front().operand].input;
  const OwnAxes own = own_axes(g, c_, c_.of_input(i));
  const OwnAxes other = own_axes(g, c_, c_.of_input(1 - i));
  const Shape& result = g[c_.sum].shape;
  std::optional<int64_t> channels;
  for (int64_t a = 0; a < std::ssize(result); ++a)
    if (own.varies_along(a) && !other.varies_along(a) && !is_reduced(a) &&
        (!channels || result[static_cast<size_t>(a)] > result[*channels]))
      channels = a;
  if (!channels || 2 * result[static_cast<size_t>(*channels)] < lanes_ ||
      positions(other, own) < kWorthCopy * kSweepsOfCopy * kRowsOfSweep)
    return {};
  const std::optional<int64_t> step = distance(i);
  const std::optional<OwnAxes> stored = copied(c_.of_input(i));
  if (!step || step == lanes_ || !stored ||
      std::ranges::count(stored->axes, *channels) == 0)
    return {};
  return {{stored->node, ordered(*stored, other, true, *channels)}};
}

std::map<NodeId, Layout> PanelFinder::run() {
  std::map<NodeId, Layout> out;
  const Shape& result = g[c_.sum].shape;
  int64_t column = std::ssize(result) - 1;
  while (column > 0 && result[static_cast<size_t>(column)] == 1) --column;
  for (size_t i = 0; i < 2; ++i) {
    const OwnAxes own = own_axes(g, c_, c_.of_input(i));
    const OwnAxes other = own_axes(g, c_, c_.of_input(1 - i));
    if (own.varies_along(column) == other.varies_along(column)) return {};
    const bool panels = own.varies_along(column);
    const int64_t swept =
        positions(other, own) / (panels ? kRowsOfSweep : kVectorsOfSweep * lanes_);
    const std::optional<int64_t> step = distance(i);
    const bool lies_well = step == (panels ? lanes_ : 1);
    if (!step || lies_well || swept < kWorthCopy * kSweepsOfCopy ||
        !is_far(own, other, *step))
      continue;
    const std::optional<OwnAxes> stored = copied(c_.of_input(i));
    if (!stored) continue;
    if (std::ranges::count(stored->axes, column) == 0 && panels) continue;
    out.emplace(stored->node, ordered(*stored, other, panels, column));
  }
  return out;
}

} // namespace

std::map<NodeId, Layout> panels_of(const Graph& g, const Grouping& grouping,
                                   const Users& users, const Group& group,
                                   const ScheduledKernel& kernel, const Machine& machine,
                                   int lanes) {
  if (group.base == kNoNode || group.nested != kNoNode || !group.rows.empty()) return {};
  const std::optional<Contraction> c = read_contraction(g, group.base);
  if (!c || !is_float(c->dtype) || c->left().known || c->right().known) return {};
  const Expr& value = kernel.exprs[kernel.stages[0].value];
  if (value.kind != Expr::Kind::Map || value.op != Op::Mul) return {};
  PanelFinder finder(g, grouping, users, kernel, *c, machine, lanes);
  return c->windows.empty() ? finder.run() : finder.filters();
}

} // namespace svod::select
