#include "compiler/rewrite/fixed_point.h"

#include "compiler/ir/fold.h"
#include "compiler/ir/graph_copy.h"
#include "compiler/rewrite/fixed_multiplier.h"
#include "compiler/rewrite/known_values.h"
#include "compiler/rewrite/quantised_path.h"

#include <algorithm>
#include <climits>

namespace svod::rewrite {

namespace {

// Channels whose numbers may differ.
constexpr int64_t kMostChannels = 1 << 14;

class Quantisations {
public:
  Quantisations(const Graph& from, const FixedPointOptions& options,
                FixedPointReport& report)
      : from_(from), options_(options), report_(report) {}
  Graph run();

private:
  NodeId quantisation(NodeId id);
  NodeId one_source(const QuantisedPath& path, DType to);
  NodeId two_sources(const QuantisedPath& path, DType to);
  NodeId multiplied(const FixedMultiplier& fixed, NodeId x, const Shape& channels);
  NodeId numbers(const FixedMultiplier& fixed, int32_t FixedNumbers::* which,
                 const Shape& channels, const Shape& shape);
  NodeId clamped(NodeId value, int right, int low, int high, DType to);
  NodeId of_parts(NodeId id);
  void note_step();

  const Graph& from_;
  NodeId at_ = kNoNode; // of that graph, which is being copied
  const FixedPointOptions& options_;
  FixedPointReport& report_;
  Graph g;
};

// One of the multiplier's numbers, for every element of `shape`.
NodeId Quantisations::numbers(const FixedMultiplier& fixed, int32_t FixedNumbers::* which,
                              const Shape& channels, const Shape& shape) {
  Tensor values{DType::I32, channels, {}};
  for (const FixedNumbers& n : fixed.channels) {
    const auto bytes = std::as_bytes(std::span(&(n.*which), 1));
    values.bytes.insert(values.bytes.end(), bytes.begin(), bytes.end());
  }
  return expand(g, tensor_node(g, std::move(values)), shape);
}

NodeId Quantisations::multiplied(const FixedMultiplier& fixed, NodeId x,
                                 const Shape& channels) {
  const Shape shape = g[x].shape;
  const NodeId factor = numbers(fixed, &FixedNumbers::factor, channels, shape);
  const NodeId beside = numbers(fixed, &FixedNumbers::beside, channels, shape);
  if (fixed.wide)
    x = map(g, Op::Add, {x, numbers(fixed, &FixedNumbers::before, channels, shape)});
  x = map(g, fixed.wide ? Op::MulHigh : Op::Mul, {x, factor});
  return map(g, Op::Add, {x, beside});
}

NodeId Quantisations::clamped(NodeId value, int right, int low, int high, DType to) {
  const Shape shape = g[value].shape;
  auto all = [&](int number) { return constant_int(g, DType::I32, shape, number); };
  value = map(g, Op::ShiftRight, {value, all(right)});
  value = map(g, Op::Max, {map(g, Op::Min, {value, all(high)}), all(low)});
  return cast(g, value, to);
}

NodeId Quantisations::one_source(const QuantisedPath& path, DType to) {
  const Shape channels = path.channels;
  if (element_count(channels) > kMostChannels) return kNoNode;
  const NodeId source = path.sources[0].node;
  const int64_t first = path.sources[0].first, last = path.sources[0].last;
  std::vector<Staircase> stairs;
  int low = INT_MAX, high = INT_MIN;
  bool same = g[source].dtype == to && element_count(channels) == 1;
  for (int64_t i = 0; i < element_count(channels); ++i) {
    std::optional<QuantisedFunction> f = path.function(i, to);
    if (!f) return kNoNode;
    Staircase s{nullptr, first, last, f->slopes[0], f->offset};
    s.at = [f = std::move(*f)](int64_t x) { return f.at(x, 0); };
    low = std::min(low, s.at(first)), high = std::max(high, s.at(last));
    for (int64_t x = first; same && x <= last; ++x) same = s.at(x) == x;
    stairs.push_back(std::move(s));
  }
  if (same) return source;
  const std::optional<FixedMultiplier> fixed = fit_multiplier(stairs, low, high);
  if (!fixed || (options_.exact && fixed->missed != 0)) return kNoNode;
  const NodeId x = cast(g, source, DType::I32);
  const NodeId out =
      clamped(multiplied(*fixed, x, channels), fixed->right, low, high, to);
  if (fixed->missed != 0) note_step();
  return out;
}

void Quantisations::note_step() {
  std::vector<std::string>& names = report_.one_step;
  for (int32_t source : from_.sources(at_)) {
    const std::string& name = from_.source_name(source);
    if (std::ranges::count(names, name) == 0) names.push_back(name);
  }
}

// Two bytes, each times its scale.
NodeId Quantisations::two_sources(const QuantisedPath& path, DType to) {
  if (element_count(path.channels) != 1) return kNoNode;
  const std::optional<QuantisedFunction> f = path.function(0, to);
  if (!f) return kNoNode;
  TwoBytes pair{[&](int64_t a, int64_t b) { return f->at(a, b); }, {}, {}, {}, f->offset};
  for (size_t i = 0; i < 2; ++i) {
    pair.first[i] = path.sources[i].first, pair.last[i] = path.sources[i].last;
    pair.slopes[i] = f->slopes[i];
    if (pair.last[i] - pair.first[i] > 255) return kNoNode;
  }
  const std::optional<FixedSum> fixed = fit_sum(pair);
  if (!fixed || (options_.exact && fixed->missed != 0)) return kNoNode;
  NodeId sum = kNoNode;
  for (size_t i = 0; i < path.sources.size(); ++i) {
    const NodeId x = cast(g, path.sources[i].node, DType::I32);
    const Shape shape = g[x].shape;
    const NodeId product =
        map(g, Op::Mul, {x, constant_int(g, DType::I32, shape, fixed->factors[i])});
    sum = sum == kNoNode ? product : map(g, Op::Add, {sum, product});
  }
  const NodeId beside = constant_int(g, DType::I32, g[sum].shape, fixed->beside);
  const NodeId out =
      clamped(map(g, Op::Add, {sum, beside}), fixed->right, fixed->low, fixed->high, to);
  if (fixed->missed != 0) note_step();
  return out;
}

NodeId Quantisations::quantisation(NodeId id) {
  const DType to = g[id].dtype;
  const std::optional<QuantisedPath> path = quantised_path(g, id);
  NodeId out = kNoNode;
  if (path)
    out = path->sources.size() == 1 ? one_source(*path, to) : two_sources(*path, to);
  ++(out == kNoNode ? report_.in_floats : report_.quantisations);
  return out == kNoNode ? id : out;
}

// A cast of what is joined is a join of casts, each with a source of its own.
NodeId Quantisations::of_parts(NodeId id) {
  const NodeId join = joined_below(g, id);
  if (join == kNoNode) return quantisation(id);
  std::vector<NodeId> parts;
  for (NodeId part : std::vector<NodeId>(g[join].inputs))
    parts.push_back(quantisation(over_part(g, id, join, part)));
  return concat(g, parts, g[join].payload[0]);
}

Graph Quantisations::run() {
  GraphCopy copy(g, from_, [&](NodeId id) {
    const auto body = [&](const auto& own) {
      return std::make_shared<const Graph>(Quantisations(*own, options_, report_).run());
    };
    const NodeId made = rebuild(g, copy.over_copies(id, body));
    const bool quantises = g[made].op == Op::Cast && is_byte(g[made].dtype) &&
                           g[g[made].inputs[0]].dtype == DType::F32;
    at_ = id;
    return quantises && g.depends_on_input(made) ? of_parts(made) : made;
  });
  copy.run();
  return std::move(g);
}

} // namespace

Graph fixed_point(const Graph& graph, const FixedPointOptions& options,
                  FixedPointReport* report) {
  FixedPointReport unused;
  return Quantisations(graph, options, report != nullptr ? *report : unused).run();
}

} // namespace svod::rewrite
