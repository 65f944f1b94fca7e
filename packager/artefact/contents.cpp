// A translation without decisions: graph types become ONNX type numbers, slot classes and
// step kinds the numbers of format.h.
#include "packager/artefact/contents.h"

#include "compiler/support/bytes.h"
#include "compiler/support/check.h"
#include "compiler/support/join.h"
#include "compiler/support/round_up.h"
#include "runtime_stub/device_format.h"

#include <algorithm>

namespace svod::packager {

namespace {

// Of a graph's input or output: the caller sees one type, the node has the bytes.
template <class Port> ImageTensor tensor_of(const Graph& graph, const Port& port) {
  const Node& node = graph[port.node];
  const auto element = static_cast<uint64_t>(byte_size(node.dtype));
  const auto count = static_cast<uint64_t>(element_count(node.shape));
  return {port.name, port.seen.onnx_type, port.seen.shape, static_cast<uint32_t>(element),
          count * element};
}

uint32_t slot_class(plan::SlotClass from) {
  switch (from) {
  case plan::SlotClass::Input:
    return SVOD_SLOT_INPUT;
  case plan::SlotClass::Output:
    return SVOD_SLOT_OUTPUT;
  case plan::SlotClass::Weight:
    return SVOD_SLOT_WEIGHT;
  case plan::SlotClass::State:
    return SVOD_SLOT_STATE;
  case plan::SlotClass::Temporary:
    return SVOD_SLOT_TEMPORARY;
  case plan::SlotClass::Slice:
    return SVOD_SLOT_SLICE;
  case plan::SlotClass::Part:
    return SVOD_SLOT_PART;
  }
  __builtin_unreachable();
}

std::string source_text(const plan::Plan& plan, const plan::Step& step) {
  return join(plan.graph.names_of(step.sources), ",");
}

ImageStep image_step(const plan::Plan& plan, const plan::Step& step) {
  ImageStep out;
  out.flops = static_cast<uint64_t>(step.flops);
  out.bytes = static_cast<uint64_t>(step.bytes);
  out.repeats = static_cast<uint64_t>(step.repeats);
  out.sources = source_text(plan, step);
  if (step.kind == plan::StepKind::CopyMemory) {
    out.kind = SVOD_STEP_COPY;
    out.args = {step.from, step.to};
  } else if (step.kind == plan::StepKind::CopyDown ||
             step.kind == plan::StepKind::CopyUp) {
    out.kind = SVOD_STEP_COPY;
    out.program = step.kind == plan::StepKind::CopyDown ? SVOD_COPY_DOWN : SVOD_COPY_UP;
    out.args = {step.slot, step.slot};
  } else if (step.kind == plan::StepKind::Loop || step.kind == plan::StepKind::If) {
    const plan::RegionSlots& r = step.region;
    out.kind = step.kind == plan::StepKind::Loop ? SVOD_STEP_LOOP : SVOD_STEP_IF;
    out.region = {0, 0, r.count, r.start, r.again, r.iteration, r.done, r.limit};
  } else {
    out.program = step.program;
    out.args.assign(step.arguments.begin(), step.arguments.end());
    out.chunks = step.chunks;
    out.followers = step.followers;
  }
  return out;
}

ImageValue value_of(const importer::ModelPort& port) {
  ImageValue out;
  out.name = port.name;
  out.kind = static_cast<uint32_t>(port.kind);
  if (port.optional) out.flags |= SVOD_VALUE_OPTIONAL;
  if (!port.present) out.flags |= SVOD_VALUE_ABSENT;
  if (port.any_keys) out.flags |= SVOD_VALUE_ANY_KEYS;
  if (!port.keys.texts.empty()) out.flags |= SVOD_VALUE_TEXT_KEYS;
  out.first = port.first;
  out.count = port.count;
  for (int64_t number : port.keys.numbers) out.keys.push_back({number, {}});
  for (const std::string& text : port.keys.texts) out.keys.push_back({0, text});
  out.onnx_type = port.onnx_type;
  out.presence = port.presence ? *port.presence + 1 : 0;
  return out;
}

static_assert(static_cast<int>(importer::ModelPort::Kind::Tensor) == SVOD_VALUE_TENSOR &&
              static_cast<int>(importer::ModelPort::Kind::Sequence) ==
                  SVOD_VALUE_SEQUENCE &&
              static_cast<int>(importer::ModelPort::Kind::Map) == SVOD_VALUE_MAP &&
              static_cast<int>(importer::ModelPort::Kind::Maps) == SVOD_VALUE_MAPS);

// One bit for each axis of which a run decides the size.
uint32_t open_axes(const importer::OpenInput& open) {
  static_assert(SVOD_MAX_RANK <= 32);
  uint32_t out = 0;
  for (size_t axis = 0; axis < open.dimensions.size(); ++axis)
    if (!open.dimensions[axis].empty()) out |= uint32_t{1} << axis;
  return out;
}

// The caller has none of these.
bool is_state(const ImageTensor& tensor) { return tensor.role == SVOD_ROLE_STATE; }

// 1 + the number of the state that an input of the graph is.
uint32_t state_of(const ImageEntry& entry, size_t input) {
  SVOD_CHECK(is_state(entry.inputs[input])) << "rows are counted by no state";
  return entry.inputs[input].shape_output;
}

// Which states grow, and who counts their rows.
void add_growing(const importer::ModelInterface& interface, ImageEntry& entry) {
  for (const auto& [input, most] : interface.counters)
    entry.states[state_of(entry, input) - 1].most = static_cast<uint64_t>(most);
  for (const auto& [input, growing] : interface.growing_states) {
    SvodState& state = entry.states[state_of(entry, input) - 1];
    state.counter = state_of(entry, growing.counter);
    state.axis = static_cast<uint32_t>(growing.axis);
    for (uint32_t axis = 0; axis < state.axis; ++axis)
      state.parts *= static_cast<uint32_t>(entry.inputs[input].dims[axis]);
    state.part_bytes = state.apart_bytes =
        static_cast<uint32_t>(state.bytes / state.parts);
  }
  for (const auto& [input, open] : interface.open_inputs) {
    if (!open.counter) continue;
    entry.inputs[input].counter = state_of(entry, *open.counter);
    for (const size_t axis : open.counted)
      entry.inputs[input].counted_axes |= uint32_t{1} << axis;
  }
}

// Each state, and the tensors of the model that it is.
void add_states(const plan::Plan& plan, ImageEntry& entry) {
  uint64_t end = 0;
  for (const plan::State& state : plan.states) {
    const auto kind = static_cast<uint32_t>(state.kind);
    const auto parts = static_cast<uint32_t>(state.parts);
    const auto part =
        static_cast<uint32_t>(entry.inputs[state.input].bytes / state.parts);
    const auto apart = static_cast<uint32_t>(state.bytes / state.parts);
    entry.states.push_back({state.input, state.output, kind, state.period, state.bytes,
                            end, static_cast<uint32_t>(state.step), parts, part, apart, 0,
                            0, 0});
    end = round_up(end + state.places() * state.bytes, plan.align);
    for (ImageTensor* tensor :
         {&entry.inputs[state.input], &entry.outputs[state.output]}) {
      tensor->role = SVOD_ROLE_STATE;
      tensor->shape_output = static_cast<uint32_t>(entry.states.size());
    }
  }
  entry.state_bytes = end;
}

static_assert(static_cast<int>(plan::State::Kind::Place) == SVOD_STATE_PLACE &&
              static_cast<int>(plan::State::Kind::Turns) == SVOD_STATE_TURNS &&
              static_cast<int>(plan::State::Kind::Moves) == SVOD_STATE_MOVES &&
              static_cast<int>(plan::State::Kind::Copied) == SVOD_STATE_COPIED);

// Without sequences, optionals and maps the image needs no table of values.
void add_values(const importer::ModelInterface& interface, ImageEntry& entry) {
  const auto tensors = [](const std::vector<importer::ModelPort>& ports) {
    return std::ranges::all_of(ports, &importer::ModelPort::is_tensor);
  };
  if (tensors(interface.inputs) && tensors(interface.outputs)) return;
  for (const importer::ModelPort& port : interface.inputs)
    if (!port.is_tensor() || !is_state(entry.inputs[port.first]))
      entry.input_values.push_back(value_of(port));
  for (const importer::ModelPort& port : interface.outputs) {
    if (port.is_tensor() && is_state(entry.outputs[port.first])) continue;
    entry.output_values.push_back(value_of(port));
    if (port.presence) entry.outputs[*port.presence].role = SVOD_ROLE_PRESENCE;
  }
}

// Markers become counts of the steps between them.
void add_steps(const plan::Plan& plan, ImageEntry& entry) {
  struct Open {
    size_t step, begin;
    bool other;
  };
  std::vector<Open> open;
  for (const plan::Step& step : plan.steps) {
    if (step.kind == plan::StepKind::Allocate || step.kind == plan::StepKind::Deallocate)
      continue;
    const size_t here = entry.steps.size();
    if (step.kind == plan::StepKind::Else || step.kind == plan::StepKind::End) {
      Open& top = open.back();
      SvodRegion& region = entry.steps[top.step].region;
      (top.other ? region.else_steps : region.steps) =
          static_cast<uint32_t>(here - top.begin);
      top = {top.step, here, true};
      if (step.kind == plan::StepKind::End) open.pop_back();
      continue;
    }
    entry.steps.push_back(image_step(plan, step));
    if (step.kind == plan::StepKind::Loop || step.kind == plan::StepKind::If)
      open.push_back({here, here + 1, false});
  }
}

void add_slots(const plan::Plan& plan, ImageEntry& entry) {
  for (const plan::Slot& slot : plan.slots) {
    uint32_t io = slot.io;
    if (slot.slot_class == plan::SlotClass::Slice) {
      io = static_cast<uint32_t>(entry.slices.size());
      entry.slices.push_back(
          {slot.parent, slot.depth, slot.alternates ? 1 : ~0u, 0, slot.stride});
    }
    entry.slots.push_back({slot_class(slot.slot_class), io, slot.offset, slot.bytes});
  }
}

} // namespace

ImageContents image_contents(const plan::Plan& plan,
                             const importer::ModelInterface& interface,
                             const Digest& model, const Digest& key) {
  ImageEntry entry;
  entry.digest = key;
  for (const GraphInput& input : plan.graph.inputs()) {
    entry.inputs.push_back(tensor_of(plan.graph, input));
    if (const auto at = interface.fixed.find(input.name); at != interface.fixed.end())
      entry.inputs.back().fixed = text_of(at->second);
  }
  for (const GraphOutput& output : plan.graph.outputs()) {
    entry.outputs.push_back(tensor_of(plan.graph, output));
  }
  add_states(plan, entry);
  add_growing(interface, entry);
  add_values(interface, entry);
  for (const auto& [output, extents] : interface.extents) {
    entry.outputs[output].shape_output = static_cast<uint32_t>(extents) + 1;
    entry.outputs[extents].role = SVOD_ROLE_SHAPE;
  }
  for (const auto& [input, open] : interface.open_inputs) {
    entry.inputs[input].shape_output = static_cast<uint32_t>(open.extents) + 1;
    entry.inputs[open.extents].role = SVOD_ROLE_SHAPE;
    entry.inputs[open.extents].shape_output = open_axes(open);
    const auto picture = interface.pictures.find(input);
    if (picture == interface.pictures.end()) continue;
    entry.inputs[open.extents].role = SVOD_ROLE_PICTURE;
    entry.inputs[input].prepared = picture->second;
  }
  add_slots(plan, entry);
  add_steps(plan, entry);
  entry.arena_bytes = plan.arena_bytes;
  entry.scratch_bytes = plan.scratch_bytes;
  entry.arena_lower_bound = plan.arena_lower_bound;
  ImageContents contents;
  contents.model = model;
  contents.entries.push_back(std::move(entry));
  contents.weight_bytes = plan.weight_bytes;
  contents.align = plan.align;
  if (plan.changes.slot != plan::kNoSlot)
    contents.changes = {plan.slots[plan.changes.slot].offset, key.prefix(),
                        plan.changes.masks};
  for (size_t i = 0; i < plan.programs.size(); i++) {
    contents.programs.push_back("k" + std::to_string(i));
  }
  return contents;
}

} // namespace svod::packager
