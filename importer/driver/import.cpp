// Walks a graph's nodes in order and finds who imports each. A node that fails is
// reported once; its results are poisoned, and nodes that depend on them stay silent, so
// that every message is a root cause.
#include "importer/driver/import.h"

#include "compiler/support/check.h"
#include "importer/driver/custom_call.h"
#include "importer/driver/graph_import.h"
#include "importer/driver/ports.h"
#include "importer/driver/support.h"
#include "importer/operators/onnx_ops.h"

#include <algorithm>
#include <utility>

namespace svod::importer {

static void poison(const ModelNode& node, Scope& scope) {
  for (const std::string& name : node.outputs) scope.values[name] = kPoisoned;
}

// One more node or iteration; false when the model is over a limit, which ends the
// import.
bool GraphImport::count_node(const ModelPlace& place) {
  if (import_.stopped) return false;
  if (++import_.imported_nodes > import_.limits.nodes) {
    fail(Exit::InvalidModel,
         "with its functions inlined the model has more nodes than the limit of " +
             std::to_string(import_.limits.nodes),
         place);
    import_.stopped = true;
  } else if (import_.loop_depth > 0 &&
             ++unrolled_nodes_ > import_.limits.unrolled_nodes) {
    fail(Exit::Unsupported,
         "unrolled, the model's loops have more nodes than the limit of " +
             std::to_string(import_.limits.unrolled_nodes),
         place);
    import_.stopped = true;
  } else if (static_cast<int64_t>(g().size()) > import_.limits.graph_nodes) {
    fail(Exit::InvalidModel,
         "the model needs more operations than the limit of " +
             std::to_string(import_.limits.graph_nodes),
         place);
    import_.stopped = true;
  }
  return !import_.stopped;
}

// Nobody imports this node, which is reported already: what the user could write.
void GraphImport::note_declaration(const NodeAt& at, const Results& inputs) {
  const std::vector<std::string>& names = at.node.outputs;
  std::vector<DeclaredOutput> outputs(names.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto declared = at.scope.declared.find(names[i]);
    if (declared == at.scope.declared.end()) continue;
    outputs[i].dtype = dtype_from_onnx(declared->second->onnx_type);
    outputs[i].shape = declared_shape(*declared->second, import_.dimensions);
  }
  if (import_.more_errors == 0)
    import_.diags.note("with --custom-op FILE.cpp it may be your own function: " +
                           custom_declaration(g(), at.node, inputs, outputs),
                       at.place);
}

// A standard or published operator: by its row, or by the body of its specification.
Results GraphImport::import_operator(const NodeAt& at, const Results& inputs) {
  const ModelNode& node = at.node;
  if (const Callable* body = sizes_want_body(at, inputs))
    return inline_function(*body, node, inputs, at.place);
  if (const OnnxForm* form = find_onnx_form(node.domain, node.op_type, at.opset))
    return run_rule(*form, at, inputs);
  if (const Callable* body = find_standard_body(node.domain, node.op_type, at.opset))
    return inline_function(*body, node, inputs, at.place);
  note_declaration(at, inputs);
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

  const NodeAt at{original, node, place, scope, version_of(node, *scope.frame->opsets)};
  Results results;
  const auto custom = find_custom_ops(import_.options.custom_ops, node);
  if (!custom.empty())
    results = run_custom(custom, at, inputs);
  else if (const Callable* function = import_.functions.find(node))
    results = inline_function(*function, node, inputs, place);
  else if (!checks_.check_signature(node, inputs, at.opset, place))
    return;
  else if (is_gradient(node.domain, node.op_type))
    results = import_gradient(node, inputs, place, scope);
  else if (is_control_flow(node.domain, node.op_type))
    results = control_flow_.import_control_flow(node, inputs, place, scope);
  else if (std::ranges::any_of(inputs, [&](NodeId id) { return has_complex(id); }))
    results = import_complex(at, inputs);
  else
    results = import_operator(at, inputs);
  if (import_.compounds.items() > import_.limits.sequence_items && !import_.stopped) {
    fail(Exit::InvalidModel, "the model's sequences are over the limit", place);
    import_.stopped = true;
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
  scope.level = import_.open_bodies.size();
  for (const ModelTensor& tensor : graph.initializers)
    scope.initializers.emplace(tensor.name, &tensor);
  if (import_.declarations_stale) return;
  for (const auto* values : {&graph.values, &graph.outputs})
    for (const ModelValue& value : *values) scope.declared.emplace(value.name, &value);
}

std::optional<Graph> GraphImport::run() {
  const ModelGraph& graph = import_.model.graph;
  std::optional<InputShapes> shapes =
      bind_input_shapes(graph, import_.options, import_.diags);
  const Needed needed = needed_nodes(graph.nodes, output_names(graph));
  CallFrame frame;
  frame.opsets = &import_.model.opsets;
  SupportCheck support(import_);
  if (!support.check_size()) return std::nullopt;
  support.check_support(graph.nodes, needed, frame, "");
  if (!shapes) return std::nullopt;

  import_.dimensions = shapes->dimensions;
  import_.declarations_stale = shapes->replaced;
  import_.interface.sizes_replaced = shapes->replaced;
  import_.lone_inputs = shapes->lone;
  Scope scope;
  scope.frame = &frame;
  open_graph(graph, scope);
  if (import_.options.keep_halves) g().keep_halves();
  PortImport ports(import_);
  if (!ports.add_inputs(*shapes, scope)) return std::nullopt;
  ports.open_sizes(*shapes, scope);
  ports.prepare_pictures(scope);
  import_nodes(graph.nodes, needed, scope);
  ports.add_outputs([&](const std::string& name) { return look_up(scope, name, {}); });
  if (!import_.diags.failed()) ports.link_states();
  if (import_.more_errors > 0)
    import_.diags.note("there are " + std::to_string(import_.more_errors) +
                       " more errors");
  if (import_.diags.failed()) return std::nullopt;
  SVOD_CHECK(import_.interface.outputs.size() == graph.outputs.size())
      << "an output was lost";
  return std::move(g());
}

} // namespace svod::importer
