// The state of one import, shared by the driver (import.cpp), the inlining of functions
// (inline_function.cpp) and control flow (control_flow.cpp). Internal to this folder.
#pragma once

#include "importer/bounded/bounded.h"
#include "importer/driver/functions.h"
#include "importer/driver/import.h"
#include "importer/driver/input_shapes.h"
#include "importer/driver/region_import.h"
#include "importer/formula/compound.h"
#include "importer/formula/rule.h"

#include <set>
#include <unordered_map>
#include <unordered_set>

namespace svod::importer {

// The value of a name whose node failed: what depends on it is not reported again.
inline constexpr NodeId kPoisoned = kNoNode - 1;

// Inside a function: its attributes as the call gives them, and its opsets.
struct CallFrame {
  const std::map<std::string, int64_t>* opsets = nullptr;
  std::map<std::string_view, const ModelAttribute*> attributes;
  bool in_function = false;
};

// The names one graph sees. kNoNode: an input of a function that the call left out.
struct Scope {
  const Scope* outer = nullptr; // null in the main graph and in functions
  const CallFrame* frame = nullptr;
  std::string path; // of the graph, for messages and provenance
  size_t level = 0; // bodies of regions that its values are in
  std::unordered_map<std::string_view, NodeId> values;
  std::unordered_map<std::string_view, const ModelTensor*> initializers; // made when used
  std::unordered_map<std::string_view, const ModelValue*> declared;
};

// Which nodes of a graph the wanted names need, and which names.
struct Needed {
  std::vector<bool> live;
  std::unordered_set<std::string_view> names;
};
Needed needed_nodes(const std::vector<ModelNode>& nodes,
                    const std::vector<std::string_view>& wanted);
std::vector<std::string_view> output_names(const ModelGraph& graph);

// The operators that this folder handles itself, since they see the names around them:
// If, Loop, Scan, Gradient.
bool is_control_flow(std::string_view domain, std::string_view name);

// Gradient of ai.onnx.preview.training, and the names that its attributes hold.
bool is_gradient(std::string_view domain, std::string_view name);
void add_gradient_names(const ModelNode& node,
                        std::unordered_set<std::string_view>& names);

// The attributes of Scan, one entry per scan input or output.
struct ScanPlan {
  std::vector<int64_t> input_axes, input_directions, output_axes, output_directions;
  int64_t length = 0;
};

struct OnnxForm;

class GraphImport {
public:
  // `fix`: the inputs that have one value in all runs.
  GraphImport(const Model& model, const ImportOptions& options,
              const std::set<std::string>& fix, Diags& diags)
      : model_(model), options_(options), limits_(options.limits), fix_(fix),
        diags_(diags), functions_(model) {}
  std::optional<Graph> run();

  // fixed_inputs.cpp. Of a run that failed: inputs whose values would have helped.
  std::set<std::string> missed_inputs() const;
  void hint_values();
  const ModelInterface& interface() const { return interface_; }

private:
  // A node's results in the order of its outputs; empty when it failed.
  using Results = std::vector<NodeId>;

  // support.cpp: reports what can be seen before any node is imported.
  void check_support(const std::vector<ModelNode>& nodes, const Needed& needed,
                     const CallFrame& frame, const std::string& path);
  void check_support(const ModelNode& node, const CallFrame& frame,
                     const ModelPlace& place);
  bool check_size();
  int64_t expanded_nodes(const std::vector<ModelNode>& nodes, int64_t depth);
  int64_t expanded_nodes(const ModelFunction& function, int64_t depth);

  // fixed_inputs.cpp
  std::optional<std::vector<std::byte>> fixed_value(const std::string& name, DType dtype,
                                                    const Shape& shape);

  // ports.cpp: inputs and outputs of the model
  void add_inputs(const InputShapes& shapes, Scope& scope);
  NodeId add_input(const ModelValue& tensor, const Shape& shape);
  NodeId add_complex_input(const ModelValue& tensor, const Shape& shape, DType part);
  NodeId add_string_input(const std::string& name, const Shape& shape);
  void add_output(const std::string& name, NodeId id);
  int onnx_type_of(NodeId value) const;
  bool add_elements(ModelPort& port, const Compound& value);
  void add_outputs(const Scope& scope);

  // import.cpp
  void open_graph(const ModelGraph& graph, Scope& scope);
  void import_nodes(const std::vector<ModelNode>& nodes, const Needed& needed,
                    Scope& scope);
  void import_node(const ModelNode& original, const ModelNode& node,
                   const ModelPlace& place, Scope& scope);
  Results import_operator(const ModelNode& original, const ModelNode& node,
                          const Results& inputs, const ModelPlace& place,
                          const Scope& scope);
  Results run_rule(const OnnxForm& form, const ModelNode& original, const ModelNode& node,
                   const Results& inputs, const ModelPlace& place, const Scope& scope);
  Results run_import(const std::function<void(NodeImport&)>& import_rule,
                     std::span<const NodeImport::AttributeRow> attributes,
                     const ModelNode& original, const ModelNode& node,
                     const Results& inputs, const ModelPlace& place, const Scope& scope);
  Results without_bounds(const Results& inputs) const;
  std::vector<Counts> counts_of(const Results& inputs) const;
  static void refuse_sizes(const NodeImport& rule);
  const Callable* sizes_want_body(const ModelNode& node, const Results& inputs,
                                  int64_t opset) const;
  void add_extents();
  void note_declaration(const ModelNode& node, const std::vector<NodeId>& inputs,
                        const ModelPlace& place, const Scope& scope);
  bool check_signature(const ModelNode& node, const std::vector<NodeId>& inputs,
                       int64_t opset, const ModelPlace& place);
  bool check_attributes(const ModelNode& node,
                        std::span<const NodeImport::AttributeRow> rows,
                        const ModelPlace& place);
  bool check_result_types(const NodeImport& rule, const ModelPlace& place);
  bool check_results(const NodeImport& rule, NodeId first_new, size_t first_blob,
                     const ModelPlace& place);
  bool count_node(const ModelPlace& place);
  NodeId look_up(const Scope& scope, std::string_view name, const ModelPlace& place);
  NodeId make_tensor(const ModelTensor& tensor, const ModelPlace& place);
  std::optional<ModelNode> resolved(const ModelNode& node, const Needed& needed,
                                    const Scope& scope, const ModelPlace& place);
  void poison(const ModelNode& node, Scope& scope);
  void fail(Exit exit, const std::string& what, const ModelPlace& place);
  void note_inputs(const ModelNode& node, const std::vector<NodeId>& inputs,
                   const ModelPlace& place);

  // complex_values.cpp
  bool has_complex(NodeId value) const;
  NodeId part(NodeId value, int64_t which);
  NodeId joined(NodeId real, NodeId imaginary);
  NodeId truth(NodeId value);
  Results import_complex(const ModelNode& original, const ModelNode& node,
                         const Results& inputs, const ModelPlace& place,
                         const Scope& scope);

  // inline_function.cpp
  Results inline_function(const Callable& callable, const ModelNode& node,
                          const std::vector<NodeId>& inputs, const ModelPlace& place);
  bool bind_attributes(const ModelFunction& function, const ModelNode& node,
                       const ModelPlace& place, CallFrame& frame);

  // import_gradient.cpp
  Results import_gradient(const ModelNode& node, const std::vector<NodeId>& inputs,
                          const ModelPlace& place, const Scope& scope);

  // control_flow.cpp
  Results import_control_flow(const ModelNode& node, const std::vector<NodeId>& inputs,
                              const ModelPlace& place, const Scope& scope);
  bool are_tensors(const ModelNode& node, const std::vector<NodeId>& inputs,
                   const ModelPlace& place);
  Results import_if(const ModelNode& node, const std::vector<NodeId>& inputs,
                    const ModelPlace& place, const Scope& scope);
  Results run_branch(const ModelAttribute& body, NodeId condition,
                     const ModelPlace& place, const Scope& scope, bool& misfits);
  Results only_branch(const ModelAttribute& misfit, const Results& results, NodeId chosen,
                      const ModelPlace& place);
  Results import_loop(const ModelNode& node, const std::vector<NodeId>& inputs,
                      const ModelPlace& place, const Scope& scope);
  Results import_scan(const ModelNode& node, const std::vector<NodeId>& inputs,
                      const ModelPlace& place, const Scope& scope);
  NodeId item_of(NodeId value, int64_t axis, int64_t at);
  Results import_scan_of_batch(const ModelNode& node, const ModelAttribute& body,
                               const Results& inputs, size_t carried,
                               const ModelPlace& place, const Scope& scope);
  Results run_scan(const ModelAttribute& body, const ScanPlan& plan, Results state,
                   const Results& scanned, const ModelPlace& place, const Scope& scope);
  static Shape declared_single(const ModelAttribute& body, size_t i);
  // How far a loop can be written out.
  enum class Course : uint8_t { Whole, Failed, Unknown, Long };
  Results unroll_loop(const ModelAttribute& body, const Results& inputs, int64_t budget,
                      Course& course, const ModelPlace& place, const Scope& scope);
  Results run_graph_attribute(const ModelAttribute& body, const Results& inputs,
                              const ModelPlace& place, const Scope& outer);
  NodeId stack_of(const Results& items, int64_t axis);
  Results run_body(const ModelAttribute& body, const Results& inputs,
                   const ModelPlace& place, const Scope& outer);

  // region_import.cpp
  struct Checkpoint { // what an attempt that is given up leaves as it was
    Diags diags;
    size_t missed;
    int64_t lacks;
    size_t more_errors;
  };
  Checkpoint checkpoint() const;
  void restore(const Checkpoint& to);
  bool open_body(OpenBody& body, const ModelPlace& place);
  Graph close_body(OpenBody& body);
  std::vector<bool> unwrap(Results& values) const;
  void wrap(Results& values, size_t first, const std::vector<bool>& complex);
  NodeId capture_into(size_t level, NodeId id);
  NodeId capture_bounded(const Bounded& bounded, size_t level);
  NodeId capture(NodeId id, size_t level, const ModelPlace& place);
  bool in_loop_region() const;
  Results body_arguments(const LoopCall& call, const Graph& outer);
  bool check_carried(const LoopCall& call, const Graph& outer, const Results& results,
                     const ModelPlace& place);
  Results run_region(LoopCall& call, const ModelPlace& place, const Scope& scope);
  NodeId grown(const LoopCall& call, size_t k, NodeId items, NodeId done);
  class NodeHost;
  RuleLoopResult rule_region(const RuleLoop& loop, const ModelPlace& place,
                             const Scope& scope);
  std::optional<int64_t> declared_length(const ModelNode& node, size_t first,
                                         const Scope& scope);
  Results loop_region(const ModelNode& node, const ModelAttribute& body,
                      const Results& inputs, const ModelPlace& place, const Scope& scope);
  Results scan_region(const ModelAttribute& body, const ScanPlan& plan,
                      const Results& state, const Results& scanned,
                      const ModelPlace& place, const Scope& scope);
  std::optional<BranchResults> branch_results(const Results& results) const;
  Results joint_results(NodeId region, const std::vector<std::vector<bool>>& sized,
                        const std::vector<bool>& complex);
  Results if_region(const ModelAttribute& yes, const ModelAttribute& no, NodeId condition,
                    const ModelPlace& place, const Scope& scope);

  const Model& model_;
  const ImportOptions& options_;
  const Limits& limits_;
  const std::set<std::string>& fix_;
  Diags& diags_;
  FunctionTable functions_;
  ImportFrame frame_;                  // of the innermost body that is open
  std::vector<OpenBody*> open_bodies_; // outermost first
  CompoundTable compounds_;
  std::vector<std::pair<size_t, NodeId>> sized_outputs_;
  ModelInterface interface_;
  std::vector<NodeId> missed_; // values that a node would have needed when packing
  std::map<std::string, int64_t> dimensions_; // named ones, as bound
  bool declarations_stale_ = false; // the user replaced a size that the model states
  std::map<const ModelFunction*, int64_t>
      expanded_; // nodes after inlining; -1: being counted
  std::unordered_set<const ModelFunction*> checked_functions_;
  bool complex_pairs_ = false; // NodeImport::pairs of the rule that runs
  int64_t depth_ = 0;          // of function calls and nested graphs at this moment
  int64_t loop_depth_ = 0;
  int64_t open_choices_ = 0; // branches around the node whose condition is data
  int64_t lacks_ = 0;        // faults other than shapes that do not fit such a branch
  int64_t imported_nodes_ = 0;
  int64_t unrolled_nodes_ = 0;
  int64_t folded_bytes_ = 0;
  size_t more_errors_ = 0; // beyond those that are listed
  bool stopped_ = false;   // a limit was met: the rest is not looked at
};

} // namespace svod::importer
