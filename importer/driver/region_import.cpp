// Loops and branches whose course is data of the run, and loops too long to be written
// out, become regions: the body is imported once, into a graph of its own. What it reads
// from around it is captured when it is looked up: a value known when packing is copied
// into the body, any other becomes an input of it.
#include "importer/driver/graph_import.h"

#include "compiler/ir/graph_copy.h"
#include "compiler/ir/text.h"
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

bool is_true(const Graph& g, NodeId id) {
  const auto value = known_ints(g, id);
  return value && value->front() != 0;
}

std::string type_of(const Graph& g, NodeId id) {
  return type_text(g[id].dtype, g[id].shape);
}

} // namespace

bool GraphImport::open_body(OpenBody& body, const ModelPlace& place) {
  if (open_bodies_.size() == kMostOpen) {
    fail(Exit::Unsupported,
         "more than " + std::to_string(kMostOpen) +
             " loops and branches that only a run decides are nested",
         place);
    return false;
  }
  body.outer = std::exchange(frame_, ImportFrame());
  open_bodies_.push_back(&body);
  return true;
}

Graph GraphImport::close_body(OpenBody& body) {
  Graph done = std::exchange(frame_, std::move(body.outer)).graph;
  open_bodies_.pop_back();
  return done;
}

// A node of the graph at `level` as a node of the body that is open in it.
NodeId GraphImport::capture_into(size_t level, NodeId id) {
  OpenBody& body = *open_bodies_[level];
  const bool innermost = level + 1 == open_bodies_.size();
  ImportFrame& inner = innermost ? frame_ : open_bodies_[level + 1]->outer;
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
NodeId GraphImport::capture_bounded(const Bounded& bounded, size_t level) {
  Counts counts = bounded.counts;
  NodeId tensor = bounded.tensor;
  for (; level < open_bodies_.size(); ++level) {
    tensor = capture_into(level, tensor);
    for (NodeId& count : counts)
      if (count != kNoNode) count = capture_into(level, count);
  }
  return frame_.bounds.add(frame_.graph, tensor, counts);
}

// Complex values are known to a region by what is inside; which of `values` were ones.
std::vector<bool> GraphImport::unwrap(Results& values) const {
  std::vector<bool> complex;
  for (NodeId& value : values) {
    const NodeId tensor = inside(compounds_, value);
    complex.push_back(tensor != value);
    value = tensor;
  }
  return complex;
}

// The values from the first on, as many as `complex` has, the way they were.
void GraphImport::wrap(Results& values, size_t first, const std::vector<bool>& complex) {
  for (size_t i = 0; i < complex.size() && first + i < values.size(); ++i)
    values[first + i] = wrapped_if(compounds_, complex[i], values[first + i]);
}

// A value found in a scope with `level` open bodies around it, seen from the innermost.
NodeId GraphImport::capture(NodeId id, size_t level, const ModelPlace& place) {
  if (level == open_bodies_.size() || id == kPoisoned || id == kNoNode) return id;
  if (is_complex(compounds_, id)) {
    const NodeId tensor = capture(inside(compounds_, id), level, place);
    return tensor == kPoisoned ? tensor : complex_value(compounds_, tensor);
  }
  if (is_compound(id)) {
    fail(Exit::Unsupported,
         "it takes " + std::string(kind_text(compounds_[id])) +
             " into a loop or branch that only a run decides",
         place);
    return kPoisoned;
  }
  if (const Bounded* bounded = open_bodies_[level]->outer.bounds.find(id))
    return capture_bounded(*bounded, level);
  if (open_bodies_[level]->outer.graph[id].dtype == DType::String) {
    fail(Exit::Unsupported,
         "it takes strings into a loop or branch that only a run decides", place);
    return kPoisoned;
  }
  for (; level < open_bodies_.size(); ++level) id = capture_into(level, id);
  return id;
}

bool GraphImport::in_loop_region() const {
  return std::ranges::any_of(open_bodies_, [](const OpenBody* b) { return b->loops; });
}

// What the body is called with: inputs of its graph.
GraphImport::Results GraphImport::body_arguments(const LoopCall& call,
                                                 const Graph& outer) {
  const NodeId iteration = frame_.graph.add_input("", DType::I64, {});
  frame_.ranges.add(iteration, Trust::Integers,
                    {ValueRange{0, static_cast<double>(call.limit)}});
  Results arguments;
  if (call.rule)
    arguments = {iteration};
  else if (!call.is_scan)
    arguments = {
        reshape(frame_.graph, iteration, declared_single(*call.body, 0)),
        constant_int(frame_.graph, DType::Bool, declared_single(*call.body, 1), 1)};
  for (size_t k = 0; k < call.carried.size(); ++k) {
    const Node& node = outer[call.carried[k]];
    Shape shape = node.shape;
    if (call.grows_along(k) >= 0) shape[static_cast<size_t>(call.grows_along(k))] = 0;
    arguments.push_back(call.grows_along(k) >= 0
                            ? constant_int(frame_.graph, node.dtype, shape, 0)
                            : frame_.graph.add_input("", node.dtype, shape));
  }
  for (NodeId id : call.sliced) {
    const Shape& shape = outer[id].shape;
    arguments.push_back(
        frame_.graph.add_input("", outer[id].dtype, {shape.begin() + 1, shape.end()}));
  }
  wrap(arguments, arguments.size() - call.carried.size() - call.sliced.size(),
       call.complex);
  return arguments;
}

// Whether what a body gives can go into its next iteration.
bool GraphImport::check_carried(const LoopCall& call, const Graph& outer,
                                const Results& results, const ModelPlace& place) {
  const size_t first = call.is_scan ? 0 : 1;
  for (size_t i = 0; i < results.size(); ++i) {
    const bool compound = is_compound(results[i]);
    const bool strings = !compound && frame_.graph[results[i]].dtype == DType::String;
    if (!compound && !strings && !frame_.bounds.find(results[i])) continue;
    fail(Exit::Unsupported,
         "its body gives " +
             std::string(compound  ? kind_text(compounds_[results[i]])
                         : strings ? "strings"
                                   : "a tensor whose size depends on data") +
             " in a loop that is not unrolled",
         place);
    return false;
  }
  if (call.conditional && (frame_.graph[results[0]].dtype != DType::Bool ||
                           element_count(frame_.graph[results[0]].shape) != 1)) {
    fail(Exit::InvalidModel, "its condition is no boolean", place);
    return false;
  }
  for (size_t k = 0; k < call.carried.size(); ++k) {
    const std::string before = type_of(outer, call.carried[k]);
    const std::string after = type_of(frame_.graph, results[first + k]);
    const bool same =
        call.complex.empty() || call.complex[k] == call.made_complex[first + k];
    if ((before == after && same) ||
        grows_by(call, outer, k, frame_.graph, results[first + k]))
      continue;
    fail(Exit::Unsupported,
         "carried value " + std::to_string(k) + " changes from " + before + " to " +
             after + " in an iteration, and the loop cannot be unrolled",
         place);
    return false;
  }
  return true;
}

// The loop's own value, the carried values after it, then the scan outputs with an axis
// of `limit` in front. Empty when the body failed.
GraphImport::Results GraphImport::run_region(LoopCall& call, const ModelPlace& place,
                                             const Scope& scope) {
  for (const Results* part : {&call.carried, &call.sliced})
    for (NodeId id : *part)
      if (frame_.graph[id].dtype == DType::String) {
        fail(Exit::Unsupported, "it carries strings and cannot be unrolled", place);
        return {};
      }
  OpenBody open;
  open.loops = true;
  if (!open_body(open, place)) return {};
  Results results;
  try {
    const Results arguments = body_arguments(call, open.outer.graph);
    results = call.rule ? call.rule->body(arguments[0],
                                          {arguments.begin() + 1, arguments.end()})
                        : run_body(*call.body, arguments, place, scope);
    call.made_complex = unwrap(results);
  } catch (...) {
    close_body(open);
    throw;
  }
  const bool fits =
      !results.empty() && check_carried(call, open.outer.graph, results, place);
  // Exporters pass a constant condition through.
  if (fits && call.conditional && is_true(frame_.graph, results[0]) &&
      is_true(open.outer.graph, call.start))
    call.conditional = false;
  const size_t first = call.is_scan ? 0 : 1;
  const std::vector<size_t> order = output_order(call, fits ? results.size() - first : 0);
  if (fits && call.conditional)
    frame_.graph.add_output("", reshape(frame_.graph, results[0], {}));
  for (size_t i = 0; fits && i < order.size(); ++i)
    frame_.graph.add_output("", results[first + order[i]]);
  Graph body = close_body(open);
  if (!fits) return {};
  LoopSpec spec;
  spec.sliced = static_cast<int64_t>(call.sliced.size());
  spec.again = call.conditional;
  spec.limit = call.limit;
  spec.reversed = call.reversed;
  std::vector<NodeId> inputs{call.count, call.start};
  for (size_t k = 0; k < call.carried.size(); ++k) {
    if (call.grows_along(k) < 0)
      inputs.push_back(call.carried[k]), ++spec.carried;
    else
      spec.reversed.push_back(0);
  }
  for (const Results* part : {&std::as_const(call.sliced), &std::as_const(open.order)})
    inputs.insert(inputs.end(), part->begin(), part->end());
  frame_.graph.open_source(place_path(place));
  Results made;
  try {
    spec.body = frame_.graph.add_body(std::make_shared<const Graph>(std::move(body)));
    made.assign(order.size() + 1, kNoNode);
    made[0] = loop(frame_.graph, spec, std::move(inputs));
    for (size_t i = 0; i < order.size(); ++i)
      made[1 + order[i]] = result(frame_.graph, made[0], static_cast<int64_t>(i));
    for (size_t k = 0; k < call.carried.size(); ++k)
      if (call.grows_along(k) >= 0) made[1 + k] = grown(call, k, made[1 + k], made[0]);
  } catch (const TooLarge&) {
    made.clear();
    fail(Exit::InvalidModel, "the shape of its result is over the limit", place);
  }
  frame_.graph.close_source();
  return made;
}

// A rule's loop; no values, and nothing reported, where its body does not fit a region.
RuleLoopResult GraphImport::rule_region(const RuleLoop& loop, const ModelPlace& place,
                                        const Scope& scope) {
  LoopCall call;
  call.rule = &loop;
  call.count = constant_int(frame_.graph, DType::I64, {}, loop.limit);
  call.start = loop.start;
  call.conditional = true;
  call.limit = loop.limit;
  call.carried = loop.carried;
  call.reversed.assign(static_cast<size_t>(loop.stacked), 0);
  const Checkpoint before = checkpoint();
  RuleLoopResult made;
  RuleFailure failure;
  ++loop_depth_;
  try {
    made.values = run_region(call, place, scope);
  } catch (const RuleFailure& stopped) {
    failure = stopped;
  } catch (...) {
    --loop_depth_;
    throw;
  }
  --loop_depth_;
  if (!made.values.empty()) return made;
  if (stopped_) throw failure;
  made.why_not = failure.why;
  if (diags_.all().size() > before.diags.all().size()) {
    const Diagnostic& found = diags_.all()[before.diags.all().size()];
    made.why_not =
        found.place.op + " '" + escaped(found.place.name) + "': " + found.message;
  }
  restore(before);
  return made;
}

// A bound for the length of scan outputs that is not known when packing: the model's own
// declaration. Nothing when there is none, or when two disagree.
std::optional<int64_t> GraphImport::declared_length(const ModelNode& node, size_t first,
                                                    const Scope& scope) {
  std::optional<int64_t> length;
  for (size_t i = first; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    const auto declared = scope.declared.find(node.outputs[i]);
    if (declared == scope.declared.end()) return std::nullopt;
    const auto shape = declared_shape(*declared->second, dimensions_);
    if (!shape || shape->empty() || (length && *length != (*shape)[0]))
      return std::nullopt;
    length = (*shape)[0];
  }
  return length;
}

// A Loop as a region. `known_trips`: where count and condition are known.
GraphImport::Results GraphImport::loop_region(const ModelNode& node,
                                              const ModelAttribute& body,
                                              const Results& inputs,
                                              const ModelPlace& place,
                                              const Scope& scope) {
  const auto given = [&](size_t i) { return i < inputs.size() && inputs[i] != kNoNode; };
  LoopCall call;
  call.body = &body;
  call.conditional = given(1);
  call.count = given(0) ? reshape(frame_.graph, inputs[0], {})
                        : constant_int(frame_.graph, DType::I64, {}, INT64_MAX);
  call.start = given(1) ? reshape(frame_.graph, inputs[1], {})
                        : constant_int(frame_.graph, DType::Bool, {}, 1);
  if (inputs.size() > 2) call.carried.assign(inputs.begin() + 2, inputs.end());
  call.complex = unwrap(call.carried);
  const size_t scans = body.graph->outputs.size() - call.carried.size() - 1;
  call.reversed.assign(scans, 0);
  const bool stacks = std::any_of(
      node.outputs.begin() +
          static_cast<std::ptrdiff_t>(std::min(call.carried.size(), node.outputs.size())),
      node.outputs.end(), [](const std::string& name) { return !name.empty(); });

  const auto trips = known_ints(frame_.graph, call.count);
  const bool fixed = trips && !call.conditional;
  const auto range =
      range_of(frame_.graph, call.count, 0, Trust::Integers, &frame_.ranges);
  const bool counted = range && range->high <= static_cast<double>(kMostIterations);
  call.limit = limits_.region_iterations;
  if (counted) call.limit = std::max<int64_t>(static_cast<int64_t>(range->high), 0);
  for (size_t k = 0; counted && k < call.carried.size(); ++k)
    call.grows.push_back(
        growing_axis(*body.graph, k,
                     std::ssize(frame_.graph[call.carried[k]].shape) - call.complex[k]));
  const auto declared = declared_length(node, call.carried.size(), scope);
  const bool bounded = stacks && !fixed && !declared;
  if (bounded && !counted && limits_.size > 0) {
    call.limit = std::min(limits_.size, kMostIterations); // one more ends the run
  } else if (bounded && !counted) {
    fail(Exit::Unsupported,
         "how long its scan outputs are is only known when it runs, and neither a count "
         "nor the declaration of their shapes bounds it (--limit-size N does)",
         place);
    return {};
  }
  if (stacks && !fixed && declared) call.limit = std::min(*declared, kMostIterations);
  // An output that nobody reads holds one item.
  if (!stacks && scans > 0) call.limit = std::min(call.limit, limits_.region_iterations);
  Results made = run_region(call, place, scope);
  if (made.empty()) return {};
  const NodeId done = made[0];
  made.erase(made.begin());
  call.made_complex.erase(call.made_complex.begin());
  const bool whole = trips && !call.conditional && call.limit == (*trips)[0];
  if (stacks && !fixed && !whole) {
    // A declaration is the model's promise: a run that breaks it stops.
    const NodeId kept =
        map(frame_.graph, Op::Equal,
            {done, constant_int(frame_.graph, DType::I64, {}, call.limit)});
    for (size_t k = call.carried.size(); k < made.size(); ++k) {
      Counts counts(frame_.graph[made[k]].shape.size(), kNoNode);
      counts[0] = done;
      if (bounded)
        made[k] = frame_.bounds.add(frame_.graph, made[k], counts);
      else if (k < node.outputs.size() && !node.outputs[k].empty())
        made[k] = compounds_.guarded(frame_.graph, made[k], kept);
    }
  }
  wrap(made, 0, call.made_complex);
  return made;
}

// A Scan as a region: its states after it, then its outputs.
GraphImport::Results GraphImport::scan_region(const ModelAttribute& body,
                                              const ScanPlan& plan, const Results& state,
                                              const Results& scanned,
                                              const ModelPlace& place,
                                              const Scope& scope) {
  LoopCall call;
  call.body = &body;
  call.is_scan = true;
  call.count = constant_int(frame_.graph, DType::I64, {}, plan.length);
  call.start = constant_int(frame_.graph, DType::Bool, {}, 1);
  call.limit = plan.length;
  call.carried = state;
  call.complex = unwrap(call.carried);
  for (size_t k = 0; k < scanned.size(); ++k) {
    const NodeId whole = inside(compounds_, scanned[k]);
    call.complex.push_back(whole != scanned[k]);
    std::vector<int64_t> perm{plan.input_axes[k]};
    for (int64_t axis = 0; axis < std::ssize(frame_.graph[whole].shape); ++axis)
      if (axis != plan.input_axes[k]) perm.push_back(axis);
    call.sliced.push_back(permute(frame_.graph, whole, perm));
    call.reversed.push_back(plan.input_directions[k] != 0);
  }
  for (int64_t direction : plan.output_directions)
    call.reversed.push_back(direction != 0);
  Results made = run_region(call, place, scope);
  if (made.empty()) return {};
  made.erase(made.begin());
  for (size_t k = state.size(); k < made.size(); ++k) {
    const int64_t rank = std::ssize(frame_.graph[made[k]].shape);
    const int64_t seen = rank - call.made_complex[k];
    int64_t axis = plan.output_axes[k - state.size()];
    if (axis < 0) axis += seen;
    if (axis < 0 || axis >= seen) {
      fail(Exit::InvalidModel, "the axis of a scan output is out of range", place);
      return {};
    }
    std::vector<int64_t> perm;
    for (int64_t i = 1; i < rank; ++i) perm.push_back(i);
    perm.insert(perm.begin() + axis, 0);
    made[k] = permute(frame_.graph, made[k], perm);
  }
  wrap(made, 0, call.made_complex);
  return made;
}

GraphImport::Checkpoint GraphImport::checkpoint() const {
  return {diags_, missed_.size(), lacks_, more_errors_};
}

void GraphImport::restore(const Checkpoint& to) {
  diags_ = to.diags;
  missed_.resize(to.missed);
  lacks_ = to.lacks;
  more_errors_ = to.more_errors;
}

} // namespace svod::importer
