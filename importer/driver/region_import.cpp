// Loops and branches whose course is data of the run, and loops too long to be written
// out, become regions: the body is imported once, into a graph of its own. Here are the
// loops; capture.cpp has what bodies read from around them, if_region.cpp the branches.
#include "importer/driver/region_import.h"

#include "compiler/ir/text.h"
#include "importer/inputs/input_shapes.h"

#include <algorithm>
#include <utility>

namespace svod::importer {

namespace {

bool is_true(const Graph& g, NodeId id) {
  const auto value = known_ints(g, id);
  return value && value->front() != 0;
}

std::string type_of(const Graph& g, NodeId id) {
  return type_text(g[id].dtype, g[id].shape);
}

} // namespace

Shape declared_single(const ModelAttribute& body, size_t i) {
  if (i >= body.graph->inputs.size()) return {}; // run_body() reports it
  const auto& dims = body.graph->inputs[i].dims;
  return dims && dims->size() == 1 ? Shape{1} : Shape{};
}

// What the body is called with: inputs of its graph.
Results RegionImport::body_arguments(const LoopCall& call, const Graph& outer) {
  const NodeId iteration = g().add_input("", DType::I64, {});
  import_.frame.ranges.add(iteration, Trust::Integers,
                           {ValueRange{0, static_cast<double>(call.limit)}});
  Results arguments;
  if (call.rule)
    arguments = {iteration};
  else if (!call.is_scan)
    arguments = {reshape(g(), iteration, declared_single(*call.body, 0)),
                 constant_int(g(), DType::Bool, declared_single(*call.body, 1), 1)};
  for (size_t k = 0; k < call.carried.size(); ++k) {
    const Node& node = outer[call.carried[k]];
    Shape shape = node.shape;
    if (call.grows_along(k) >= 0) shape[static_cast<size_t>(call.grows_along(k))] = 0;
    arguments.push_back(call.grows_along(k) >= 0 ? constant_int(g(), node.dtype, shape, 0)
                                                 : g().add_input("", node.dtype, shape));
  }
  for (NodeId id : call.sliced) {
    const Shape& shape = outer[id].shape;
    arguments.push_back(
        g().add_input("", outer[id].dtype, {shape.begin() + 1, shape.end()}));
  }
  wrap(arguments, arguments.size() - call.carried.size() - call.sliced.size(),
       call.complex);
  return arguments;
}

// Whether what a body gives can go into its next iteration.
bool RegionImport::check_carried(const LoopCall& call, const Graph& outer,
                                 const Results& results, const ModelPlace& place) {
  const size_t first = call.is_scan ? 0 : 1;
  for (size_t i = 0; i < results.size(); ++i) {
    const bool compound = is_compound(results[i]);
    const bool strings = !compound && g()[results[i]].dtype == DType::String;
    if (!compound && !strings && !import_.frame.bounds.find(results[i])) continue;
    fail(Exit::Unsupported,
         "its body gives " +
             std::string(compound  ? kind_text(import_.compounds[results[i]])
                         : strings ? "strings"
                                   : "a tensor whose size depends on data") +
             " in a loop that is not unrolled",
         place);
    return false;
  }
  if (call.conditional && (g()[results[0]].dtype != DType::Bool ||
                           element_count(g()[results[0]].shape) != 1)) {
    fail(Exit::InvalidModel, "its condition is no boolean", place);
    return false;
  }
  for (size_t k = 0; k < call.carried.size(); ++k) {
    const std::string before = type_of(outer, call.carried[k]);
    const std::string after = type_of(g(), results[first + k]);
    const bool same =
        call.complex.empty() || call.complex[k] == call.made_complex[first + k];
    if ((before == after && same) || grows_by(call, outer, k, g(), results[first + k]))
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
Results RegionImport::run_region(LoopCall& call, const ModelPlace& place,
                                 const Scope& scope) {
  for (const Results* part : {&call.carried, &call.sliced})
    for (NodeId id : *part)
      if (g()[id].dtype == DType::String) {
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
                        : bodies_.run_body(*call.body, arguments, place, scope);
    call.made_complex = unwrap(results);
  } catch (...) {
    close_body(open);
    throw;
  }
  const bool fits =
      !results.empty() && check_carried(call, open.outer.graph, results, place);
  // Exporters pass a constant condition through.
  if (fits && call.conditional && is_true(g(), results[0]) &&
      is_true(open.outer.graph, call.start))
    call.conditional = false;
  const size_t first = call.is_scan ? 0 : 1;
  const std::vector<size_t> order = output_order(call, fits ? results.size() - first : 0);
  if (fits && call.conditional) g().add_output("", reshape(g(), results[0], {}));
  for (size_t i = 0; fits && i < order.size(); ++i)
    g().add_output("", results[first + order[i]]);
  Graph body = close_body(open);
  if (!fits) return {};
  return make_loop(call, std::move(body), open.order, order, place);
}

// The loop around a body whose outputs are those that `order` numbers, and which captured
// some values.
Results RegionImport::make_loop(const LoopCall& call, Graph body, const Results& captured,
                                const std::vector<size_t>& order,
                                const ModelPlace& place) {
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
  for (const Results* part : {&call.sliced, &captured})
    inputs.insert(inputs.end(), part->begin(), part->end());
  g().open_source(place_path(place));
  Results made;
  try {
    spec.body = g().add_body(std::make_shared<const Graph>(std::move(body)));
    made.assign(order.size() + 1, kNoNode);
    made[0] = loop(g(), spec, std::move(inputs));
    for (size_t i = 0; i < order.size(); ++i)
      made[1 + order[i]] = result(g(), made[0], static_cast<int64_t>(i));
    for (size_t k = 0; k < call.carried.size(); ++k)
      if (call.grows_along(k) >= 0) made[1 + k] = grown(call, k, made[1 + k], made[0]);
  } catch (const TooLarge&) {
    made.clear();
    fail(Exit::InvalidModel, "the shape of its result is over the limit", place);
  }
  g().close_source();
  return made;
}

// A rule's loop; no values, and nothing reported, where its body does not fit a region.
RuleLoopResult RegionImport::rule_region(const RuleLoop& loop, const ModelPlace& place,
                                         const Scope& scope) {
  LoopCall call;
  call.rule = &loop;
  call.count = constant_int(g(), DType::I64, {}, loop.limit);
  call.start = loop.start;
  call.conditional = true;
  call.limit = loop.limit;
  call.carried = loop.carried;
  call.reversed.assign(static_cast<size_t>(loop.stacked), 0);
  const Checkpoint before = checkpoint();
  RuleLoopResult made;
  RuleFailure failure;
  ++import_.loop_depth;
  try {
    made.values = run_region(call, place, scope);
  } catch (const RuleFailure& stopped) {
    failure = stopped;
  } catch (...) {
    --import_.loop_depth;
    throw;
  }
  --import_.loop_depth;
  if (!made.values.empty()) return made;
  if (import_.stopped) throw failure;
  made.why_not = failure.why;
  if (import_.diags.all().size() > before.diags.all().size()) {
    const Diagnostic& found = import_.diags.all()[before.diags.all().size()];
    made.why_not =
        found.place.op + " '" + escaped(found.place.name) + "': " + found.message;
  }
  restore(before);
  return made;
}

} // namespace svod::importer
