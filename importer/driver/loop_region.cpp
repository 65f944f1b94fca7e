// What Loop and Scan ask of a region: their inputs and attributes as the call of a loop,
// and the region's results as the operator gives them.
#include "importer/driver/region_import.h"
#include "importer/formula/complex.h"
#include "importer/inputs/input_shapes.h"

#include <algorithm>

namespace svod::importer {

// A bound for the length of scan outputs that is not known when packing: the model's own
// declaration. Nothing when there is none, or when two disagree.
std::optional<int64_t> RegionImport::declared_length(const ModelNode& node, size_t first,
                                                     const Scope& scope) {
  std::optional<int64_t> length;
  for (size_t i = first; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    const auto declared = scope.declared.find(node.outputs[i]);
    if (declared == scope.declared.end()) return std::nullopt;
    const auto shape = declared_shape(*declared->second, import_.dimensions);
    if (!shape || shape->empty() || (length && *length != (*shape)[0]))
      return std::nullopt;
    length = (*shape)[0];
  }
  return length;
}

// The call that a Loop's inputs say, without a limit.
LoopCall RegionImport::loop_call(const ModelAttribute& body, const Results& inputs) {
  const auto given = [&](size_t i) { return i < inputs.size() && inputs[i] != kNoNode; };
  LoopCall call;
  call.body = &body;
  call.conditional = given(1);
  call.count = given(0) ? reshape(g(), inputs[0], {})
                        : constant_int(g(), DType::I64, {}, INT64_MAX);
  call.start =
      given(1) ? reshape(g(), inputs[1], {}) : constant_int(g(), DType::Bool, {}, 1);
  if (inputs.size() > 2) call.carried.assign(inputs.begin() + 2, inputs.end());
  call.complex = unwrap(call.carried);
  call.reversed.assign(body.graph->outputs.size() - call.carried.size() - 1, 0);
  return call;
}

// A Loop as a region.
Results RegionImport::loop_region(const ModelNode& node, const ModelAttribute& body,
                                  const Results& inputs, const ModelPlace& place,
                                  const Scope& scope) {
  LoopCall call = loop_call(body, inputs);
  const bool stacks = std::any_of(
      node.outputs.begin() +
          static_cast<std::ptrdiff_t>(std::min(call.carried.size(), node.outputs.size())),
      node.outputs.end(), [](const std::string& name) { return !name.empty(); });

  const auto trips = known_ints(g(), call.count);
  const bool fixed = trips && !call.conditional;
  const auto range = range_of(g(), call.count, 0, Trust::Integers, &import_.frame.ranges);
  const bool counted = range && range->high <= static_cast<double>(kMostIterations);
  call.limit = import_.limits.region_iterations;
  if (counted) call.limit = std::max<int64_t>(static_cast<int64_t>(range->high), 0);
  for (size_t k = 0; counted && k < call.carried.size(); ++k)
    call.grows.push_back(growing_axis(
        *body.graph, k, std::ssize(g()[call.carried[k]].shape) - call.complex[k]));
  const auto declared = declared_length(node, call.carried.size(), scope);
  const bool bounded = stacks && !fixed && !declared;
  if (bounded && !counted && import_.limits.size > 0) {
    call.limit = std::min(import_.limits.size, kMostIterations); // one more ends the run
  } else if (bounded && !counted) {
    fail(Exit::Unsupported,
         "how long its scan outputs are is only known when it runs, and neither a count "
         "nor the declaration of their shapes bounds it (--limit-size N does)",
         place);
    return {};
  }
  if (stacks && !fixed && declared) call.limit = std::min(*declared, kMostIterations);
  // An output that nobody reads holds one item.
  if (!stacks && !call.reversed.empty())
    call.limit = std::min(call.limit, import_.limits.region_iterations);
  Results made = run_region(call, place, scope);
  if (made.empty()) return {};
  const NodeId done = made[0];
  made.erase(made.begin());
  call.made_complex.erase(call.made_complex.begin());
  const bool whole = trips && !call.conditional && call.limit == (*trips)[0];
  if (stacks && !fixed && !whole) {
    // A declaration is the model's promise: a run that breaks it stops.
    const NodeId kept =
        map(g(), Op::Equal, {done, constant_int(g(), DType::I64, {}, call.limit)});
    for (size_t k = call.carried.size(); k < made.size(); ++k) {
      Counts counts(g()[made[k]].shape.size(), kNoNode);
      counts[0] = done;
      if (bounded)
        made[k] = import_.frame.bounds.add(g(), made[k], counts);
      else if (k < node.outputs.size() && !node.outputs[k].empty())
        made[k] = import_.compounds.guarded(g(), made[k], kept);
    }
  }
  wrap(made, 0, call.made_complex);
  return made;
}

// A Scan as a region: its states after it, then its outputs.
Results RegionImport::scan_region(const ModelAttribute& body, const ScanPlan& plan,
                                  const Results& state, const Results& scanned,
                                  const ModelPlace& place, const Scope& scope) {
  LoopCall call;
  call.body = &body;
  call.is_scan = true;
  call.count = constant_int(g(), DType::I64, {}, plan.length);
  call.start = constant_int(g(), DType::Bool, {}, 1);
  call.limit = plan.length;
  call.carried = state;
  call.complex = unwrap(call.carried);
  for (size_t k = 0; k < scanned.size(); ++k) {
    const NodeId whole = inside(import_.compounds, scanned[k]);
    call.complex.push_back(whole != scanned[k]);
    std::vector<int64_t> perm{plan.input_axes[k]};
    for (int64_t axis = 0; axis < std::ssize(g()[whole].shape); ++axis)
      if (axis != plan.input_axes[k]) perm.push_back(axis);
    call.sliced.push_back(permute(g(), whole, perm));
    call.reversed.push_back(plan.input_directions[k] != 0);
  }
  for (int64_t direction : plan.output_directions)
    call.reversed.push_back(direction != 0);
  Results made = run_region(call, place, scope);
  if (made.empty()) return {};
  made.erase(made.begin());
  for (size_t k = state.size(); k < made.size(); ++k) {
    const int64_t rank = std::ssize(g()[made[k]].shape);
    const int64_t seen = rank - call.made_complex[k];
    int64_t axis = plan.output_axes[k - state.size()];
    if (axis < 0) axis += seen;
    if (axis < 0 || axis >= seen) {
      fail(Exit::InvalidModel, "the axis of a scan output is out of range", place);
      return {};
    }
    std::vector<int64_t> perm;
    for (int64_t i = 1; i < rank; ++i) perm.push_back(i);
    perm.insert(perm.begin() + axis, 0);
    made[k] = permute(g(), made[k], perm);
  }
  wrap(made, 0, call.made_complex);
  return made;
}

} // namespace svod::importer
