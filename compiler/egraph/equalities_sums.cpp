// Helpers of the equalities on sums: of two sums, of a sum and a factor, of its parts.
#include "compiler/egraph/equality_parts.h"
#include "compiler/rewrite/known_values.h"

#include <algorithm>

namespace svod::egraph {

using rewrite::Condition;
using rewrite::Match;
using rewrite::pattern::Helper;
using rewrite::pattern::Nodes;
using namespace rewrite::pattern;

const Condition few_results([](const Match& m) {
  const auto results = element_count(m.root().shape);
  return results > 0 &&
         element_count(m.r.g[m.root().inputs[0]].shape) / results > results;
});

const Helper sum_of_both{[](const Match& m, Nodes in) {
  Graph& g = m.r.g;
  if (g[in[0]].shape != g[in[1]].shape) return kNoNode;
  return reduce(g, Op::ReduceSum, svod::map(g, Op::Add, {in[0], in[1]}),
                m.node(z).payload);
}};

const Helper sums_of_each{[](const Match& m, Nodes in) {
  Graph& g = m.r.g;
  const Payload axes = m.root().payload;
  const NodeId first = reduce(g, Op::ReduceSum, in[0], axes);
  return svod::map(g, Op::Add, {first, reduce(g, Op::ReduceSum, in[1], axes)});
}};

static bool repeats_along(const Shape& small, const Payload& axes) {
  return std::ranges::all_of(
      axes, [&](int64_t axis) { return small[static_cast<size_t>(axis)] == 1; });
}

const Helper sum_then_scale{[](const Match& m, Nodes in) {
  Graph& g = m.r.g;
  const Payload axes = m.root().payload;
  const Shape shape = m.root().shape;
  const NodeId scale = rewrite::base_of(g, in[1]);
  if (!repeats_along(g[scale].shape, axes)) return kNoNode;
  const NodeId sum = reduce(g, Op::ReduceSum, in[0], axes);
  return svod::map(g, Op::Mul, {sum, svod::expand(g, scale, shape)});
}};

const Helper scale_then_sum{[](const Match& m, Nodes in) {
  Graph& g = m.r.g;
  const Shape full = g[in[0]].shape;
  const NodeId scale = rewrite::base_of(g, in[1]);
  const NodeId product = svod::map(g, Op::Mul, {in[0], svod::expand(g, scale, full)});
  return reduce(g, Op::ReduceSum, product, m.node(z).payload);
}};

// The smallest number above 1 that divides an extent.
static int64_t smallest_factor(int64_t extent) {
  for (int64_t factor = 2; factor * factor <= extent; ++factor)
    if (extent % factor == 0) return factor;
  return extent;
}

// Larger numbers of parts come of splitting again.
const Helper sum_of_parts{[](const Match& m, Nodes in) {
  Graph& g = m.r.g;
  Payload axes = m.root().payload;
  Shape shape = g[in[0]].shape;
  const auto longest = std::ranges::max_element(
      axes, {}, [&](int64_t axis) { return shape[static_cast<size_t>(axis)]; });
  const auto cut = static_cast<size_t>(*longest);
  const int64_t parts = smallest_factor(shape[cut]);
  if (parts == shape[cut]) return kNoNode;
  shape[cut] /= parts;
  shape.insert(shape.begin() + *longest, parts);
  for (int64_t& axis : axes) axis += axis >= static_cast<int64_t>(cut);
  const NodeId inner = reduce(g, Op::ReduceSum, svod::reshape(g, in[0], shape), axes);
  const NodeId outer = reduce(g, Op::ReduceSum, inner, {static_cast<int64_t>(cut)});
  return svod::reshape(g, outer, m.root().shape);
}};

} // namespace svod::egraph
