#include "compiler/select/forms/merge_groups.h"

#include "compiler/ir/build.h"

#include <algorithm>
#include <numeric>

namespace svod::select {

// More products than so many times those of the groups take longer than moving data.
static constexpr int64_t kMostTogether = 8;
// Groups of a few vectors that begin within one have their windows stored and their
// results scattered (eight groups of 24 channels, 3x3, 28x28, AVX2 of Zen 3: 4.5 ms a
// layer, merged by two 1.5).
static constexpr int64_t kMostOfWideOnes = 2, kFewVectors = 4;
// Where groups are no multiple of those that are one, the last ones get groups of zeros,
// at most one for so many that there are.
static constexpr int64_t kMostLacking = 3;

// Groups as many as are several of m.
static int64_t whole_groups(int64_t groups, int64_t m) {
  return (groups + m - 1) / m * m;
}

int64_t groups_together(int64_t groups, int64_t inputs, int64_t outputs, int64_t lanes,
                        bool windows) {
  if (groups == 1 || inputs == 1 || outputs % lanes == 0) return 1;
  const bool few = windows && outputs < kFewVectors * lanes;
  const int64_t most = outputs < lanes ? kMostTogether : few ? kMostOfWideOnes : 1;
  int64_t uneven = 1;
  for (int64_t m = 2; m <= most; ++m) {
    if (m * inputs % lanes != 0 || m * outputs % lanes != 0) continue;
    if (groups % m == 0) return m;
    // Those that the last ones lack count as products, too.
    const int64_t lacking = whole_groups(groups, m) - groups;
    if (uneven == 1 && windows && lacking * kMostLacking <= groups) uneven = m;
  }
  return uneven;
}

namespace {

// Axes of a product by what they are, each with the contraction's axes it holds.
struct GroupedAxes {
  using Axes = std::vector<std::vector<size_t>>;
  std::vector<size_t> batch, channels;
  Axes extents, taps;
};

std::vector<size_t> joined(std::initializer_list<GroupedAxes::Axes> lists) {
  std::vector<size_t> all;
  for (const GroupedAxes::Axes& list : lists)
    for (const std::vector<size_t>& axes : list)
      all.insert(all.end(), axes.begin(), axes.end());
  return all;
}

// What is summed for each group beside taps: the axis that lies next to the groups in a
// tensor that is read, else what no window is over.
std::vector<size_t> channels_of(const Graph& g, const Contraction& c) {
  for (const OperandView& view : c.left().views) {
    if (!view.map) break;
    for (size_t i = 0; i < view.map->at.size(); ++i) {
      auto run = run_of(view.map->at[i], g[view.node].shape[i], c.axes);
      if (!run || run->size() <= c.batch.size()) continue;
      const auto rest = run->begin() + std::ssize(c.batch);
      const bool summed = std::all_of(rest, run->end(), [&](size_t axis) {
        return std::ranges::count(c.reduced, axis) != 0;
      });
      if (summed && std::equal(c.batch.begin(), c.batch.end(), run->begin()))
        return {rest, run->end()};
    }
  }
  std::vector<size_t> channels = c.reduced;
  for (const AxisWindow& w : c.windows) std::erase(channels, w.tap);
  return channels;
}

// The axes of a product that lies as [N, G, OC/G, extents, C/G, taps], with as many
// extents as taps; axes of extent 1 may be any. nullopt: it does not.
std::optional<GroupedAxes> axes_as_they_lie(const Graph& g, const Contraction& c,
                                            const std::vector<size_t>& channels) {
  const size_t all = g[c.product].shape.size();
  if (all % 2 != 0 || all < 6) return std::nullopt;
  const size_t rank = (all - 4) / 2;
  std::vector<std::vector<size_t>> of(all);
  for (size_t axis = 0; axis < c.axes.size(); ++axis)
    if (c.axes[axis].extent != 1) of[c.axes[axis].whole].push_back(axis);
  const auto within = [&](size_t axis, const std::vector<size_t>& kind) {
    return std::ranges::all_of(
        of[axis], [&](size_t a) { return std::ranges::count(kind, a) != 0; });
  };
  GroupedAxes axes{of[0], channels, {}, {}};
  bool lies = within(0, c.rows) && of[1] == c.batch && of[2] == c.columns &&
              of[3 + rank] == channels;
  for (size_t i = 3; i < 3 + rank; ++i) {
    lies = lies && within(i, c.rows) && within(i + rank + 1, c.reduced);
    axes.extents.push_back(of[i]);
    axes.taps.push_back(of[i + rank + 1]);
  }
  return lies ? std::optional(axes) : std::nullopt;
}

// Those of any other: the first row is the batch.
GroupedAxes axes_in_order(const Contraction& c, const std::vector<size_t>& channels) {
  GroupedAxes axes{{}, channels, {}, {}};
  for (size_t axis : c.rows) {
    if (axis == c.rows[0])
      axes.batch = {axis};
    else
      axes.extents.push_back({axis});
  }
  for (size_t axis : c.reduced)
    if (std::ranges::count(channels, axis) == 0) axes.taps.push_back({axis});
  return axes;
}

// Products of bytes are made of bytes: four at a time.
bool is_of_bytes(const Graph& g, const Contraction& c) {
  const auto of_bytes = [&](const Operand& operand) {
    return is_byte(g[operand.source()].dtype);
  };
  return c.dtype == DType::I32 && of_bytes(c.left()) && of_bytes(c.right());
}

// x with `count` channels of zeros more, below windows over other axes and pads of
// another value, so that they lie in the last block of what is read.
NodeId more_channels(Graph& g, NodeId x, int64_t count) {
  const Node node = g[x];
  const size_t rank = node.shape.size();
  if (node.op == Op::Window && node.payload[0] != 1)
    return window(g, more_channels(g, node.inputs[0], count), node.payload[0],
                  node.payload[1], node.payload[2], node.payload[3]);
  if (node.op == Op::Cast) // which keeps zeros
    return cast(g, more_channels(g, node.inputs[0], count), node.dtype);
  if (node.op == Op::Pad && node.payload[1] == 0 && node.payload[rank + 1] == 0)
    return pad_bits(g, more_channels(g, node.inputs[0], count),
                    Shape(node.payload.begin(), node.payload.begin() + int64_t(rank)),
                    Shape(node.payload.begin() + int64_t(rank),
                          node.payload.begin() + 2 * int64_t(rank)),
                    static_cast<uint64_t>(node.payload[2 * rank]));
  Shape none(rank, 0), more = none;
  more[1] = count;
  return pad(g, x, none, more, 0);
}

} // namespace

std::optional<GroupedConvolution> match_groups(const Graph& g, const Contraction& c,
                                               int64_t lanes) {
  const bool sums = c.dtype == DType::F32 || is_of_bytes(g, c);
  if (!sums || !c.right().known || c.left().known || c.batch.empty()) return std::nullopt;
  const std::vector<size_t> channels = channels_of(g, c);
  const std::optional<GroupedAxes> lie = axes_as_they_lie(g, c, channels);
  const GroupedAxes axes = lie ? *lie : axes_in_order(c, channels);
  GroupedConvolution conv;
  const int64_t groups = c.count(c.batch), inputs = c.count(channels);
  conv.together =
      groups_together(groups, inputs, c.count(c.columns), lanes, !c.windows.empty());
  if (conv.together == 1) return std::nullopt;
  conv.extents = axes.extents.size();
  conv.full = {c.count(axes.batch), groups, c.count(c.columns)};
  Shape input = {conv.full[0], groups * inputs}, weight = {1, groups, conv.full[2]};
  for (const auto& some : axes.extents) {
    conv.full.push_back(c.count(some));
    input.push_back(c.count(some));
    weight.push_back(1);
  }
  conv.full.push_back(inputs), weight.push_back(inputs);
  for (const auto& some : axes.taps) {
    conv.full.push_back(c.count(some));
    input.push_back(c.count(some));
    weight.push_back(c.count(some));
  }
  const auto x = operand_in_order(
      g, c, c.left(), joined({{axes.batch, c.batch, channels}, axes.extents, axes.taps}),
      input);
  const auto w = operand_in_order(
      g, c, c.right(), joined({{c.batch, c.columns, channels}, axes.taps}), weight);
  if (!x || !w) return std::nullopt;
  conv.input = *x, conv.weight = *w;
  for (NodeId* node : {&conv.input.node, &conv.weight.node})
    if (c.dtype == DType::I32 && widens_where_read(g, *node)) *node = g[*node].inputs[0];
  conv.result =
      result_in_order(g, c, joined({{axes.batch, c.batch, c.columns}, axes.extents}));
  return conv;
}

NodeId merged_weights(Graph& g, NodeId weight, int64_t groups, int64_t outputs,
                      int64_t together) {
  const int64_t m = together, terms = element_count(g[weight].shape) / (groups * outputs);
  const Shape between = {1, m, 1, m, 1};
  const NodeId same = map(
      g, Op::Equal, {iota(g, DType::I32, between, 1), iota(g, DType::I32, between, 3)});
  const Shape all = {groups / m, m, outputs, m, terms};
  const NodeId one =
      expand(g, reshape(g, weight, {groups / m, m, outputs, 1, terms}), all);
  const NodeId none = constant(g, g[weight].dtype, all, 0);
  return map(g, Op::Select, {expand(g, same, all), one, none});
}

// (32 groups of 4 channels, 3x3, 56x56: 780 us in Winograd's form of four groups as one,
// 265 so; of 8 channels, 28x28: 600 and 250. AVX-512 of Golden Cove.)
bool fill_lanes(const Graph& g, const GroupedConvolution& conv, const Target& target) {
  const int64_t lanes = target.levels[0].lanes, inputs = conv.full[3 + conv.extents];
  // Bytes that are widened where they are read would be picked one by one.
  NodeId source = conv.input.node;
  while (is_view(g[source].op)) source = g[source].inputs[0];
  if (g[source].op == Op::Cast && !is_float(g[g[source].inputs[0]].dtype)) return false;
  if (g[conv.input.node].dtype != DType::F32 || inputs != conv.full[2] ||
      conv.together * inputs != lanes)
    return false;
  return std::ranges::all_of(target.levels, [&](const Level& level) {
    return level.has_vectors() &&
           (level.register_bits / 32 <= inputs || target.picks_lanes(level));
  });
}

NodeId spread_groups(Graph& g, const GroupedConvolution& conv, NodeId input,
                     NodeId weight) {
  const size_t rank = conv.extents;
  const int64_t groups = conv.full[1], outputs = conv.full[2],
                inputs = conv.full[3 + rank];
  const auto joined = [](Shape a, const Shape& b, size_t from) {
    a.insert(a.end(), b.begin() + static_cast<int64_t>(from), b.end());
    return a;
  };
  // [N, G, inputs, extents, taps] -> [N, G, extents, inputs, taps]
  const NodeId split =
      reshape(g, input, joined({conv.full[0], groups, inputs}, g[input].shape, 2));
  Payload order(g[split].shape.size());
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin() + 2, order.begin() + 3, order.begin() + 3 + int64_t(rank));
  const NodeId one = reshape(g, permute(g, split, order),
                             joined({conv.full[0], groups, 1}, conv.full, 3));
  const Shape full = joined({conv.full[0], groups * outputs}, conv.full, 3);
  const NodeId x = reshape(g, expand(g, one, conv.full), full);
  Shape of_weights = full;
  of_weights[0] = 1;
  std::fill_n(of_weights.begin() + 2, rank, 1);
  const NodeId w = expand(g, reshape(g, weight, of_weights), full);
  Payload axes;
  for (size_t axis = 2 + rank; axis < full.size(); ++axis)
    axes.push_back(static_cast<int64_t>(axis));
  const NodeId sum = reduce(g, Op::ReduceSum, map(g, Op::Mul, {x, w}), axes);
  return arranged(g, sum, conv.result);
}

NodeId merge_groups(Graph& g, const GroupedConvolution& conv, NodeId input,
                    NodeId weight) {
  const size_t rank = conv.extents;
  const int64_t m = conv.together, groups = conv.full[1], outputs = conv.full[2];
  const int64_t all = whole_groups(groups, m);
  if (all != groups) {
    input = more_channels(g, input, (all - groups) * conv.full[3 + rank]);
    Shape none(g[weight].shape.size(), 0), more = none;
    more[1] = all - groups;
    weight = pad(g, weight, none, more, 0);
  }
  Shape full = conv.full;
  full[1] = all / m;
  full[2] *= m;
  full[3 + rank] *= m;

  Shape split = g[input].shape, place = full, of_weights = full;
  split[1] = full[3 + rank];
  split.insert(split.begin() + 1, full[1]);
  place[2] = 1;
  of_weights[0] = 1;
  std::fill_n(of_weights.begin() + 3, rank, 1);
  Payload order(split.size());
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin() + 2, order.begin() + 3, order.begin() + 3 + int64_t(rank));
  const NodeId x = permute(g, reshape(g, input, split), order);
  const NodeId merged = merged_weights(g, weight, all, outputs, m);
  const NodeId w = reshape(g, merged, of_weights);

  Payload axes;
  for (size_t axis = 3 + rank; axis < full.size(); ++axis)
    axes.push_back(static_cast<int64_t>(axis));
  const DType dtype = is_byte(g[x].dtype) ? DType::I32 : DType::F32;
  const auto factor = [&](NodeId n) { return expand(g, cast(g, n, dtype), full); };
  const NodeId products = map(g, Op::Mul, {factor(reshape(g, x, place)), factor(w)});
  NodeId sum = reduce(g, Op::ReduceSum, products, axes);
  if (all != groups) {
    Shape channels = full;
    channels.resize(3 + rank);
    channels[1] *= channels[2];
    channels.erase(channels.begin() + 2);
    sum = slice_axis(g, reshape(g, sum, channels), 1, 0, groups * outputs);
  }
  return arranged(g, sum, conv.result);
}

} // namespace svod::select
