// One node of an operator that has a rule: what the rule is given, what it may ask for
// while it runs, and what becomes of its results.
#include "compiler/support/check.h"
#include "importer/driver/custom_call.h"
#include "importer/driver/graph_import.h"
#include "importer/inputs/input_shapes.h"
#include "importer/operators/onnx_ops.h"
#include "importer/operators/signature.h"

#include <algorithm>
#include <utility>

namespace svod::importer {

namespace {

// Operators outside the standard, and those of the standard in the opsets before, when
// they were com.microsoft's with other types.
bool has_published_types(const ModelNode& node, int64_t opset) {
  const Signature* signature = find_signature(node.domain, node.op_type, opset);
  return signature && signature->first <= opset;
}

// Inputs as rules see them: a bounded tensor itself, not the node that stands for it.
Results without_bounds(const BoundTable& bounds, const Results& inputs) {
  Results out = inputs;
  for (NodeId& id : out)
    if (const Bounded* bounded = bounds.find(id)) id = bounded->tensor;
  return out;
}

// Empty when no input is bounded.
std::vector<Counts> counts_of(const BoundTable& bounds, const Results& inputs) {
  std::vector<Counts> out(inputs.size());
  bool any = false;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (const Bounded* bounded = bounds.find(inputs[i])) {
      out[i] = bounded->counts;
      any = true;
    }
  return any ? out : std::vector<Counts>{};
}

// An operator whose row has no `bounded`.
void refuse_sizes(const NodeImport& rule) {
  for (size_t i = 0; i < rule.input_counts.size(); ++i)
    for (size_t axis = 0; axis < rule.input_counts[i].size(); ++axis)
      if (rule.input_counts[i][axis] != kNoNode)
        refuse_bounded(rule, i, static_cast<int64_t>(axis));
}

} // namespace

// What the rule of one node may ask of the import. Nodes that are made for it had sources
// of their own, so the node's is opened again behind them.
class GraphImport::NodeHost : public RuleHost {
public:
  NodeHost(GraphImport& walk, const ModelPlace& place, const Scope& scope)
      : walk_(walk), place_(place), scope_(scope) {}

  std::vector<NodeId> run_graph(const ModelAttribute& body,
                                const std::vector<NodeId>& inputs) override {
    Results results = walk_.run_graph_attribute(body, inputs, place_, scope_);
    walk_.g().open_source(place_path(place_));
    return results;
  }

  RuleLoopResult run_loop(const RuleLoop& loop) override {
    const size_t around = loops_.size();
    loops_.push_back(walk_.import_.open_bodies.size());
    RuleLoopResult result;
    try {
      result = walk_.regions_.rule_region(loop, place_, scope_);
    } catch (...) {
      loops_.resize(around);
      throw;
    }
    loops_.resize(around);
    walk_.g().open_source(place_path(place_));
    return result;
  }

  NodeId here(NodeId value) override {
    if (loops_.empty()) return value;
    const NodeId inside = walk_.regions_.capture(value, loops_.back(), place_);
    if (inside == kPoisoned) throw RuleFailure{};
    return inside;
  }

private:
  GraphImport& walk_;
  const ModelPlace& place_;
  const Scope& scope_;
  std::vector<size_t> loops_; // that are being made: how many bodies are around each
};

Results GraphImport::run_rule(const OnnxForm& form, const NodeAt& at,
                              const Results& inputs) {
  const ModelNode& node = at.node;
  if (!checks_.check_attributes(node, form.attributes, at.place)) return {};
  const OnnxOp& row = *find_onnx_op(node.domain, node.op_type);
  const bool strings = std::ranges::any_of(inputs, [&](NodeId id) {
    return id < g().size() && g()[id].dtype == DType::String;
  });
  if (strings && !row.strings) {
    fail(Exit::Unsupported, "strings as inputs of " + full_op_name(node), at.place);
    return {};
  }
  const auto import_rule = [&](NodeImport& rule) {
    const BoundedRule bounded = rule.input_counts.empty() ? nullptr : row.bounded;
    if (!rule.input_counts.empty() && !bounded) refuse_sizes(rule);
    bounded ? bounded(rule, form.rule) : form.rule(rule);
  };
  return run_import(import_rule, form.attributes, at, inputs);
}

// An operator of the user's own.
Results GraphImport::run_custom(const std::vector<const CustomOp*>& ops, const NodeAt& at,
                                const Results& inputs) {
  const auto import_rule = [&](NodeImport& call) {
    if (!call.input_counts.empty()) refuse_sizes(call);
    import_custom_call(call, ops);
  };
  return run_import(import_rule, {}, at, inputs);
}

Results GraphImport::run_import(const ImportRule& import_rule, AttributeRows attributes,
                                const NodeAt& at, const Results& inputs) {
  NodeImport rule(g(), at.node, at.opset, without_bounds(import_.frame.bounds, inputs),
                  attributes);
  NodeHost host(*this, at.place, at.scope);
  rule.host = &host;
  prepare(rule, at, inputs);
  const auto first_new = static_cast<NodeId>(g().size());
  const size_t first_blob = g().blob_count();
  if (!finish(rule, import_rule, at, inputs)) return {};
  if (!checks_.check_results(rule, first_new, first_blob, at.place)) return {};
  Results results = rule.results();
  for (size_t i = 0; i < rule.output_counts.size() && i < results.size(); ++i)
    if (!rule.output_counts[i].empty() && results[i] != kNoNode)
      results[i] = import_.frame.bounds.add(g(), results[i], rule.output_counts[i]);
  return results;
}

// What a rule is told beside its inputs and attributes.
void GraphImport::prepare(NodeImport& rule, const NodeAt& at, const Results& inputs) {
  rule.exact = import_.options.exact;
  rule.input_counts = counts_of(import_.frame.bounds, inputs);
  rule.position = import_.imported_nodes;
  rule.in_loop = import_.loop_depth > 0;
  rule.pairs = complex_pairs_;
  rule.in_region = regions_.in_loop_region();
  rule.size_limit = std::min(import_.limits.size, kMostExtent);
  rule.image_height = import_.limits.image_height;
  rule.image_width = import_.limits.image_width;
  rule.compounds = &import_.compounds;
  rule.bounds = &import_.frame.bounds;
  rule.ranges = &import_.frame.ranges;
  rule.strings = &import_.frame.strings;
  for (const std::string& name : at.original.outputs) {
    const auto declared = at.scope.declared.find(name);
    rule.declared_shapes.push_back(
        declared == at.scope.declared.end()
            ? std::nullopt
            : declared_shape(*declared->second, import_.dimensions));
  }
}

// Runs the rule. False when it failed, which is reported then.
bool GraphImport::finish(NodeImport& rule, const ImportRule& import_rule,
                         const NodeAt& at, const Results& inputs) {
  const auto failed = [&](Exit exit, const std::string& why) {
    fail(exit, why, at.place);
    return false;
  };
  try {
    g().open_source(place_path(at.place));
    import_rule(rule);
    keep_promises(rule);
    g().close_source();
    return true;
  } catch (const TooLarge&) {
    g().close_source();
    return failed(Exit::InvalidModel, "the shape of its result is over the limit");
  } catch (const WrongType&) {
    g().close_source();
    SVOD_CHECK(!has_published_types(at.node, at.opset)) << "types that its schema allows";
    failed(Exit::InvalidModel, "the element types of its inputs do not go together");
    checks_.note_inputs(at.node, inputs, at.place);
  } catch (const RuleFailure& failure) {
    g().close_source();
    if (failure.why.empty()) return false;
    failed(failure.unsupported ? Exit::Unsupported : Exit::InvalidModel, failure.why);
    checks_.note_inputs(at.node, inputs, at.place);
    for (const Results* needed : {&failure.unknown, &std::as_const(rule.unknown)})
      import_.missed.insert(import_.missed.end(), needed->begin(), needed->end());
  }
  return false;
}

// The body of an operator whose own rule takes no bounded inputs: its parts may.
const Callable* GraphImport::sizes_want_body(const NodeAt& at,
                                             const Results& inputs) const {
  const OnnxOp* row = find_onnx_op(at.node.domain, at.node.op_type);
  const bool sized = !counts_of(import_.frame.bounds, inputs).empty();
  if (!sized || (row && row->bounded)) return nullptr;
  return find_standard_body(at.node.domain, at.node.op_type, at.opset);
}

} // namespace svod::importer
