// Walks a graph's nodes in order. Only nodes that the outputs need are looked at, so a
// dead node of an unknown operator stops nothing. A node that fails is reported once; its
// results are poisoned, and nodes that depend on them stay silent, so that every message
// is a root cause.
#include "importer/driver/import.h"

#include "compiler/support/check.h"
#include "importer/driver/custom_call.h"
#include "importer/driver/graph_import.h"
#include "importer/formula/complex.h"
#include "importer/formula/packing.h"
#include "importer/operators/onnx_ops.h"
#include "importer/operators/signature.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace svod::importer {

namespace {

// Names that the graphs inside a node's attributes take from around them. Names they make
// themselves are in the list too, which is harmless: no name around them is equal.
void add_captured(const ModelNode& node, std::unordered_set<std::string_view>& names) {
  add_gradient_names(node, names);
  for (const ModelAttribute& attribute : node.attributes) {
    if (!attribute.graph) continue;
    for (const ModelNode& inner : attribute.graph->nodes) {
      names.insert(inner.inputs.begin(), inner.inputs.end());
      add_captured(inner, names);
    }
    for (const ModelValue& output : attribute.graph->outputs) names.insert(output.name);
  }
}

// Operators outside the standard, and those of the standard in the opsets before, when
// they were com.microsoft's with other types.
bool has_published_types(const ModelNode& node, int64_t opset) {
  const Signature* signature = find_signature(node.domain, node.op_type, opset);
  return signature && signature->first <= opset;
}

} // namespace

Needed needed_nodes(const std::vector<ModelNode>& nodes,
                    const std::vector<std::string_view>& wanted) {
  Needed needed;
  needed.names.insert(wanted.begin(), wanted.end());
  needed.live.resize(nodes.size());
  for (size_t i = nodes.size(); i-- > 0;) {
    needed.live[i] = std::ranges::any_of(nodes[i].outputs, [&](const std::string& name) {
      return !name.empty() && needed.names.contains(name);
    });
    if (!needed.live[i]) continue;
    needed.names.insert(nodes[i].inputs.begin(), nodes[i].inputs.end());
    add_captured(nodes[i], needed.names);
  }
  return needed;
}

std::vector<std::string_view> output_names(const ModelGraph& graph) {
  std::vector<std::string_view> names;
  for (const ModelValue& output : graph.outputs) names.push_back(output.name);
  return names;
}

void GraphImport::fail(Exit exit, const std::string& what, const ModelPlace& place) {
  // A branch that the data may never choose need not fit these shapes: the model is
  // valid.
  if (exit == Exit::InvalidModel && open_choices_ > 0)
    exit = Exit::Unsupported;
  else
    ++lacks_;
  // Thousands of lines help nobody; the rest is counted.
  constexpr size_t kMostErrors = 1000;
  if (diags_.error_count() < kMostErrors)
    diags_.error(exit, what, place);
  else
    ++more_errors_;
}

void GraphImport::poison(const ModelNode& node, Scope& scope) {
  for (const std::string& name : node.outputs) scope.values[name] = kPoisoned;
}

// One more node or iteration; false when the model is over a limit, which ends the
// import.
bool GraphImport::count_node(const ModelPlace& place) {
  if (stopped_) return false;
  if (++imported_nodes_ > limits_.nodes) {
    fail(Exit::InvalidModel,
         "with its functions inlined the model has more nodes than the limit of " +
             std::to_string(limits_.nodes),
         place);
    stopped_ = true;
  } else if (loop_depth_ > 0 && ++unrolled_nodes_ > limits_.unrolled_nodes) {
    fail(Exit::Unsupported,
         "unrolled, the model's loops have more nodes than the limit of " +
             std::to_string(limits_.unrolled_nodes),
         place);
    stopped_ = true;
  } else if (static_cast<int64_t>(frame_.graph.size()) > limits_.graph_nodes) {
    fail(Exit::InvalidModel,
         "the model needs more operations than the limit of " +
             std::to_string(limits_.graph_nodes),
         place);
    stopped_ = true;
  }
  return !stopped_;
}

NodeId GraphImport::make_tensor(const ModelTensor& tensor, const ModelPlace& place) {
  const auto known = frame_.tensors.find(&tensor);
  if (known != frame_.tensors.end()) return known->second;
  NodeId id = kPoisoned;
  const std::optional<DType> dtype = dtype_from_onnx(tensor.onnx_type);
  if (const auto part = complex_part(tensor.onnx_type))
    id = complex_weight(frame_.graph, compounds_, tensor, *part);
  else if (dtype == DType::String)
    id = frame_.strings.tensor(frame_.graph, tensor.dims, tensor.strings);
  else if (dtype)
    id = weight_of(frame_.graph, tensor, *dtype);
  else
    fail(Exit::Unsupported,
         "initializer " + quoted(tensor.name) + " has element type " +
             onnx_type_name(tensor.onnx_type) + ", which is not supported",
         place);
  frame_.tensors.emplace(&tensor, id);
  return id;
}

NodeId GraphImport::look_up(const Scope& scope, std::string_view name,
                            const ModelPlace& place) {
  for (const Scope* at = &scope; at; at = at->outer) {
    if (const auto found = at->values.find(name); found != at->values.end())
      return capture(found->second, at->level, place);
    if (const auto found = at->initializers.find(name); found != at->initializers.end())
      return make_tensor(*found->second, place);
  }
  SVOD_CHECK(false) << "no value " << quoted(name); // check_model saw to that
  return kPoisoned;
}

// The node with attribute references replaced by what the call of the function gives, and
// without the names of outputs that nobody needs.
std::optional<ModelNode> GraphImport::resolved(const ModelNode& node,
                                               const Needed& needed, const Scope& scope,
                                               const ModelPlace& place) {
  ModelNode copy = node;
  for (std::string& name : copy.outputs)
    if (!needed.names.contains(name)) name.clear();
  std::vector<ModelAttribute> attributes;
  for (ModelAttribute& attribute : copy.attributes) {
    if (attribute.reference.empty()) {
      attributes.push_back(std::move(attribute));
      continue;
    }
    const auto given = scope.frame->attributes.find(attribute.reference);
    if (given == scope.frame->attributes.end()) {
      if (scope.frame->in_function) continue; // left out by the call: left out here
      fail(Exit::InvalidModel,
           "attribute " + quoted(attribute.name) +
               " refers to an attribute of a function",
           place);
      return std::nullopt;
    }
    attributes.push_back(*given->second);
    attributes.back().name = attribute.name;
  }
  copy.attributes = std::move(attributes);
  return copy;
}

GraphImport::Results GraphImport::run_rule(const OnnxForm& form,
                                           const ModelNode& original,
                                           const ModelNode& node, const Results& inputs,
                                           const ModelPlace& place, const Scope& scope) {
  if (!check_attributes(node, form.attributes, place)) return {};
  const OnnxOp& row = *find_onnx_op(node.domain, node.op_type);
  const bool strings = std::ranges::any_of(inputs, [&](NodeId id) {
    return id < frame_.graph.size() && frame_.graph[id].dtype == DType::String;
  });
  if (strings && !row.strings) {
    fail(Exit::Unsupported, "strings as inputs of " + full_op_name(node), place);
    return {};
  }
  const BoundedRule bounded = counts_of(inputs).empty() ? nullptr : row.bounded;
  const auto import_rule = [&](NodeImport& rule) {
    if (!rule.input_counts.empty() && !bounded) refuse_sizes(rule);
    bounded ? bounded(rule, form.rule) : form.rule(rule);
  };
  return run_import(import_rule, form.attributes, original, node, inputs, place, scope);
}

// What the rule of one node may ask of the import. Nodes that are made for it had sources
// of their own, so the node's is opened again behind them.
class GraphImport::NodeHost : public RuleHost {
public:
  NodeHost(GraphImport& import, const ModelPlace& place, const Scope& scope)
      : import_(import), place_(place), scope_(scope) {}

  std::vector<NodeId> run_graph(const ModelAttribute& body,
                                const std::vector<NodeId>& inputs) override {
    Results results = import_.run_graph_attribute(body, inputs, place_, scope_);
    import_.frame_.graph.open_source(place_path(place_));
    return results;
  }

  RuleLoopResult run_loop(const RuleLoop& loop) override {
    const size_t around = loops_.size();
    loops_.push_back(import_.open_bodies_.size());
    RuleLoopResult result;
    try {
      result = import_.rule_region(loop, place_, scope_);
    } catch (...) {
      loops_.resize(around);
      throw;
    }
    loops_.resize(around);
    import_.frame_.graph.open_source(place_path(place_));
    return result;
  }

  NodeId here(NodeId value) override {
    if (loops_.empty()) return value;
    const NodeId inside = import_.capture(value, loops_.back(), place_);
    if (inside == kPoisoned) throw RuleFailure{};
    return inside;
  }

private:
  GraphImport& import_;
  const ModelPlace& place_;
  const Scope& scope_;
  std::vector<size_t> loops_; // that are being made: how many bodies are around each
};

GraphImport::Results
GraphImport::run_import(const std::function<void(NodeImport&)>& import_rule,
                        std::span<const NodeImport::AttributeRow> attributes,
                        const ModelNode& original, const ModelNode& node,
                        const Results& inputs, const ModelPlace& place,
                        const Scope& scope) {
  const int64_t opset = version_of(node, *scope.frame->opsets);
  NodeImport rule(frame_.graph, node, opset, without_bounds(inputs), attributes);
  rule.exact = options_.exact;
  rule.input_counts = counts_of(inputs);
  rule.position = imported_nodes_;
  rule.in_loop = loop_depth_ > 0;
  rule.pairs = complex_pairs_;
  rule.in_region = in_loop_region();
  rule.size_limit = std::min(limits_.size, kMostExtent);
  rule.image_height = limits_.image_height, rule.image_width = limits_.image_width;
  NodeHost host(*this, place, scope);
  rule.host = &host;
  rule.compounds = &compounds_;
  rule.bounds = &frame_.bounds;
  rule.ranges = &frame_.ranges;
  rule.strings = &frame_.strings;
  for (const std::string& name : original.outputs) {
    const auto declared = scope.declared.find(name);
    rule.declared_shapes.push_back(declared == scope.declared.end()
                                       ? std::nullopt
                                       : declared_shape(*declared->second, dimensions_));
  }
  const auto first_new = static_cast<NodeId>(frame_.graph.size());
  const size_t first_blob = frame_.graph.blob_count();
  try {
    frame_.graph.open_source(place_path(place));
    import_rule(rule);
    keep_promises(rule);
    frame_.graph.close_source();
  } catch (const TooLarge&) {
    frame_.graph.close_source();
    fail(Exit::InvalidModel, "the shape of its result is over the limit", place);
    return {};
  } catch (const WrongType&) {
    frame_.graph.close_source();
    SVOD_CHECK(!has_published_types(node, opset)) << "types that its schema allows";
    fail(Exit::InvalidModel, "the element types of its inputs do not go together", place);
    note_inputs(node, inputs, place);
    return {};
  } catch (const RuleFailure& failure) {
    frame_.graph.close_source();
    if (failure.why.empty()) return {};
    fail(failure.unsupported ? Exit::Unsupported : Exit::InvalidModel, failure.why,
         place);
    note_inputs(node, inputs, place);
    for (const Results* needed : {&failure.unknown, &std::as_const(rule.unknown)})
      missed_.insert(missed_.end(), needed->begin(), needed->end());
    return {};
  }
  if (!check_results(rule, first_new, first_blob, place)) return {};
  Results results = rule.results();
  for (size_t i = 0; i < rule.output_counts.size() && i < results.size(); ++i)
    if (!rule.output_counts[i].empty() && results[i] != kNoNode)
      results[i] = frame_.bounds.add(frame_.graph, results[i], rule.output_counts[i]);
  return results;
}

// The body of an operator whose own rule takes no bounded inputs: its parts may.
const Callable* GraphImport::sizes_want_body(const ModelNode& node, const Results& inputs,
                                             int64_t opset) const {
  const OnnxOp* row = find_onnx_op(node.domain, node.op_type);
  if (counts_of(inputs).empty() || (row && row->bounded)) return nullptr;
  return find_standard_body(node.domain, node.op_type, opset);
}

// Inputs as rules see them: a bounded tensor itself, not the node that stands for it.
GraphImport::Results GraphImport::without_bounds(const Results& inputs) const {
  Results out = inputs;
  for (NodeId& id : out)
    if (const Bounded* bounded = frame_.bounds.find(id)) id = bounded->tensor;
  return out;
}

// Empty when no input is bounded.
std::vector<Counts> GraphImport::counts_of(const Results& inputs) const {
  std::vector<Counts> out(inputs.size());
  bool any = false;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (const Bounded* bounded = frame_.bounds.find(inputs[i])) {
      out[i] = bounded->counts;
      any = true;
    }
  return any ? out : std::vector<Counts>{};
}

// An operator whose row has no `bounded`.
void GraphImport::refuse_sizes(const NodeImport& rule) {
  for (size_t i = 0; i < rule.input_counts.size(); ++i)
    for (size_t axis = 0; axis < rule.input_counts[i].size(); ++axis)
      if (rule.input_counts[i][axis] != kNoNode)
        refuse_bounded(rule, i, static_cast<int64_t>(axis));
}

// Nobody imports this node, which is reported already: what the user could write.
void GraphImport::note_declaration(const ModelNode& node,
                                   const std::vector<NodeId>& inputs,
                                   const ModelPlace& place, const Scope& scope) {
  std::vector<DeclaredOutput> outputs(node.outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto declared = scope.declared.find(node.outputs[i]);
    if (declared == scope.declared.end()) continue;
    outputs[i].dtype = dtype_from_onnx(declared->second->onnx_type);
    outputs[i].shape = declared_shape(*declared->second, dimensions_);
  }
  if (more_errors_ == 0)
    diags_.note("with --custom-op FILE.cpp it may be your own function: " +
                    custom_declaration(frame_.graph, node, inputs, outputs),
                place);
}

// A standard or published operator: by its row, or by the body of its specification.
GraphImport::Results GraphImport::import_operator(const ModelNode& original,
                                                  const ModelNode& node,
                                                  const Results& inputs,
                                                  const ModelPlace& place,
                                                  const Scope& scope) {
  const int64_t opset = version_of(node, *scope.frame->opsets);
  if (const Callable* body = sizes_want_body(node, inputs, opset))
    return inline_function(*body, node, inputs, place);
  if (const OnnxForm* form = find_onnx_form(node.domain, node.op_type, opset))
    return run_rule(*form, original, node, inputs, place, scope);
  if (const Callable* body = find_standard_body(node.domain, node.op_type, opset))
    return inline_function(*body, node, inputs, place);
  note_declaration(node, inputs, place, scope);
  return {};
}

// `original` holds the names that scopes refer to; `node` is its resolved copy.
void GraphImport::import_node(const ModelNode& original, const ModelNode& node,
                              const ModelPlace& place, Scope& scope) {
  std::vector<NodeId> inputs;
  bool poisoned = false;
  for (const std::string& name : node.inputs) {
    inputs.push_back(name.empty() ? kNoNode : look_up(scope, name, place));
    poisoned |= inputs.back() == kPoisoned;
  }
  poison(original, scope);
  if (poisoned) return;
  while (!inputs.empty() && inputs.back() == kNoNode) inputs.pop_back();

  const int64_t opset = version_of(node, *scope.frame->opsets);
  Results results;
  const auto custom = find_custom_ops(options_.custom_ops, node);
  if (!custom.empty())
    results = run_import(
        [&](NodeImport& call) {
          if (!call.input_counts.empty()) refuse_sizes(call);
          import_custom_call(call, custom);
        },
        {}, original, node, inputs, place, scope);
  else if (const Callable* function = functions_.find(node))
    results = inline_function(*function, node, inputs, place);
  else if (!check_signature(node, inputs, opset, place))
    return;
  else if (is_gradient(node.domain, node.op_type))
    results = import_gradient(node, inputs, place, scope);
  else if (is_control_flow(node.domain, node.op_type))
    results = import_control_flow(node, inputs, place, scope);
  else if (std::ranges::any_of(inputs, [&](NodeId id) { return has_complex(id); }))
    results = import_complex(original, node, inputs, place, scope);
  else
    results = import_operator(original, node, inputs, place, scope);
  if (compounds_.items() > limits_.sequence_items && !stopped_) {
    fail(Exit::InvalidModel, "the model's sequences are over the limit", place);
    stopped_ = true;
    return;
  }
  for (size_t i = 0; i < results.size() && i < node.outputs.size(); ++i)
    if (!node.outputs[i].empty()) scope.values[original.outputs[i]] = results[i];
}

void GraphImport::import_nodes(const std::vector<ModelNode>& nodes, const Needed& needed,
                               Scope& scope) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!needed.live[i]) continue;
    const ModelPlace place{static_cast<int64_t>(i), scope.path, nodes[i].name,
                           full_op_name(nodes[i])};
    const std::optional<ModelNode> node =
        count_node(place) ? resolved(nodes[i], needed, scope, place) : std::nullopt;
    if (node)
      import_node(nodes[i], *node, place, scope);
    else
      poison(nodes[i], scope);
  }
}

void GraphImport::open_graph(const ModelGraph& graph, Scope& scope) {
  scope.level = open_bodies_.size();
  for (const ModelTensor& tensor : graph.initializers)
    scope.initializers.emplace(tensor.name, &tensor);
  if (declarations_stale_) return;
  for (const auto* values : {&graph.values, &graph.outputs})
    for (const ModelValue& value : *values) scope.declared.emplace(value.name, &value);
}

std::optional<Graph> GraphImport::run() {
  const ModelGraph& graph = model_.graph;
  std::optional<InputShapes> shapes = bind_input_shapes(graph, options_, diags_);
  const Needed needed = needed_nodes(graph.nodes, output_names(graph));
  CallFrame frame;
  frame.opsets = &model_.opsets;
  if (!check_size()) return std::nullopt;
  check_support(graph.nodes, needed, frame, "");
  if (!shapes) return std::nullopt;

  dimensions_ = shapes->dimensions;
  declarations_stale_ = shapes->replaced;
  interface_.sizes_replaced = shapes->replaced;
  Scope scope;
  scope.frame = &frame;
  open_graph(graph, scope);
  add_inputs(*shapes, scope);
  import_nodes(graph.nodes, needed, scope);
  add_outputs(scope);
  if (more_errors_ > 0)
    diags_.note("there are " + std::to_string(more_errors_) + " more errors");
  if (diags_.failed()) return std::nullopt;
  SVOD_CHECK(interface_.outputs.size() == graph.outputs.size()) << "an output was lost";
  return std::move(frame_.graph);
}

} // namespace svod::importer
