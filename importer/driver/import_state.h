// The state of one import, which its parts share: what is made, what was said about the
// model, and how deep in it the import is. Internal to this folder.
#pragma once

#include "importer/bounded/bounded.h"
#include "importer/driver/functions.h"
#include "importer/driver/import.h"
#include "importer/formula/rule.h"

#include <map>
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

// What belongs to one graph that is being made, the model's own or that of a body: its
// nodes, and all that is known of them beside.
struct ImportFrame {
  Graph graph;
  std::map<const ModelTensor*, NodeId> tensors; // initializers that were made
  BoundTable bounds;
  RangeTable ranges;
  StringTable strings; // its pools are nodes of the graph
};

// A body being imported. The frame around it waits here while the import's own frame is
// the body's; values of it that the body reads become inputs of the body.
struct OpenBody {
  ImportFrame outer;
  std::map<NodeId, NodeId> captured; // outer node -> node of the body
  std::vector<NodeId> order;         // outer nodes that became inputs
  bool loops = false;
};

struct ImportState {
  // `fix`: the inputs that have one value in all runs.
  ImportState(const Model& model, const ImportOptions& options,
              const std::set<std::string>& fix, Diags& diags)
      : model(model), options(options), limits(options.limits), fix(fix), diags(diags),
        functions(model) {}

  const Model& model;
  const ImportOptions& options;
  const Limits& limits;
  const std::set<std::string>& fix;
  Diags& diags;
  FunctionTable functions;
  ImportFrame frame;                  // of the innermost body that is open
  std::vector<OpenBody*> open_bodies; // outermost first
  CompoundTable compounds;
  ModelInterface interface;
  std::vector<std::string> lone_inputs;      // as in InputShapes
  std::map<std::string, int64_t> dimensions; // named ones, as bound
  bool declarations_stale = false; // the user replaced a size that the model states

  int64_t depth = 0; // of function calls and nested graphs at this moment
  int64_t loop_depth = 0;
  int64_t open_choices = 0;   // branches around the node whose condition is data
  int64_t imported_nodes = 0; // so far

  std::vector<NodeId> missed; // values that a node would have needed when packing
  int64_t lacks = 0;          // faults other than shapes that do not fit a branch on data
  size_t more_errors = 0;     // beyond those that are listed
  bool stopped = false;       // a limit was met: the rest is not looked at
};

// A node's results in the order of its outputs; empty when it failed.
using Results = std::vector<NodeId>;

// What every part of an import does.
class ImportPart {
protected:
  explicit ImportPart(ImportState& state) : import_(state) {}
  Graph& g() const { return import_.frame.graph; } // that is being made
  void fail(Exit exit, const std::string& what, const ModelPlace& place);
  int onnx_type_of(NodeId value) const; // of a tensor, complex or not

  struct Checkpoint { // what an attempt that is given up leaves as it was
    Diags diags;
    size_t missed;
    int64_t lacks;
    size_t more_errors;
  };
  Checkpoint checkpoint() const;
  void restore(const Checkpoint& to);

  ImportState& import_;
};

// Who imports graphs inside of nodes.
class BodyRunner {
public:
  // The results of one nested graph; empty when it failed.
  virtual Results run_body(const ModelAttribute& body, const Results& inputs,
                           const ModelPlace& place, const Scope& outer) = 0;

protected:
  ~BodyRunner() = default;
};

} // namespace svod::importer
