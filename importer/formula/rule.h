// What an operator's import rule sees: one ONNX node with its inputs as graph nodes. A
// rule is a free function  void import_relu(NodeImport& node)  named in a row of
// onnx_ops.def; it builds graph nodes with compiler/ir/build.h and calls node.output().
// Every shape is static.
//
// A rule that cannot go on calls unsupported() (valid ONNX, not in our reach: exit 3) or
// invalid() (the model breaks the specification: exit 1) and these do not return: they
// throw a RuleFailure with the reason, which the driver catches at the node, so that all
// nodes are reported at once.
#pragma once

#include "compiler/ir/build.h"
#include "importer/formula/compound.h"
#include "importer/formula/string_table.h"
#include "importer/formula/value_range.h"
#include "importer/model/model.h"

#include <functional>

namespace svod::importer {

// Why a rule stopped.
struct RuleFailure {
  std::string why{}; // empty: it is reported already
  bool unsupported = false;
  std::vector<NodeId> unknown{}; // values that it would have needed when packing
};
class BoundTable; // importer/bounded/bounded.h

// A loop that a rule makes as a region (compiler/ir/region.h).
struct RuleLoop {
  int64_t limit;               // iterations
  NodeId start;                // bool[]: whether there is a first one
  std::vector<NodeId> carried; // into the first iteration
  int64_t stacked = 0;         // results of the body that are kept of every iteration
  // Called once, while the rule's graph is the body's. Takes the iteration, i64[], and
  // what is carried; gives whether to go on, bool[], what is carried on and what is
  // stacked. Values from around the loop must go through NodeImport::here().
  std::function<std::vector<NodeId>(NodeId, const std::vector<NodeId>&)> body;
};

// The loop's own value, what is carried after it, and what is stacked, each with an axis
// of `limit` in front. No values where the body does not fit into a region: why not.
struct RuleLoopResult {
  std::vector<NodeId> values{};
  std::string why_not{};
};

// What the driver does for the rule that runs.
class RuleHost {
public:
  // The results of a graph attribute; empty when it failed, which is reported then.
  virtual std::vector<NodeId> run_graph(const ModelAttribute& body,
                                        const std::vector<NodeId>& inputs) = 0;
  virtual RuleLoopResult run_loop(const RuleLoop& loop) = 0;
  // A value of the rule's graph, seen from the body of the loop that is being made.
  virtual NodeId here(NodeId value) = 0;

protected:
  ~RuleHost() = default;
};

// Of a tensor whose sizes depend on data (importer/bounded/bounded.h): per axis a scalar
// of the run, kNoNode where the extent is the node's. Empty: all are the node's.
using Counts = std::vector<NodeId>;

// One class of more methods than others have: it is the language in which rules are
// written, what they read, ask and give, and in parts it would only be longer to say.
class NodeImport {
public:
  Graph& g;
  const ModelNode& model_node;
  int64_t opset; // version of the node's domain

  // Inputs. `input` of one left out is invalid().
  size_t input_count() const {
    return inputs_.size();
  } // trailing left-out ones not counted
  bool has_input(size_t i) const { return i < inputs_.size() && inputs_[i] != kNoNode; }
  NodeId input(size_t i) const;
  DType dtype(size_t i) const { return g[input(i)].dtype; }
  const Shape& shape(size_t i) const { return g[input(i)].shape; }
  int64_t rank(size_t i) const { return static_cast<int64_t>(shape(i).size()); }
  // Values that the rule must know when packing (axes, shapes, pads ...): unsupported()
  // naming the input when it depends on the model's inputs.
  std::vector<int64_t> known_ints(size_t i) const;
  std::vector<double> known_floats(size_t i) const;

  // An input that may be a sequence, an optional or a map: its id, and what it is, null
  // for a tensor. `input` of such a one is invalid().
  NodeId value(size_t i) const;
  const Compound* compound(size_t i) const;

  // Attributes, with the default of the row when absent. Types are checked against the
  // row.
  bool has(std::string_view name) const;
  AttributeType type_of(std::string_view name) const; // of one that the row lists
  int64_t get_int(std::string_view name) const;
  double get_float(std::string_view name) const;
  std::string get_string(std::string_view name) const;
  std::vector<int64_t> get_ints(std::string_view name) const; // empty when absent
  std::vector<float> get_floats(std::string_view name) const;
  std::vector<std::string> get_strings(std::string_view name) const;
  const ModelTensor& get_tensor(std::string_view name) const;
  // The results of a graph attribute for these inputs. Does not return when it fails,
  // which is then reported already. They may be compound values.
  std::vector<NodeId> run_graph(std::string_view name,
                                const std::vector<NodeId>& inputs) const;
  // Where the body does not fit, what was reported about it is forgotten.
  RuleLoopResult try_loop(const RuleLoop& loop) const;
  // A value of the rule's graph, seen from the body of the loop that is being made.
  NodeId here(NodeId value) const { return host ? host->here(value) : value; }

  // The shape that the model itself states for an output (its value_info), when complete.
  // A rule may rely on it where the result's shape depends on data of the run: the
  // model's promise then takes the place of a value known when packing.
  std::optional<Shape> declared_shape(size_t i) const {
    return i < declared_shapes.size() ? declared_shapes[i] : std::nullopt;
  }

  // Sizes of inputs and outputs that depend on data.
  const Counts& counts(size_t i) const {
    static const Counts kNone;
    return i < input_counts.size() ? input_counts[i] : kNone;
  }
  void set_counts(size_t out, Counts counts);
  // Another tensor in place of input i, also of one left out, whose sizes are its node's.
  void replace_input(size_t i, NodeId id);

  // Results. output_count() is how many the node names; wants_output(i): it is used.
  size_t output_count() const { return model_node.outputs.size(); }
  bool wants_output(size_t i) const;
  void output(size_t i, NodeId value);
  void output(size_t i, Compound value) { output(i, compounds->add(std::move(value))); }

  [[noreturn]] void unsupported(const std::string& why) const;
  // The same, because the value of input i is not known when packing. Where that value is
  // an input of the model, the driver fixes the input, or says how to.
  [[noreturn]] void needs_value(size_t i, const std::string& why) const {
    needs_value_of(input(i), why);
  }
  [[noreturn]] void needs_value_of(NodeId value, const std::string& why) const;
  [[noreturn]] void invalid(const std::string& why) const;
  // Axis attribute or value in [-rank, rank) as [0, rank); invalid() outside.
  int64_t axis(int64_t value, int64_t rank) const;

  // A tensor of the model as a graph node; unsupported() for element types outside
  // dtypes.def.
  NodeId tensor(const ModelTensor& tensor) const;

  // Filled by the driver.
  struct AttributeRow {
    std::string_view name;
    AttributeType type;
    std::string_view fallback; // text of the default, "" : none
  };
  NodeImport(Graph& graph, const ModelNode& node, int64_t version,
             std::vector<NodeId> inputs, std::span<const AttributeRow> rows)
      : g(graph), model_node(node), opset(version), inputs_(std::move(inputs)),
        rows_(rows) {}
  const std::vector<NodeId>& results() const { return results_; }
  std::vector<std::optional<Shape>> declared_shapes; // one per output, empty: none
  std::vector<Counts> input_counts, output_counts;
  // How many nodes were imported before this one, and whether a loop around it imports it
  // again: what random numbers of their own hang on.
  int64_t position = 0;
  bool exact = false; // ImportOptions::exact
  bool in_loop = false;
  bool pairs = false;     // complex inputs are given with their parts along a last axis
  int64_t size_limit = 0; // Limits::size
  int64_t image_height = 0, image_width = 0; // of the largest picture to decode
  bool in_region = false;   // a loop around it runs it again without importing it again
  RuleHost* host = nullptr; // null: a rule that is run by itself
  CompoundTable* compounds = nullptr;
  BoundTable* bounds = nullptr;
  const RangeTable* ranges = nullptr;
  StringTable* strings = nullptr; // what tensors of strings refer to
  // bool[]: what the model promises by declaring a shape that only the run shows. A run
  // in which one is false ends.
  std::vector<NodeId> promises;
  // Values that would help beside those that a failure names, should the rule fail.
  std::vector<NodeId> unknown;

private:
  const AttributeRow& row(std::string_view name, AttributeType type) const;
  const ModelAttribute* find(std::string_view name) const;
  const ModelAttribute* find_or_default(const AttributeRow& row) const;
  std::vector<NodeId> inputs_;
  std::vector<NodeId> results_;
  std::span<const AttributeRow> rows_;
};

using Rule = void (*)(NodeImport&);

// After the rule: its results are read through an index that is outside its axis where a
// promise is broken (movement.cpp).
void keep_promises(NodeImport& node);

} // namespace svod::importer
