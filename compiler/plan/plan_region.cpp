// Regions as steps. What an if makes lies where its results are read, whichever branch
// writes it. A loop copies nothing from iteration to iteration: a carried value has two
// places that take turns, and an item of a sliced or scanned tensor is a part of that
// tensor which moves on with the iteration.
#include "compiler/plan/planner.h"

#include "compiler/ir/build.h"
#include "compiler/support/check.h"

namespace svod::plan {

static uint64_t node_bytes(const Graph& g, NodeId node) {
  return static_cast<uint64_t>(element_count(g[node].shape) * byte_size(g[node].dtype));
}

SlotId Planner::temporary(uint64_t bytes) {
  Slot slot;
  slot.bytes = bytes;
  return add_slot(slot);
}

SlotId Planner::slice(SlotId parent, uint64_t bytes, uint64_t offset, int64_t stride,
                      uint32_t depth, bool alternates) {
  Slot slot;
  slot.slot_class = SlotClass::Slice;
  slot.parent = parent;
  slot.bytes = bytes;
  slot.offset = offset;
  slot.stride = stride;
  slot.depth = depth;
  slot.alternates = alternates;
  return add_slot(slot);
}

// Where a result goes; a place of its own when nobody reads it.
SlotId Planner::result_slot(Frame& frame, const FusedRegion& region, size_t number,
                            uint64_t bytes) {
  const BufferId buffer = region.results[number];
  return buffer == kNoBuffer ? temporary(bytes) : buffer_slot(frame, buffer);
}

void Planner::add_marker(const Frame& frame, const FusedRegion& region, StepKind kind,
                         const RegionSlots& slots) {
  Step step;
  step.kind = kind;
  step.region = slots;
  step.repeats = frame.repeats;
  add_sources(frame, region.node, step.sources);
  out_.steps.push_back(std::move(step));
}

void Planner::add_region(Frame& frame, const FusedRegion& region) {
  if (frame.f.graph[region.node].op == Op::Loop)
    add_loop(frame, region);
  else
    add_if(frame, region);
}

void Planner::add_if(Frame& frame, const FusedRegion& region) {
  RegionSlots slots;
  slots.start = argument_slot(frame, region.inputs[0]);
  std::vector<SlotId> inputs, outputs;
  for (size_t i = 1; i < region.inputs.size(); ++i)
    inputs.push_back(argument_slot(frame, region.inputs[i]));
  const Graph& yes = region.bodies[0].graph;
  for (size_t i = 0; i < yes.outputs().size(); ++i)
    outputs.push_back(
        result_slot(frame, region, i, node_bytes(yes, yes.outputs()[i].node)));
  for (size_t b = 0; b < 2; ++b) {
    add_marker(frame, region, b == 0 ? StepKind::If : StepKind::Else, slots);
    Frame body(region.bodies[b], f_.graph);
    body.is_body = true;
    body.inputs = inputs;
    body.outputs = outputs;
    body.depth = frame.depth;
    body.repeats = frame.repeats;
    add_steps(body);
  }
  add_marker(frame, region, StepKind::End, slots);
}

// How often a loop runs, where that is known.
static std::optional<int64_t> known_count(const Graph& g, const Node& node,
                                          const LoopSpec& spec) {
  const auto count = known_ints(g, node.inputs[0]);
  if (!count || spec.again) return std::nullopt;
  return (*count)[0];
}

RegionSlots Planner::loop_slots(Frame& frame, const FusedRegion& region,
                                const LoopSpec& spec) {
  const Node& node = frame.f.graph[region.node];
  RegionSlots slots;
  slots.count = argument_slot(frame, region.inputs[0]);
  slots.start = argument_slot(frame, region.inputs[1]);
  slots.iteration = temporary(8);
  slots.limit = static_cast<uint32_t>(spec.limit);
  slots.depth = frame.depth;
  const auto count = known_count(frame.f.graph, node, spec);
  const auto starts = known_ints(frame.f.graph, node.inputs[1]);
  if (count && starts && (*starts)[0] != 0 && *count <= spec.limit)
    slots.known = std::max<int64_t>(*count, 0);
  if (region.value != kNoBuffer) slots.done = buffer_slot(frame, region.value);
  if (spec.again) slots.again = temporary(1);
  return slots;
}

// Two places that take turns for each carried value, the first with its start.
void Planner::add_carried(Frame& frame, const FusedRegion& region, const LoopSpec& spec,
                          Frame& body) {
  const Node& node = frame.f.graph[region.node];
  const auto carried = static_cast<size_t>(spec.carried);
  for (size_t k = 0; k < carried; ++k) {
    const uint64_t bytes = node_bytes(frame.f.graph, node.inputs[2 + k]);
    const auto half = static_cast<int64_t>(aligned(bytes));
    const SlotId pair = temporary(2 * aligned(bytes));
    add_copy(frame, argument_slot(frame, region.inputs[2 + k]),
             slice(pair, bytes, 0, 0, frame.depth, false));
    body.inputs.push_back(slice(pair, bytes, 0, half, frame.depth, true));
    body.outputs.push_back(
        slice(pair, bytes, static_cast<uint64_t>(half), -half, frame.depth, true));
  }
}

// The items that an iteration takes and makes, and what it reads of the graph around.
void Planner::add_items(Frame& frame, const FusedRegion& region, const LoopSpec& spec,
                        Frame& body) {
  const Graph& g = region.bodies[0].graph;
  const auto carried = static_cast<size_t>(spec.carried);
  const auto sliced = static_cast<size_t>(spec.sliced);
  const auto scanned = static_cast<size_t>(scanned_count(spec, g));
  // An item of `whole`, whose direction is flag number `flag`.
  const auto item = [&](SlotId whole, uint64_t bytes, size_t flag) {
    const auto stride = static_cast<int64_t>(bytes);
    const bool reversed = spec.reversed[flag] != 0 && spec.limit > 0;
    const int64_t first = reversed ? stride * (spec.limit - 1) : 0;
    return slice(whole, bytes, static_cast<uint64_t>(first), reversed ? -stride : stride,
                 frame.depth, false);
  };
  for (size_t k = 0; k < sliced; ++k) {
    const NodeId taken = g.inputs()[1 + carried + k].node;
    body.inputs.push_back(item(argument_slot(frame, region.inputs[2 + carried + k]),
                               node_bytes(g, taken), k));
  }
  for (size_t i = 2 + carried + sliced; i < region.inputs.size(); ++i)
    body.inputs.push_back(argument_slot(frame, region.inputs[i]));
  for (size_t k = 0; k < scanned; ++k) {
    const NodeId made = g.outputs()[body.outputs.size()].node;
    const uint64_t bytes = node_bytes(g, made);
    const SlotId whole = result_slot(frame, region, carried + k,
                                     bytes * static_cast<uint64_t>(spec.limit));
    body.outputs.push_back(item(whole, bytes, sliced + k));
  }
}

void Planner::add_loop(Frame& frame, const FusedRegion& region) {
  const Node& node = frame.f.graph[region.node];
  const LoopSpec spec = loop_spec(node);
  Frame body(region.bodies[0], f_.graph);
  body.is_body = true;
  body.depth = frame.depth + 1;
  body.repeats = frame.repeats;
  const auto count = known_count(frame.f.graph, node, spec);
  if (count && *count > 0)
    __builtin_mul_overflow(body.repeats, std::min(*count, spec.limit), &body.repeats);

  const RegionSlots slots = loop_slots(frame, region, spec);
  if (spec.again) body.outputs.push_back(slots.again);
  body.inputs.push_back(slots.iteration);
  add_carried(frame, region, spec, body);
  add_items(frame, region, spec, body);

  add_marker(frame, region, StepKind::Loop, slots);
  add_steps(body);
  add_marker(frame, region, StepKind::End, slots);
  // The place that the next iteration would read holds the last value.
  for (size_t k = 0; k < static_cast<size_t>(spec.carried); ++k)
    if (region.results[k] != kNoBuffer)
      add_copy(frame, body.inputs[1 + k], buffer_slot(frame, region.results[k]));
}

} // namespace svod::plan
