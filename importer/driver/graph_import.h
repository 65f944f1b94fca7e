// The walk over a model's nodes: names are looked up, functions and the graphs inside
// nodes are entered, every node is imported by its rule. Internal to this folder.
#pragma once

#include "importer/driver/check_node.h"
#include "importer/driver/control_flow.h"

namespace svod::importer {

// Gradient of ai.onnx.preview.training: the names that its attributes hold.
void add_gradient_names(const ModelNode& node,
                        std::unordered_set<std::string_view>& names);

struct OnnxForm;

// A node that is being imported.
struct NodeAt {
  const ModelNode& original; // holds the names that scopes refer to
  const ModelNode& node;     // its resolved copy
  const ModelPlace& place;
  const Scope& scope;
  int64_t opset; // version of its domain
};

class GraphImport : ImportPart, BodyRunner {
public:
  explicit GraphImport(ImportState& state)
      : ImportPart(state), checks_(state), regions_(state, *this),
        control_flow_(state, *this, regions_) {}
  // The whole model; nothing when there are errors.
  std::optional<Graph> run();

private:
  class NodeHost;

  // import.cpp
  void open_graph(const ModelGraph& graph, Scope& scope);
  void import_nodes(const std::vector<ModelNode>& nodes, const Needed& needed,
                    Scope& scope);
  void import_node(const ModelNode& original, const ModelNode& node,
                   const ModelPlace& place, Scope& scope);
  Results import_operator(const NodeAt& at, const Results& inputs);
  void note_declaration(const NodeAt& at, const Results& inputs);
  bool count_node(const ModelPlace& place);

  // names.cpp
  NodeId look_up(const Scope& scope, std::string_view name, const ModelPlace& place);
  NodeId make_tensor(const ModelTensor& tensor, const ModelPlace& place);
  std::optional<ModelNode> resolved(const ModelNode& node, const Needed& needed,
                                    const Scope& scope, const ModelPlace& place);

  // run_rule.cpp
  using ImportRule = std::function<void(NodeImport&)>;
  using AttributeRows = std::span<const NodeImport::AttributeRow>;
  Results run_rule(const OnnxForm& form, const NodeAt& at, const Results& inputs);
  Results run_custom(const std::vector<const CustomOp*>& ops, const NodeAt& at,
                     const Results& inputs);
  Results run_import(const ImportRule& import_rule, AttributeRows attributes,
                     const NodeAt& at, const Results& inputs);
  void prepare(NodeImport& rule, const NodeAt& at, const Results& inputs);
  bool finish(NodeImport& rule, const ImportRule& import_rule, const NodeAt& at,
              const Results& inputs);
  const Callable* sizes_want_body(const NodeAt& at, const Results& inputs) const;

  // complex_values.cpp
  bool has_complex(NodeId value) const;
  NodeId part(NodeId value, int64_t which);
  NodeId joined(NodeId real, NodeId imaginary);
  NodeId truth(NodeId value);
  Results import_complex(const NodeAt& at, const Results& inputs);

  // inline_function.cpp
  Results inline_function(const Callable& callable, const ModelNode& node,
                          const std::vector<NodeId>& inputs, const ModelPlace& place);
  bool bind_attributes(const ModelFunction& function, const ModelNode& node,
                       const ModelPlace& place, CallFrame& frame);

  // import_gradient.cpp
  Results import_gradient(const ModelNode& node, const std::vector<NodeId>& inputs,
                          const ModelPlace& place, const Scope& scope);

  // run_body.cpp
  Results run_body(const ModelAttribute& body, const Results& inputs,
                   const ModelPlace& place, const Scope& outer) override;
  Results run_graph_attribute(const ModelAttribute& body, const Results& inputs,
                              const ModelPlace& place, const Scope& outer);

  NodeCheck checks_;
  RegionImport regions_;
  ControlFlow control_flow_;
  bool complex_pairs_ = false; // NodeImport::pairs of the rule that runs
  int64_t unrolled_nodes_ = 0;
};

} // namespace svod::importer
