// If, Loop (loop.cpp) and Scan (scan.cpp) whose course is known when packing become
// straight code: the branch that is taken, the iterations one after the other. An If on
// data computes both branches and selects, where both have the same type and nothing in
// them can fail at run time, and is a region (if_region.cpp) otherwise. A branch that
// does not fit the shapes of this pack cannot be computed at all: the other one is, and a
// run whose data chooses the misfit stops.
#include "importer/driver/control_flow.h"

#include "importer/formula/complex.h"
#include "importer/inputs/input_shapes.h"

#include <algorithm>

namespace svod::importer {

const ModelAttribute* find_attribute(const ModelNode& node, std::string_view name,
                                     AttributeType type) {
  for (const ModelAttribute& attribute : node.attributes)
    if (attribute.name == name && attribute.type == type) return &attribute;
  return nullptr;
}

std::optional<int64_t> known_scalar(const Graph& g, NodeId id) {
  if (is_compound(id) || element_count(g[id].shape) != 1) return std::nullopt;
  const auto values = known_ints(g, id);
  if (!values) return std::nullopt;
  return values->front();
}

namespace {

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

} // namespace

// What an operator computes with must be tensors; what it only passes on may be a
// sequence or an optional.
bool ControlFlow::are_tensors(const ModelNode& node, const std::vector<NodeId>& inputs,
                              const ModelPlace& place) {
  const size_t tensors = node.op_type == "Loop" ? 2 : inputs.size();
  for (size_t i = 0; i < std::min(tensors, inputs.size()); ++i) {
    if (!is_compound(inside(import_.compounds, inputs[i]))) continue;
    fail(Exit::InvalidModel,
         "input " + std::to_string(i) + " is " + kind_text(import_.compounds[inputs[i]]) +
             ", which the operator does not take there",
         place);
    return false;
  }
  return true;
}

// Whether a graph of the operator has no outputs for the node, so that no results are no
// failure of their own.
static bool gives_nothing(const ModelNode& node) {
  const size_t kept = node.op_type == "Loop" ? 1 : 0; // the condition is the loop's
  return std::ranges::any_of(node.attributes, [&](const ModelAttribute& attribute) {
    return attribute.graph && attribute.graph->outputs.size() <= kept;
  });
}

Results ControlFlow::import_control_flow(const ModelNode& node,
                                         const std::vector<NodeId>& inputs,
                                         const ModelPlace& place, const Scope& scope) {
  if (import_.depth >= import_.limits.call_depth + import_.limits.nesting) {
    fail(Exit::InvalidModel, "functions and graphs are nested too deeply", place);
    return {};
  }
  Results results;
  if (!are_tensors(node, inputs, place)) return {};
  if (node.op_type == "If") {
    results = import_if(node, inputs, place, scope);
  } else {
    ++import_.loop_depth;
    results = node.op_type == "Loop" ? import_loop(node, inputs, place, scope)
                                     : import_scan(node, inputs, place, scope);
    --import_.loop_depth;
  }
  if (results.size() >= node.outputs.size()) return results;
  if (results.empty() && !gives_nothing(node)) return {}; // the reason is told
  fail(Exit::InvalidModel, "it has more outputs than its graph gives", place);
  return {};
}

// The branch that runs when `condition` is true. `misfits`: it failed, and only because
// it does not fit the shapes it gets.
Results ControlFlow::run_branch(const ModelAttribute& body, NodeId condition,
                                const ModelPlace& place, const Scope& scope,
                                bool& misfits) {
  const CompoundTable::Assumption assumption(import_.compounds, condition);
  const int64_t lacks_before = import_.lacks;
  Results results = bodies_.run_body(body, {}, place, scope);
  misfits = results.empty() && import_.lacks == lacks_before && !import_.stopped;
  return results;
}

// The results of an If whose branch `misfit` cannot run with these shapes.
Results ControlFlow::only_branch(const ModelAttribute& misfit, const Results& results,
                                 NodeId chosen, const ModelPlace& place) {
  import_.diags.warning(
      "its " + misfit.name +
          " does not fit the shapes of this pack; a run that chooses it stops",
      place);
  import_.interface.left_out.push_back(misfit.name + " of node " + quoted(place.name));
  Results guarded;
  for (NodeId result : results) {
    const NodeId tensor = inside(import_.compounds, result);
    const Bounded* bounded = import_.frame.bounds.find(tensor);
    const NodeId value = bounded ? bounded->tensor : tensor;
    NodeId kept = import_.compounds.guarded(g(), value, chosen);
    if (bounded) kept = import_.frame.bounds.add(g(), kept, Counts(bounded->counts));
    guarded.push_back(wrapped_if(import_.compounds, tensor != result, kept));
  }
  return guarded;
}

Results ControlFlow::import_if(const ModelNode& node, const std::vector<NodeId>& inputs,
                               const ModelPlace& place, const Scope& scope) {
  const ModelAttribute* yes = find_attribute(node, "then_branch", AttributeType::Graph);
  const ModelAttribute* no = find_attribute(node, "else_branch", AttributeType::Graph);
  if (!yes || !no || inputs.size() != 1 || g()[inputs[0]].dtype != DType::Bool ||
      element_count(g()[inputs[0]].shape) != 1) {
    fail(Exit::InvalidModel, "it needs one condition and two branches", place);
    return {};
  }
  if (const auto known = known_scalar(g(), inputs[0]))
    return bodies_.run_body(*known ? *yes : *no, {}, place, scope);

  const auto first_new = static_cast<NodeId>(g().size());
  ++import_.open_choices;
  const Diags before = import_.diags;
  bool yes_misfits = false, no_misfits = false;
  const NodeId otherwise = map(g(), Op::Not, {inputs[0]});
  const Results taken = run_branch(*yes, inputs[0], place, scope, yes_misfits);
  const Diags of_yes = import_.diags;
  if (yes_misfits) import_.diags = before;
  const Results other = run_branch(*no, otherwise, place, scope, no_misfits);
  --import_.open_choices;
  if (yes_misfits && !other.empty()) return only_branch(*yes, other, otherwise, place);
  if (no_misfits && !taken.empty()) {
    import_.diags = of_yes;
    return only_branch(*no, taken, inputs[0], place);
  }
  if (yes_misfits)
    import_.diags = of_yes; // what the other branch lacks is found another time
  if (taken.empty() || other.empty()) return {};
  const bool fails = can_fail(g(), first_new, static_cast<NodeId>(g().size()));
  Results results;
  bool same = taken.size() == other.size();
  for (size_t i = 0; same && i < taken.size(); ++i) {
    // Of sizes that differ by branch there is no one mask.
    const bool bounded = import_.frame.bounds.find(inside(import_.compounds, taken[i])) ||
                         import_.frame.bounds.find(inside(import_.compounds, other[i]));
    results.push_back(
        bounded ? kNoNode : import_.compounds.select(g(), inputs[0], taken[i], other[i]));
    same = results.back() != kNoNode;
  }
  // Computing both is right where nothing can fail, and cheap where they are small.
  const auto end = static_cast<NodeId>(g().size());
  if (same && !fails && work_of(g(), first_new, end) <= kSelectedWork) return results;
  const Results region = regions_.if_region(*yes, *no, inputs[0], place, scope);
  if (!region.empty()) return region;
  if (same && !fails) return results;
  import_.missed.push_back(inputs[0]);
  fail(Exit::Unsupported,
       same ? "its condition is not known when packing, and a branch looks values up by "
              "index"
            : "its condition is not known when packing, and its branches give results of "
              "different shapes",
       place);
  return {};
}

} // namespace svod::importer
