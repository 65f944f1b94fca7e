// The body of a region is a graph of its own. What it reads from around it is captured
// when it is looked up: a value known when packing is copied into the body, any other
// becomes an input of it.
#include "compiler/ir/graph_copy.h"
#include "importer/driver/region_import.h"
#include "importer/formula/complex.h"

#include <algorithm>
#include <utility>

namespace svod::importer {

namespace {

// Regions in one another. The image holds 16, and an if counts twice.
constexpr size_t kMostOpen = 7;

// What is known of numbers around a body, for the body.
void keep_ranges(const Graph& outer, const RangeTable& known, NodeId id,
                 RangeTable& inside, NodeId input) {
  const int64_t count = element_count(outer[id].shape);
  if (count == 0 || outer[id].dtype == DType::Bool) return;
  for (const Trust trust : {Trust::Integers, Trust::Floats}) {
    std::vector<std::optional<ValueRange>> ranges;
    for (int64_t i = 0; i < count && count <= RangeTable::kMostElements; ++i)
      ranges.push_back(range_of(outer, id, i, trust, &known));
    if (ranges.empty()) ranges = {range_of(outer, id, kAnyElement, trust, &known)};
    inside.add(input, trust, std::move(ranges));
  }
}

} // namespace

bool RegionImport::open_body(OpenBody& body, const ModelPlace& place) {
  if (import_.open_bodies.size() == kMostOpen) {
    fail(Exit::Unsupported,
         "more than " + std::to_string(kMostOpen) +
             " loops and branches that only a run decides are nested",
         place);
    return false;
  }
  body.outer = std::exchange(import_.frame, ImportFrame());
  import_.open_bodies.push_back(&body);
  return true;
}

Graph RegionImport::close_body(OpenBody& body) {
  Graph done = std::exchange(import_.frame, std::move(body.outer)).graph;
  import_.open_bodies.pop_back();
  return done;
}

// A node of the graph at `level` as a node of the body that is open in it.
NodeId RegionImport::capture_into(size_t level, NodeId id) {
  OpenBody& body = *import_.open_bodies[level];
  const bool innermost = level + 1 == import_.open_bodies.size();
  ImportFrame& inner = innermost ? import_.frame : import_.open_bodies[level + 1]->outer;
  const auto [place, fresh] = body.captured.emplace(id, kNoNode);
  if (!fresh) return place->second;
  if (!body.outer.graph.depends_on_input(id))
    return place->second = GraphCopy(inner.graph, body.outer.graph).copy(id);
  const Node& node = body.outer.graph[id];
  body.order.push_back(id);
  const NodeId inside = inner.graph.add_input("", node.dtype, node.shape);
  keep_ranges(body.outer.graph, body.outer.ranges, id, inner.ranges, inside);
  return place->second = inside;
}

// A bounded tensor goes in with its counts.
NodeId RegionImport::capture_bounded(const Bounded& bounded, size_t level) {
  Counts counts = bounded.counts;
  NodeId tensor = bounded.tensor;
  for (; level < import_.open_bodies.size(); ++level) {
    tensor = capture_into(level, tensor);
    for (NodeId& count : counts)
      if (count != kNoNode) count = capture_into(level, count);
  }
  return import_.frame.bounds.add(g(), tensor, counts);
}

// Complex values are known to a region by what is inside; which of `values` were ones.
std::vector<bool> RegionImport::unwrap(Results& values) const {
  std::vector<bool> complex;
  for (NodeId& value : values) {
    const NodeId tensor = inside(import_.compounds, value);
    complex.push_back(tensor != value);
    value = tensor;
  }
  return complex;
}

// The values from the first on, as many as `complex` has, the way they were.
void RegionImport::wrap(Results& values, size_t first, const std::vector<bool>& complex) {
  for (size_t i = 0; i < complex.size() && first + i < values.size(); ++i)
    values[first + i] = wrapped_if(import_.compounds, complex[i], values[first + i]);
}

// A value found in a scope with `level` open bodies around it, seen from the innermost.
NodeId RegionImport::capture(NodeId id, size_t level, const ModelPlace& place) {
  if (level == import_.open_bodies.size() || id == kPoisoned || id == kNoNode) return id;
  if (is_complex(import_.compounds, id)) {
    const NodeId tensor = capture(inside(import_.compounds, id), level, place);
    return tensor == kPoisoned ? tensor : complex_value(import_.compounds, tensor);
  }
  if (is_compound(id)) {
    fail(Exit::Unsupported,
         "it takes " + std::string(kind_text(import_.compounds[id])) +
             " into a loop or branch that only a run decides",
         place);
    return kPoisoned;
  }
  if (const Bounded* bounded = import_.open_bodies[level]->outer.bounds.find(id))
    return capture_bounded(*bounded, level);
  if (import_.open_bodies[level]->outer.graph[id].dtype == DType::String) {
    fail(Exit::Unsupported,
         "it takes strings into a loop or branch that only a run decides", place);
    return kPoisoned;
  }
  for (; level < import_.open_bodies.size(); ++level) id = capture_into(level, id);
  return id;
}

bool RegionImport::in_loop_region() const {
  return std::ranges::any_of(import_.open_bodies,
                             [](const OpenBody* b) { return b->loops; });
}

} // namespace svod::importer
