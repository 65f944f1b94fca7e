// Scan: a body over the slices of its inputs, written out like a Loop of a known count,
// or a region where that makes too many nodes. In opset 8 there is a batch of scans.
#include "importer/driver/control_flow.h"

#include "importer/formula/complex.h"

#include <algorithm>

namespace svod::importer {

namespace {

std::vector<int64_t> list_attribute(const ModelNode& node, std::string_view name,
                                    size_t count) {
  std::vector<int64_t> values(count);
  if (const ModelAttribute* given = find_attribute(node, name, AttributeType::Ints))
    values = given->ints;
  return values;
}

// 0: from the front, 1: from the end.
static bool are_directions(const std::vector<int64_t>& values, size_t count) {
  return values.size() == count &&
         std::ranges::all_of(values, [](int64_t v) { return v == 0 || v == 1; });
}

// The plan, or nothing when attributes and inputs do not fit together.
std::optional<ScanPlan> plan_scan(const Graph& g, const CompoundTable& compounds,
                                  const ModelNode& node,
                                  const std::vector<NodeId>& scanned, size_t outputs) {
  ScanPlan plan;
  plan.input_axes = list_attribute(node, "scan_input_axes", scanned.size());
  plan.input_directions = list_attribute(node, "scan_input_directions", scanned.size());
  plan.output_axes = list_attribute(node, "scan_output_axes", outputs);
  plan.output_directions = list_attribute(node, "scan_output_directions", outputs);
  if (plan.input_axes.size() != scanned.size() || plan.output_axes.size() != outputs ||
      !are_directions(plan.input_directions, scanned.size()) ||
      !are_directions(plan.output_directions, outputs))
    return std::nullopt;
  for (size_t k = 0; k < scanned.size(); ++k) {
    const Shape& shape = g[inside(compounds, scanned[k])].shape;
    const auto rank = std::ssize(shape) - is_complex(compounds, scanned[k]);
    int64_t& axis = plan.input_axes[k];
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return std::nullopt;
    const int64_t length = shape[static_cast<size_t>(axis)];
    if (k > 0 && length != plan.length) return std::nullopt;
    plan.length = length;
  }
  return plan;
}

} // namespace

// Entry `at` along an axis of a tensor, complex or not.
NodeId ControlFlow::item_of(NodeId value, int64_t axis, int64_t at) {
  const NodeId tensor = inside(import_.compounds, value);
  const NodeId item = slice_axis(g(), tensor, axis, at, 1);
  return wrapped_if(import_.compounds, tensor != value, squeeze_axes(g(), item, {axis}));
}

// Runs the body over the planned sequence: the states after it, then the stacked scan
// outputs. Null when the body failed; kNoNode where a stack's shapes differ or its axis
// is wrong.
Results ControlFlow::run_scan(const ModelAttribute& body, const ScanPlan& plan,
                              Results state, const Results& scanned,
                              const ModelPlace& place, const Scope& scope) {
  const size_t carried = state.size();
  const Results initial = state;
  if (plan.length == 0)
    return regions_.scan_region(body, plan, initial, scanned, place, scope);
  Columns columns(body.graph->outputs.size() - carried);
  const auto first = static_cast<int64_t>(g().size());
  for (int64_t i = 0; i < plan.length; ++i) {
    const int64_t made = static_cast<int64_t>(g().size()) - first;
    if (i == 2 && made / 2 * plan.length > kUnrolledNodes) {
      const Checkpoint before = checkpoint();
      Results region = regions_.scan_region(body, plan, initial, scanned, place, scope);
      if (!region.empty() || import_.stopped ||
          plan.length > import_.limits.loop_iterations)
        return region;
      restore(before);
    }
    Results arguments = state;
    for (size_t k = 0; k < scanned.size(); ++k) {
      const int64_t axis = plan.input_axes[k];
      const int64_t at = plan.input_directions[k] ? plan.length - 1 - i : i;
      arguments.push_back(item_of(scanned[k], axis, at));
    }
    const Results results = bodies_.run_body(body, arguments, place, scope);
    if (results.empty()) return {};
    std::copy_n(results.begin(), carried, state.begin());
    for (size_t k = 0; k < columns.size(); ++k)
      columns[k].push_back(results[carried + k]);
  }
  for (size_t k = 0; k < columns.size(); ++k) {
    if (plan.output_directions[k]) std::ranges::reverse(columns[k]);
    const NodeId item = inside(import_.compounds, columns[k][0]);
    if (is_compound(item)) {
      state.push_back(kNoNode);
      continue;
    }
    const int64_t rank = std::ssize(g()[item].shape) + (item == columns[k][0] ? 1 : 0);
    const int64_t axis = plan.output_axes[k] + (plan.output_axes[k] < 0 ? rank : 0);
    state.push_back(axis < 0 || axis >= rank ? kNoNode : stack_of(columns[k], axis));
  }
  if (std::ranges::find(state, kNoNode) == state.end()) return state;
  fail(Exit::InvalidModel, "a scan output changes its shape, or its axis is out of range",
       place);
  return {};
}

// In opset 8 every input has a leading batch axis, and each entry of the batch is a scan
// of its own; inputs[0] are the lengths of the sequences.
Results ControlFlow::import_scan_of_batch(const ModelNode& node,
                                          const ModelAttribute& body,
                                          const Results& inputs, size_t carried,
                                          const ModelPlace& place, const Scope& scope) {
  const auto refuse = [&](Exit exit, const char* why) {
    fail(exit, why, place);
    return Results{};
  };
  if (inputs[0] != kNoNode)
    return refuse(Exit::Unsupported, "sequences of different lengths are not supported");
  int64_t batch = -1;
  for (size_t i = 1; i < inputs.size(); ++i) {
    const Shape& shape = g()[inside(import_.compounds, inputs[i])].shape;
    if (shape.empty() || (batch >= 0 && shape[0] != batch))
      return refuse(Exit::InvalidModel, "its inputs do not share a batch axis");
    batch = shape[0];
  }
  Columns columns;
  for (int64_t b = 0; b < batch; ++b) {
    Results parts;
    for (size_t i = 1; i < inputs.size(); ++i) parts.push_back(item_of(inputs[i], 0, b));
    const auto middle = parts.begin() + static_cast<std::ptrdiff_t>(carried);
    const Results scanned(middle, parts.end());
    std::optional<ScanPlan> plan = plan_scan(g(), import_.compounds, node, scanned,
                                             body.graph->outputs.size() - carried);
    if (!plan) return refuse(Exit::InvalidModel, "its scan axes do not fit its inputs");
    plan->input_directions = list_attribute(node, "directions", scanned.size());
    if (!are_directions(plan->input_directions, scanned.size()))
      return refuse(Exit::InvalidModel, "its directions do not fit its inputs");
    const Results results =
        run_scan(body, *plan, Results(parts.begin(), middle), scanned, place, scope);
    if (results.empty()) return {};
    columns.resize(results.size());
    for (size_t k = 0; k < results.size(); ++k) columns[k].push_back(results[k]);
  }
  if (columns.empty()) return refuse(Exit::Unsupported, "its batch is empty");
  Results stacked;
  for (const std::vector<NodeId>& column : columns)
    stacked.push_back(stack_of(column, 0));
  if (std::ranges::find(stacked, kNoNode) == stacked.end()) return stacked;
  return refuse(Exit::InvalidModel, "its results differ in shape over the batch");
}

Results ControlFlow::import_scan(const ModelNode& node, const std::vector<NodeId>& inputs,
                                 const ModelPlace& place, const Scope& scope) {
  const auto invalid = [&](const char* why) {
    fail(Exit::InvalidModel, why, place);
    return Results{};
  };
  const ModelAttribute* body = find_attribute(node, "body", AttributeType::Graph);
  const ModelAttribute* counted =
      find_attribute(node, "num_scan_inputs", AttributeType::Int);
  const bool batched = scope.frame->opsets->at("") < 9;
  const auto given = static_cast<int64_t>(inputs.size()) - (batched ? 1 : 0);
  const auto first = inputs.begin() + (batched && !inputs.empty() ? 1 : 0);
  if (!body || !counted || counted->i < 1 || counted->i > given ||
      std::find(first, inputs.end(), kNoNode) != inputs.end())
    return invalid("its body or its count of scan inputs is wrong");
  const auto carried = static_cast<size_t>(given - counted->i);
  if (body->graph->outputs.size() < carried)
    return invalid("its body has too few outputs");
  for (NodeId input : inputs)
    if (const Bounded* bounded =
            import_.frame.bounds.find(inside(import_.compounds, input))) {
      import_.missed.insert(import_.missed.end(), bounded->counts.begin(),
                            bounded->counts.end());
      std::erase(import_.missed, kNoNode);
      fail(Exit::Unsupported, "the size of one of its inputs depends on data", place);
      return {};
    }
  if (batched) return import_scan_of_batch(node, *body, inputs, carried, place, scope);
  const auto middle = inputs.begin() + static_cast<std::ptrdiff_t>(carried);
  const Results scanned(middle, inputs.end());
  const std::optional<ScanPlan> plan = plan_scan(g(), import_.compounds, node, scanned,
                                                 body->graph->outputs.size() - carried);
  if (!plan) return invalid("its scan axes do not fit its inputs");
  return run_scan(*body, *plan, Results(inputs.begin(), middle), scanned, place, scope);
}

} // namespace svod::importer
