// If and Loop (and Scan, scan.cpp) whose course is known when packing become straight
// code: the branch that is taken, the iterations one after the other. An If on data
// computes both branches and selects, where both have the same type and nothing in them
// can fail at run time. A branch that does not fit the shapes of this pack cannot be
// computed at all: the other one is, and a run whose data chooses the misfit stops.
#include "importer/driver/control_flow.h"

#include "importer/formula/complex.h"

#include <algorithm>

namespace svod::importer {

const ModelAttribute* find_attribute(const ModelNode& node, std::string_view name,
                                     AttributeType type) {
  for (const ModelAttribute& attribute : node.attributes)
    if (attribute.name == name && attribute.type == type) return &attribute;
  return nullptr;
}

namespace {

bool any_poisoned(const std::vector<NodeId>& values) {
  return std::ranges::find(values, kPoisoned) != values.end();
}

// The value of a known scalar condition or count.
std::optional<int64_t> known_scalar(const Graph& g, NodeId id) {
  if (is_compound(id) || element_count(g[id].shape) != 1) return std::nullopt;
  const auto values = known_ints(g, id);
  if (!values) return std::nullopt;
  return values->front();
}

// Gather and scatter check their indices at run time; in a branch that is not taken such
// an error would be a false one.
bool can_fail(const Graph& g, NodeId first, NodeId end) {
  for (NodeId id = first; id < end; ++id)
    if (g[id].op == Op::Gather || g[id].op == Op::Scatter || has_body(g[id].op))
      return true;
  return false;
}

// Elements that both branches of an If may compute to spare the run a choice.
constexpr int64_t kSelectedWork = 1 << 16;

// How many elements some nodes compute, views and sources apart.
int64_t work_of(const Graph& g, NodeId first, NodeId end) {
  int64_t work = 0;
  for (NodeId id = first; id < end; ++id) {
    const OpClass kind = info(g[id].op).op_class;
    if (kind == OpClass::Source || kind == OpClass::View || !g.depends_on_input(id))
      continue;
    const NodeId counted = is_reduce(g[id].op) ? g[id].inputs[0] : id;
    if (__builtin_add_overflow(work, element_count(g[counted].shape), &work))
      return INT64_MAX;
  }
  return work;
}

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
NodeId GraphImport::stack_of(const Results& items, int64_t axis) {
  const bool complex = !items.empty() && is_complex(compounds_, items[0]);
  Results tensors;
  for (NodeId item : items) {
    if (is_complex(compounds_, item) != complex) return kNoNode;
    tensors.push_back(inside(compounds_, item));
    if (frame_.bounds.find(tensors.back())) return kNoNode;
  }
  const NodeId all = stack(frame_.graph, tensors, axis);
  return wrapped_if(compounds_, complex && all != kNoNode, all);
}

// What an operator computes with must be tensors; what it only passes on may be a
// sequence or an optional.
bool GraphImport::are_tensors(const ModelNode& node, const std::vector<NodeId>& inputs,
                              const ModelPlace& place) {
  const size_t tensors = node.op_type == "Loop" ? 2 : inputs.size();
  for (size_t i = 0; i < std::min(tensors, inputs.size()); ++i) {
    if (!is_compound(inside(compounds_, inputs[i]))) continue;
    fail(Exit::InvalidModel,
         "input " + std::to_string(i) + " is " + kind_text(compounds_[inputs[i]]) +
             ", which the operator does not take there",
         place);
    return false;
  }
  return true;
}

GraphImport::Results GraphImport::import_control_flow(const ModelNode& node,
                                                      const std::vector<NodeId>& inputs,
                                                      const ModelPlace& place,
                                                      const Scope& scope) {
  if (depth_ >= limits_.call_depth + limits_.nesting) {
    fail(Exit::InvalidModel, "functions and graphs are nested too deeply", place);
    return {};
  }
  Results results;
  if (!are_tensors(node, inputs, place)) return {};
  if (node.op_type == "If") {
    results = import_if(node, inputs, place, scope);
  } else {
    ++loop_depth_;
    results = node.op_type == "Loop" ? import_loop(node, inputs, place, scope)
                                     : import_scan(node, inputs, place, scope);
    --loop_depth_;
  }
  if (results.empty() || results.size() >= node.outputs.size()) return results;
  fail(Exit::InvalidModel, "it has more outputs than its graph gives", place);
  return {};
}

// The results of one nested graph; empty when it failed.
GraphImport::Results GraphImport::run_body(const ModelAttribute& body,
                                           const Results& inputs, const ModelPlace& place,
                                           const Scope& outer) {
  const ModelGraph& graph = *body.graph;
  if (!count_node(place)) return {};
  if (graph.inputs.size() != inputs.size()) {
    fail(Exit::InvalidModel,
         "graph '" + body.name + "' has " + std::to_string(graph.inputs.size()) +
             " inputs, the operator gives it " + std::to_string(inputs.size()),
         place);
    return {};
  }
  Scope scope;
  scope.outer = &outer;
  scope.frame = outer.frame;
  scope.path = place_path(place) + "/" + body.name;
  open_graph(graph, scope);
  for (size_t i = 0; i < inputs.size(); ++i)
    scope.values[graph.inputs[i].name] = inputs[i];
  ++depth_;
  import_nodes(graph.nodes, needed_nodes(graph.nodes, output_names(graph)), scope);
  --depth_;
  Results results;
  for (const ModelValue& output : graph.outputs)
    results.push_back(look_up(scope, output.name, place));
  if (stopped_ || any_poisoned(results)) return {};
  if (std::ranges::find(results, kNoNode) == results.end()) return results;
  fail(Exit::InvalidModel, "a result of graph '" + body.name + "' was left out", place);
  return {};
}

// For rules whose operator has a graph as attribute; `run_body` with the limit of
// nesting.
GraphImport::Results GraphImport::run_graph_attribute(const ModelAttribute& body,
                                                      const Results& inputs,
                                                      const ModelPlace& place,
                                                      const Scope& outer) {
  if (depth_ < limits_.call_depth + limits_.nesting)
    return run_body(body, inputs, place, outer);
  fail(Exit::InvalidModel, "functions and graphs are nested too deeply", place);
  return {};
}

// The branch that runs when `condition` is true. `misfits`: it failed, and only because
// it does not fit the shapes it gets.
GraphImport::Results GraphImport::run_branch(const ModelAttribute& body, NodeId condition,
                                             const ModelPlace& place, const Scope& scope,
                                             bool& misfits) {
  const CompoundTable::Assumption assumption(compounds_, condition);
  const int64_t lacks_before = lacks_;
  Results results = run_body(body, {}, place, scope);
  misfits = results.empty() && lacks_ == lacks_before && !stopped_;
  return results;
}

// The results of an If whose branch `misfit` cannot run with these shapes.
GraphImport::Results GraphImport::only_branch(const ModelAttribute& misfit,
                                              const Results& results, NodeId chosen,
                                              const ModelPlace& place) {
  diags_.warning("its " + misfit.name +
                     " does not fit the shapes of this pack; a run that chooses it stops",
                 place);
  Results guarded;
  for (NodeId result : results) {
    const NodeId tensor = inside(compounds_, result);
    const Bounded* bounded = frame_.bounds.find(tensor);
    const NodeId value = bounded ? bounded->tensor : tensor;
    NodeId kept = compounds_.guarded(frame_.graph, value, chosen);
    if (bounded) kept = frame_.bounds.add(frame_.graph, kept, Counts(bounded->counts));
    guarded.push_back(wrapped_if(compounds_, tensor != result, kept));
  }
  return guarded;
}

GraphImport::Results GraphImport::import_if(const ModelNode& node,
                                            const std::vector<NodeId>& inputs,
                                            const ModelPlace& place, const Scope& scope) {
  const ModelAttribute* yes = find_attribute(node, "then_branch", AttributeType::Graph);
  const ModelAttribute* no = find_attribute(node, "else_branch", AttributeType::Graph);
  if (!yes || !no || inputs.size() != 1 || frame_.graph[inputs[0]].dtype != DType::Bool ||
      element_count(frame_.graph[inputs[0]].shape) != 1) {
    fail(Exit::InvalidModel, "it needs one condition and two branches", place);
    return {};
  }
  if (const auto known = known_scalar(frame_.graph, inputs[0]))
    return run_body(*known ? *yes : *no, {}, place, scope);

  const auto first_new = static_cast<NodeId>(frame_.graph.size());
  ++open_choices_;
  const Diags before = diags_;
  bool yes_misfits = false, no_misfits = false;
  const NodeId otherwise = map(frame_.graph, Op::Not, {inputs[0]});
  const Results taken = run_branch(*yes, inputs[0], place, scope, yes_misfits);
  const Diags of_yes = diags_;
  if (yes_misfits) diags_ = before;
  const Results other = run_branch(*no, otherwise, place, scope, no_misfits);
  --open_choices_;
  if (yes_misfits && !other.empty()) return only_branch(*yes, other, otherwise, place);
  if (no_misfits && !taken.empty()) {
    diags_ = of_yes;
    return only_branch(*no, taken, inputs[0], place);
  }
  if (yes_misfits) diags_ = of_yes; // what the other branch lacks is found another time
  if (taken.empty() || other.empty()) return {};
  const bool fails =
      can_fail(frame_.graph, first_new, static_cast<NodeId>(frame_.graph.size()));
  Results results;
  bool same = taken.size() == other.size();
  for (size_t i = 0; same && i < taken.size(); ++i) {
    // Of sizes that differ by branch there is no one mask.
    const bool bounded = frame_.bounds.find(inside(compounds_, taken[i])) ||
                         frame_.bounds.find(inside(compounds_, other[i]));
    results.push_back(
        bounded ? kNoNode
                : compounds_.select(frame_.graph, inputs[0], taken[i], other[i]));
    same = results.back() != kNoNode;
  }
  // Computing both is right where nothing can fail, and cheap where they are small.
  const auto end = static_cast<NodeId>(frame_.graph.size());
  if (same && !fails && work_of(frame_.graph, first_new, end) <= kSelectedWork)
    return results;
  const Results region = if_region(*yes, *no, inputs[0], place, scope);
  if (!region.empty()) return region;
  if (same && !fails) return results;
  missed_.push_back(inputs[0]);
  fail(Exit::Unsupported,
       same ? "its condition is not known when packing, and a branch looks values up by "
              "index"
            : "its condition is not known when packing, and its branches give results of "
              "different shapes",
       place);
  return {};
}

// A body may declare its counter or its condition as [1] where the operator has a scalar.
Shape GraphImport::declared_single(const ModelAttribute& body, size_t i) {
  if (i >= body.graph->inputs.size()) return {}; // run_body() reports it
  const auto& dims = body.graph->inputs[i].dims;
  return dims && dims->size() == 1 ? Shape{1} : Shape{};
}

// Writes a loop out, iteration by iteration. `course` says why there is no result: it
// failed, the data of a run decides (`missed_` gets what was not known), or it makes more
// than `budget` nodes.
GraphImport::Results GraphImport::unroll_loop(const ModelAttribute& body,
                                              const Results& inputs, int64_t budget,
                                              Course& course, const ModelPlace& place,
                                              const Scope& scope) {
  const auto given = [&](size_t i) { return i < inputs.size() && inputs[i] != kNoNode; };
  const auto stop = [&](Course why) {
    course = why;
    return Results{};
  };
  const size_t carried = inputs.size() < 2 ? 0 : inputs.size() - 2;
  std::optional<int64_t> trips, going = 1;
  if (given(0)) trips = known_scalar(frame_.graph, inputs[0]);
  if (given(0) && !trips) return missed_.push_back(inputs[0]), stop(Course::Unknown);
  if (given(1)) going = known_scalar(frame_.graph, inputs[1]);
  if (!given(0) && !given(1)) return stop(Course::Unknown);

  Results state(inputs.begin() + static_cast<std::ptrdiff_t>(inputs.size() - carried),
                inputs.end());
  Columns scans(body.graph->outputs.size() - carried - 1);
  NodeId condition = given(1) ? inputs[1] : kNoNode;
  const auto first = static_cast<int64_t>(frame_.graph.size());
  for (int64_t i = 0; !trips || i < *trips; ++i) {
    if (!going) return missed_.push_back(condition), stop(Course::Unknown);
    if (*going == 0) break;
    const int64_t made = static_cast<int64_t>(frame_.graph.size()) - first;
    // After two iterations it is seen how many nodes the others will make.
    const bool grows =
        i == 2 && trips && made / 2 > budget / std::max<int64_t>(*trips, 1);
    if (i == limits_.loop_iterations || made > budget || grows) return stop(Course::Long);
    Results arguments{
        constant_int(frame_.graph, DType::I64, declared_single(body, 0), i),
        constant_int(frame_.graph, DType::Bool, declared_single(body, 1), 1)};
    arguments.insert(arguments.end(), state.begin(), state.end());
    const Results results = run_body(body, arguments, place, scope);
    if (results.empty()) return stop(Course::Failed);
    // Without a condition the loop counts only, whatever the body says.
    condition = results[0];
    if (given(1)) going = known_scalar(frame_.graph, condition);
    std::copy_n(results.begin() + 1, carried, state.begin());
    for (size_t k = 0; k < scans.size(); ++k)
      scans[k].push_back(results[1 + carried + k]);
  }
  course = Course::Whole;
  for (size_t k = 0; k < scans.size(); ++k) {
    const ModelValue& declared = body.graph->outputs[1 + carried + k];
    const bool complex = complex_part(declared.onnx_type).has_value();
    const NodeId none =
        scans[k].empty() ? empty_stack(frame_.graph, declared, dimensions_) : kNoNode;
    state.push_back(scans[k].empty()
                        ? wrapped_if(compounds_, complex && none != kNoNode, none)
                        : stack_of(scans[k], 0));
    if (state.back() != kNoNode) continue;
    fail(Exit::Unsupported, "the shape of a scan output changes or is unknown", place);
    return {};
  }
  return state;
}

// Short loops are written out, since what is computed across iterations then shares
// kernels; the others are regions.
GraphImport::Results GraphImport::import_loop(const ModelNode& node,
                                              const std::vector<NodeId>& inputs,
                                              const ModelPlace& place,
                                              const Scope& scope) {
  const ModelAttribute* body = find_attribute(node, "body", AttributeType::Graph);
  const size_t carried = inputs.size() < 2 ? 0 : inputs.size() - 2;
  if (!body || body->graph->outputs.size() < carried + 1) {
    fail(Exit::InvalidModel, "its body does not fit its inputs", place);
    return {};
  }
  const Checkpoint before = checkpoint();
  Course course = Course::Whole;
  Results results = unroll_loop(*body, inputs, kUnrolledNodes, course, place, scope);
  if (course == Course::Whole || course == Course::Failed) return results;
  // A sequence or a size of the run that the loop carries has no place in a region.
  const bool tensors = std::ranges::none_of(inputs, [&](NodeId id) {
    const NodeId tensor = inside(compounds_, id);
    return is_compound(tensor) || frame_.bounds.find(tensor);
  });
  if (tensors) results = loop_region(node, *body, inputs, place, scope);
  if (!results.empty() || course == Course::Unknown) {
    if (results.empty() && !tensors)
      fail(Exit::Unsupported,
           "its count or condition is not known when packing, and it carries a sequence "
           "or a tensor whose size depends on data",
           place);
    if (!results.empty()) missed_.resize(before.missed);
    return results;
  }
  if (stopped_) return {};
  restore(before);
  results = unroll_loop(*body, inputs, INT64_MAX, course, place, scope);
  if (course == Course::Long)
    fail(Exit::Unsupported, "it runs more iterations than can be unrolled", place);
  return results;
}

} // namespace svod::importer
