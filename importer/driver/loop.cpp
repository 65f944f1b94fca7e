// A Loop whose course is known when packing is written out, one iteration after the
// other; any other, and one that would make too many nodes, is a region.
#include "importer/driver/control_flow.h"
#include "importer/formula/complex.h"
#include "importer/inputs/input_shapes.h"

#include <algorithm>

namespace svod::importer {

namespace {

// The items of all iterations along a new axis; kNoNode when their types differ.
NodeId stack(Graph& g, const std::vector<NodeId>& items, int64_t axis) {
  std::vector<NodeId> parts;
  for (NodeId item : items) {
    if (is_compound(item) || is_compound(items[0])) return kNoNode;
    if (g[item].shape != g[items[0]].shape || g[item].dtype != g[items[0]].dtype)
      return kNoNode;
    parts.push_back(unsqueeze(g, item, axis));
  }
  return parts.size() == 1 ? parts[0] : concat(g, parts, axis);
}

// What a scan output of no iteration is: its declared type with a first extent of 0.
NodeId empty_stack(Graph& g, const ModelValue& declared,
                   const std::map<std::string, int64_t>& dimensions) {
  const std::optional<DType> part = complex_part(declared.onnx_type);
  const std::optional<DType> dtype = part ? part : dtype_from_onnx(declared.onnx_type);
  std::optional<Shape> shape = declared_shape(declared, dimensions);
  if (!dtype || !shape) return kNoNode;
  shape->insert(shape->begin(), 0);
  if (part) shape->push_back(2);
  return constant_int(g, *dtype, *shape, 0);
}

} // namespace

// The items of all iterations; kNoNode where sizes may differ from one to the next.
NodeId ControlFlow::stack_of(const Results& items, int64_t axis) {
  const bool complex = !items.empty() && is_complex(import_.compounds, items[0]);
  Results tensors;
  for (NodeId item : items) {
    if (is_complex(import_.compounds, item) != complex) return kNoNode;
    tensors.push_back(inside(import_.compounds, item));
    if (import_.frame.bounds.find(tensors.back())) return kNoNode;
  }
  const NodeId all = stack(g(), tensors, axis);
  return wrapped_if(import_.compounds, complex && all != kNoNode, all);
}

// Writes a loop out, iteration by iteration. `course` says why there is no result: it
// failed, the data of a run decides (`import_.missed` gets what was not known), or it
// makes more than `budget` nodes.
Results ControlFlow::unroll_loop(const ModelAttribute& body, const Results& inputs,
                                 int64_t budget, Course& course, const ModelPlace& place,
                                 const Scope& scope) {
  const auto given = [&](size_t i) { return i < inputs.size() && inputs[i] != kNoNode; };
  const auto stop = [&](Course why) {
    course = why;
    return Results{};
  };
  const size_t carried = inputs.size() < 2 ? 0 : inputs.size() - 2;
  std::optional<int64_t> trips, going = 1;
  if (given(0)) trips = known_scalar(g(), inputs[0]);
  if (given(0) && !trips)
    return import_.missed.push_back(inputs[0]), stop(Course::Unknown);
  if (given(1)) going = known_scalar(g(), inputs[1]);
  if (!given(0) && !given(1)) return stop(Course::Unknown);

  Results state(inputs.begin() + static_cast<std::ptrdiff_t>(inputs.size() - carried),
                inputs.end());
  Columns scans(body.graph->outputs.size() - carried - 1);
  NodeId condition = given(1) ? inputs[1] : kNoNode;
  const auto first = static_cast<int64_t>(g().size());
  for (int64_t i = 0; !trips || i < *trips; ++i) {
    if (!going) return import_.missed.push_back(condition), stop(Course::Unknown);
    if (*going == 0) break;
    const int64_t made = static_cast<int64_t>(g().size()) - first;
    // After two iterations it is seen how many nodes the others will make.
    const bool grows =
        i == 2 && trips && made / 2 > budget / std::max<int64_t>(*trips, 1);
    if (i == import_.limits.loop_iterations || made > budget || grows)
      return stop(Course::Long);
    Results arguments{constant_int(g(), DType::I64, declared_single(body, 0), i),
                      constant_int(g(), DType::Bool, declared_single(body, 1), 1)};
    arguments.insert(arguments.end(), state.begin(), state.end());
    const Results results = bodies_.run_body(body, arguments, place, scope);
    if (results.empty()) return stop(Course::Failed);
    // Without a condition the loop counts only, whatever the body says.
    condition = results[0];
    if (given(1)) going = known_scalar(g(), condition);
    std::copy_n(results.begin() + 1, carried, state.begin());
    for (size_t k = 0; k < scans.size(); ++k)
      scans[k].push_back(results[1 + carried + k]);
  }
  course = Course::Whole;
  for (size_t k = 0; k < scans.size(); ++k) {
    const ModelValue& declared = body.graph->outputs[1 + carried + k];
    const bool complex = complex_part(declared.onnx_type).has_value();
    const NodeId none =
        scans[k].empty() ? empty_stack(g(), declared, import_.dimensions) : kNoNode;
    state.push_back(scans[k].empty()
                        ? wrapped_if(import_.compounds, complex && none != kNoNode, none)
                        : stack_of(scans[k], 0));
    if (state.back() != kNoNode) continue;
    fail(Exit::Unsupported, "the shape of a scan output changes or is unknown", place);
    return {};
  }
  return state;
}

// A sequence or a size of the run that a loop carries has no place in a region.
bool ControlFlow::fit_region(const Results& inputs) const {
  return std::ranges::none_of(inputs, [&](NodeId id) {
    const NodeId tensor = inside(import_.compounds, id);
    return is_compound(tensor) || import_.frame.bounds.find(tensor);
  });
}

// Exporters carry variables that the body sets before it reads them, as numbers of no
// meaning. After one iteration, which is written out, all have their shapes, and the
// others are a region. Empty, without a word, where the first iteration may not run, or
// something counts it.
Results ControlFlow::loop_after_first(const ModelNode& node, const ModelAttribute& body,
                                      const Results& inputs, const ModelPlace& place,
                                      const Scope& scope) {
  if (inputs.size() < 2) return {};
  const bool counted = inputs[0] != kNoNode, conditional = inputs[1] != kNoNode;
  const int64_t trips = counted ? known_scalar(g(), inputs[0]).value_or(0) : 1;
  const int64_t going = conditional ? known_scalar(g(), inputs[1]).value_or(0) : 1;
  const ModelGraph& graph = *body.graph;
  if (trips < 1 || going == 0 || graph.outputs.size() != inputs.size() - 1 ||
      graph.inputs.empty() ||
      needed_nodes(graph.nodes, output_names(graph)).names.contains(graph.inputs[0].name))
    return {};
  Results arguments = inputs;
  arguments[0] = constant_int(g(), DType::I64, declared_single(body, 0), 0);
  arguments[1] = constant_int(g(), DType::Bool, declared_single(body, 1), 1);
  Results after = bodies_.run_body(body, arguments, place, scope);
  if (after.empty() || !fit_region(after)) return {};
  if (!conditional) after[0] = kNoNode;
  after.insert(after.begin(),
               counted ? constant_int(g(), DType::I64, {}, trips - 1) : kNoNode);
  return regions_.loop_region(node, body, after, place, scope);
}

// Short loops are written out, since what is computed across iterations then shares
// kernels; the others are regions.
Results ControlFlow::import_loop(const ModelNode& node, const std::vector<NodeId>& inputs,
                                 const ModelPlace& place, const Scope& scope) {
  const ModelAttribute* body = find_attribute(node, "body", AttributeType::Graph);
  const size_t carried = inputs.size() < 2 ? 0 : inputs.size() - 2;
  if (!body || body->graph->outputs.size() < carried + 1) {
    fail(Exit::InvalidModel, "its body does not fit its inputs", place);
    return {};
  }
  for (size_t i = 0; i < std::min<size_t>(inputs.size(), 2); ++i) {
    if (inputs[i] == kNoNode || element_count(g()[inputs[i]].shape) == 1) continue;
    fail(Exit::InvalidModel, "its trip count and its condition must be one value each",
         place);
    return {};
  }
  const Checkpoint before = checkpoint();
  Course course = Course::Whole;
  Results results = unroll_loop(*body, inputs, kUnrolledNodes, course, place, scope);
  if (course == Course::Whole || course == Course::Failed) return results;
  const bool tensors = fit_region(inputs);
  const Checkpoint apart = checkpoint();
  if (tensors) results = regions_.loop_region(node, *body, inputs, place, scope);
  if (tensors && results.empty() && course == Course::Unknown && !import_.stopped) {
    const Checkpoint refused = checkpoint();
    restore(apart);
    results = loop_after_first(node, *body, inputs, place, scope);
    if (results.empty()) restore(refused);
  }
  if (!results.empty() || course == Course::Unknown) {
    if (results.empty() && !tensors)
      fail(Exit::Unsupported,
           "its count or condition is not known when packing, and it carries a sequence "
           "or a tensor whose size depends on data",
           place);
    if (!results.empty()) import_.missed.resize(before.missed);
    return results;
  }
  if (import_.stopped) return {};
  restore(before);
  results = unroll_loop(*body, inputs, INT64_MAX, course, place, scope);
  if (course == Course::Long)
    fail(Exit::Unsupported, "it runs more iterations than can be unrolled", place);
  return results;
}

} // namespace svod::importer
