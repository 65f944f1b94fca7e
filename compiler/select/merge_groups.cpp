#include "compiler/select/merge_groups.h"

#include "compiler/ir/build.h"
#include "compiler/select/transform.h"

#include <algorithm>

namespace svod::select {

// More products than so many times those of the groups take longer than moving data.
static constexpr int64_t kMostTogether = 8;

// The least number of groups whose channels and results are whole vectors.
static int64_t groups_together(int64_t groups, int64_t inputs, int64_t outputs,
                               int64_t lanes) {
  if (inputs == 1 || outputs >= lanes) return 1;
  for (int64_t m = 2; m <= kMostTogether; ++m)
    if (groups % m == 0 && m * inputs % lanes == 0 && m * outputs % lanes == 0) return m;
  return 1;
}

// [N, C, extents, taps] of p = [N, G, OC/G, extents, C/G, taps].
static Shape windows_of(const Shape& p) {
  const size_t rank = (p.size() - 4) / 2;
  Shape windows = {p[0], p[1] * p[3 + rank]};
  windows.insert(windows.end(), p.begin() + 3, p.begin() + 3 + rank);
  windows.insert(windows.end(), p.begin() + 4 + rank, p.end());
  return windows;
}

// The node of the windows below an operand that reads them group by group.
static NodeId below_groups(const Graph& g, NodeId n, const Shape& p) {
  const size_t rank = (p.size() - 4) / 2;
  if (g[n].op != Op::Reshape) return kNoNode;
  n = g[n].inputs[0];
  if (g[n].op != Op::Permute || g[n].payload != channels_behind(2, int64_t(rank)))
    return kNoNode;
  n = g[n].inputs[0];
  if (g[n].op != Op::Reshape) return kNoNode;
  n = g[n].inputs[0];
  return g[n].shape == windows_of(p) ? n : kNoNode;
}

std::optional<GroupedConvolution> match_groups(const Graph& g, NodeId reduce,
                                               const std::vector<bool>& known,
                                               int64_t lanes) {
  const Node& r = g[reduce];
  if (r.op != Op::ReduceSum || r.dtype != DType::F32) return std::nullopt;
  const Node& product = g[r.inputs[0]];
  const Shape& p = product.shape;
  if (product.op != Op::Mul || p.size() % 2 != 0 || p.size() < 6) return std::nullopt;
  const size_t rank = (p.size() - 4) / 2;
  Shape summed = p, weights = p;
  std::fill(summed.begin() + 3 + rank, summed.end(), 1);
  weights[0] = 1;
  std::fill_n(weights.begin() + 3, rank, 1);
  if (r.shape != summed) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    GroupedConvolution conv;
    conv.weight = without_expand(g, product.inputs[i]);
    if (!known[conv.weight] || g[conv.weight].shape != weights) continue;
    conv.input = below_groups(g, without_expand(g, product.inputs[1 - i]), p);
    if (conv.input == kNoNode || known[conv.input]) continue;
    conv.full = p;
    conv.together = groups_together(p[1], p[3 + rank], p[2], lanes);
    if (conv.together > 1) return conv;
  }
  return std::nullopt;
}

// [.., C/G, taps] of each group -> those of `together`, zero between different ones.
static NodeId merged_weights(Graph& g, const GroupedConvolution& conv, NodeId weight) {
  const Shape& p = conv.full;
  const int64_t m = conv.together, taps = element_count(g[weight].shape) / (p[1] * p[2]);
  const Shape between = {1, m, 1, m, 1};
  const NodeId same = map(
      g, Op::Equal, {iota(g, DType::I32, between, 1), iota(g, DType::I32, between, 3)});
  const Shape all = {p[1] / m, m, p[2], m, taps};
  const NodeId one = expand(g, reshape(g, weight, {p[1] / m, m, p[2], 1, taps}), all);
  return map(g, Op::Select, {expand(g, same, all), one, constant(g, DType::F32, all, 0)});
}

NodeId merge_groups(Graph& g, const GroupedConvolution& conv, NodeId input,
                    NodeId weight) {
  const size_t rank = (conv.full.size() - 4) / 2;
  Shape full = conv.full, summed = full;
  std::fill(summed.begin() + 3 + rank, summed.end(), 1);
  full[1] /= conv.together;
  full[2] *= conv.together;
  full[3 + rank] *= conv.together;

  Shape split = g[input].shape, place = full, of_weights = full;
  split[1] = full[3 + rank];
  split.insert(split.begin() + 1, full[1]);
  place[2] = 1;
  of_weights[0] = 1;
  std::fill_n(of_weights.begin() + 3, rank, 1);
  const NodeId x =
      permute(g, reshape(g, input, split), channels_behind(2, int64_t(rank)));
  const NodeId w = reshape(g, merged_weights(g, conv, weight), of_weights);

  Payload axes;
  for (size_t axis = 3 + rank; axis < full.size(); ++axis)
    axes.push_back(static_cast<int64_t>(axis));
  const NodeId products =
      map(g, Op::Mul, {expand(g, reshape(g, x, place), full), expand(g, w, full)});
  return reshape(g, reduce(g, Op::ReduceSum, products, axes), summed);
}

} // namespace svod::select
