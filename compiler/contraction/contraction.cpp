#include "compiler/contraction/contraction.h"

#include <algorithm>

namespace svod {

namespace {

std::nullopt_t refuse(std::string* refusal, const char* why) {
  if (refusal != nullptr) *refusal = why;
  return std::nullopt;
}

// Reads both operands over one domain, which either may cut.
class Reader {
public:
  Reader(const Graph& graph, NodeId sum) : g(graph) {
    c_.sum = sum;
    c_.product = g[sum].inputs[0];
    c_.dtype = g[sum].dtype;
    c_.axes = domain_of(g[c_.product].shape);
  }

  Contraction run() {
    for (size_t input : {0, 1}) read(input);
    for (Operand& operand : c_.operands) find_repeats(operand);
    sort_axes();
    for (size_t operand : {0, 1}) find_windows(operand);
    if (is_turned()) turn();
    return std::move(c_);
  }

private:
  void read(size_t input);
  bool repeats_below(const Operand& operand, size_t from) const;
  void find_repeats(Operand& operand) const;
  bool is_summed(size_t axis) const {
    return std::ranges::count(g[c_.sum].payload, int64_t(c_.axes[axis].whole)) != 0;
  }
  void sort_axes();
  void find_windows(size_t operand);
  void add_window(size_t operand, const OperandView& view, size_t axis);
  bool is_turned() const;
  void turn();

  const Graph& g;
  Contraction c_;
};

void Reader::read(size_t input) {
  Operand& operand = c_.operands[input];
  NodeId n = g[c_.product].inputs[input];
  operand.input = input;
  operand.known = !g.depends_on_input(n);
  operand.views.push_back({n, whole_domain(c_.axes)});
  while (is_view(g[n].op) || widens_where_read(g, n)) {
    std::optional<ViewMap> map = operand.views.back().map;
    std::vector<AxisCut> cuts;
    if (map && is_view(g[n].op)) map = map_below(g, n, std::move(*map), c_.axes, cuts);
    for (const AxisCut& cut : cuts)
      for (Operand& each : c_.operands)
        for (OperandView& view : each.views)
          if (view.map) cut_axis(cut, *view.map);
    n = g[n].inputs[0];
    operand.views.push_back({n, std::move(map)});
  }
}

// Whether a view below views[from] repeats elements of the source. Where the map from the
// product ends, another one begins.
bool Reader::repeats_below(const Operand& operand, size_t from) const {
  Domain domain;
  std::optional<ViewMap> map;
  for (size_t i = from; i + 1 < operand.views.size(); ++i) {
    const NodeId n = operand.views[i].node;
    if (!map) {
      domain = domain_of(g[n].shape);
      map = whole_domain(domain);
    }
    std::vector<AxisCut> cuts;
    if (is_view(g[n].op)) map = map_below(g, n, std::move(*map), domain, cuts);
    if (!map) continue; // a reshape, which repeats nothing
    for (size_t axis = 0; axis < domain.size(); ++axis)
      if (domain[axis].extent > 1 && !varies_along(*map, axis)) return true;
    if (!reads_apart(*map, domain)) return true;
  }
  return false;
}

void Reader::find_repeats(Operand& operand) const {
  operand.repeats = repeats_below(operand, 0);
  size_t end = 0;
  for (; end < operand.views.size() && operand.views[end].map; ++end)
    if (!reads_apart(*operand.views[end].map, c_.axes)) operand.own_repeats = true;
  if (repeats_below(operand, end)) operand.own_repeats = true;
}

void Reader::sort_axes() {
  for (size_t axis = 0; axis < c_.axes.size(); ++axis) {
    if (c_.axes[axis].extent == 1) continue;
    const bool left = c_.left().varies(axis), right = c_.right().varies(axis);
    if (is_summed(axis))
      c_.reduced.push_back(axis);
    else if (left == right)
      c_.batch.push_back(axis);
    else
      (left ? c_.rows : c_.columns).push_back(axis);
  }
}

// A coordinate that two axes step along together, one of them the operand's own and one
// summed. The pads are those below that such a coordinate may leave.
void Reader::add_window(size_t operand, const OperandView& view, size_t axis) {
  const Coordinate& at = view.map->at[axis];
  const std::vector<size_t>& kept = operand == 0 ? c_.rows : c_.columns;
  std::vector<size_t> positions, taps;
  for (size_t i = 0; i < at.steps.size(); ++i) {
    if (at.steps[i] == 0) continue;
    if (std::ranges::count(kept, i) != 0)
      positions.push_back(i);
    else if (std::ranges::count(c_.reduced, i) != 0)
      taps.push_back(i);
    else
      return;
  }
  if (positions.size() != 1 || taps.size() != 1) return;
  AxisWindow window{operand,
                    positions[0],
                    taps[0],
                    at.steps[positions[0]],
                    at.steps[taps[0]],
                    g[view.node].shape[axis],
                    0,
                    0};
  const bool seen = std::ranges::any_of(c_.windows, [&](const AxisWindow& w) {
    return w.position == window.position || w.tap == window.tap;
  });
  if (seen || window.stride <= 0 || window.dilation <= 0) return;
  for (const Guard& guard : c_.operands[operand].deepest().map->guards) {
    if (guard.at.steps != at.steps) continue;
    const CoordinateRange range = range_of(guard.at, c_.axes);
    window.extent = guard.extent;
    window.low = std::max<int64_t>(0, -range.low);
    window.high = std::max<int64_t>(0, range.high - guard.extent + 1);
    break;
  }
  c_.windows.push_back(window);
}

void Reader::find_windows(size_t operand) {
  for (const OperandView& view : c_.operands[operand].views)
    for (size_t axis = 0; view.map && axis < view.map->at.size(); ++axis)
      add_window(operand, view, axis);
  std::ranges::sort(c_.windows, {}, [](const AxisWindow& w) { return w.tap; });
}

// Whether the operand that the product names first is the right one.
bool Reader::is_turned() const {
  const auto& [first, second] = c_.operands;
  if (first.known != second.known) return first.known;
  std::array<bool, 2> windows = {};
  for (const AxisWindow& w : c_.windows) windows[w.operand] = true;
  if (windows[0] != windows[1]) return windows[1];
  return !c_.rows.empty() && (c_.columns.empty() || c_.columns[0] < c_.rows[0]);
}

void Reader::turn() {
  std::swap(c_.operands[0], c_.operands[1]);
  std::swap(c_.rows, c_.columns);
  for (AxisWindow& w : c_.windows) w.operand = 1 - w.operand;
}

} // namespace

bool widens_where_read(const Graph& g, NodeId n) {
  if (g[n].op != Op::Cast) return false;
  const DType from = g[g[n].inputs[0]].dtype;
  if (g[n].dtype == DType::I32) return is_byte(from);
  return g.keeps_halves() && g[n].dtype == DType::F32 && is_half(from);
}

const OperandView& Operand::deepest() const {
  size_t i = 0;
  while (i + 1 < views.size() && views[i + 1].map) ++i;
  return views[i];
}

int64_t Contraction::count(const std::vector<size_t>& some) const {
  int64_t product = 1;
  for (size_t axis : some) product *= axes[axis].extent;
  return product;
}

std::optional<Contraction> read_sum_of_products(const Graph& g, NodeId sum,
                                                std::string* refusal) {
  if (g[sum].op != Op::ReduceSum) return refuse(refusal, "it is no sum over axes");
  const Node& product = g[g[sum].inputs[0]];
  if (product.op != Op::Mul) return refuse(refusal, "what is summed up is no product");
  if (element_count(product.shape) == 0) return refuse(refusal, "it has no products");
  return Reader(g, sum).run();
}

std::optional<Contraction> read_contraction(const Graph& g, NodeId sum,
                                            std::string* refusal) {
  std::optional<Contraction> c = read_sum_of_products(g, sum, refusal);
  if (c && !c->reuses())
    return refuse(refusal, "each element of both operands is in one product only");
  return c;
}

bool is_contraction(const Graph& g, NodeId sum) {
  return read_contraction(g, sum).has_value();
}

bool OwnAxes::varies_along(int64_t axis) const {
  return std::ranges::find(axes, axis) != axes.end();
}

std::optional<std::vector<int64_t>> whole_axes(const Graph& g, const Contraction& c,
                                               const OperandView& view) {
  if (!view.map || !view.map->guards.empty()) return std::nullopt;
  std::vector<int64_t> out;
  const Shape& shape = g[view.node].shape;
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto run = run_of(view.map->at[i], shape[i], c.axes);
    if (!run) return std::nullopt;
    if (run->empty()) {
      out.push_back(-1);
      continue;
    }
    const size_t whole = c.axes[run->front()].whole;
    const bool one = std::ranges::all_of(*run, [&](size_t axis) {
      return c.axes[axis].whole == whole &&
             c.axes[axis].stride == view.map->at[i].steps[axis];
    });
    if (!one || shape[i] != g[c.product].shape[whole]) return std::nullopt;
    out.push_back(static_cast<int64_t>(whole));
  }
  return out;
}

OwnAxes own_axes(const Graph& g, const Contraction& c, const Operand& operand) {
  OwnAxes own;
  for (const OperandView& view : operand.views) {
    const auto axes = whole_axes(g, c, view);
    if (!axes) break;
    std::vector<int64_t> present = *axes;
    std::erase(present, -1);
    if (!std::ranges::is_sorted(present)) break;
    own = {view.node, *axes};
  }
  return own;
}

} // namespace svod
