// Turns kernels into steps: equal kernels become one program, buffers become slots,
// temporaries get their place in the arena from their first and last step.
#include "compiler/schedule/plan_memory.h"
#include "compiler/schedule/schedule.h"

#include <algorithm>
#include <map>

namespace svod {

static constexpr uint64_t kAlign = 64;

namespace {

class Planner {
public:
  explicit Planner(FusedGraph fused) : f_(std::move(fused)) {}
  Schedule run();

private:
  uint32_t program_of(const Kernel& kernel);
  SlotId buffer_slot(BufferId id);
  SlotId weight_slot(PackedId id);
  void add_launch(const Kernel& kernel);
  void add_output_copies();
  void place_weights();
  void place_temporaries();
  void insert_lifetimes(const std::vector<Lifetime>& lives,
                        const std::vector<SlotId>& slots);

  FusedGraph f_;
  Schedule out_;
  std::map<std::string, uint32_t> programs_;
  std::map<BufferId, SlotId> buffer_slots_;
  std::map<PackedId, SlotId> weight_slots_;
};

// A program's text form names its arguments by position, so equal work prints equally.
std::string normal_text(Kernel kernel) {
  for (Argument& a : kernel.arguments) a.id = 0;
  return print(kernel);
}

uint32_t Planner::program_of(const Kernel& kernel) {
  auto [found, fresh] =
      programs_.emplace(normal_text(kernel), static_cast<uint32_t>(out_.programs.size()));
  if (fresh) out_.programs.push_back(kernel);
  return found->second;
}

SlotId Planner::buffer_slot(BufferId id) {
  if (auto found = buffer_slots_.find(id); found != buffer_slots_.end())
    return found->second;
  const Buffer& b = f_.buffers[id];
  Slot slot;
  slot.bytes = static_cast<uint64_t>(b.bytes());
  slot.source = id;
  if (b.input >= 0)
    slot.slot_class = SlotClass::Input, slot.io = static_cast<uint32_t>(b.input);
  else if (!b.outputs.empty())
    slot.slot_class = SlotClass::Output, slot.io = static_cast<uint32_t>(b.outputs[0]);
  out_.slots.push_back(slot);
  return buffer_slots_[id] = static_cast<SlotId>(out_.slots.size() - 1);
}

SlotId Planner::weight_slot(PackedId id) {
  if (auto found = weight_slots_.find(id); found != weight_slots_.end())
    return found->second;
  Slot slot;
  slot.slot_class = SlotClass::Weight;
  slot.bytes = static_cast<uint64_t>(f_.packed[id].bytes());
  slot.source = id;
  out_.slots.push_back(slot);
  return weight_slots_[id] = static_cast<SlotId>(out_.slots.size() - 1);
}

void Planner::add_launch(const Kernel& kernel) {
  Step step;
  step.program = program_of(kernel);
  for (const Argument& a : kernel.arguments)
    step.arguments.push_back(a.kind == Argument::Kind::Buffer ? buffer_slot(a.id)
                                                              : weight_slot(a.id));
  step.chunks = static_cast<uint32_t>(kernel.chunk_count());
  step.flops = kernel.flops;
  step.bytes = kernel.bytes;
  for (NodeId n : kernel.nodes)
    for (int32_t source : f_.graph.sources(n)) step.sources.push_back(source);
  std::sort(step.sources.begin(), step.sources.end());
  step.sources.erase(std::unique(step.sources.begin(), step.sources.end()),
                     step.sources.end());
  out_.scratch_bytes =
      std::max(out_.scratch_bytes, static_cast<uint64_t>(kernel.scratch_bytes));
  out_.steps.push_back(std::move(step));
}

// A value that leaves twice, or an input that is an output too, is copied to its other
// places.
void Planner::add_output_copies() {
  for (BufferId id = 0; id < f_.buffers.size(); ++id) {
    const Buffer& b = f_.buffers[id];
    for (size_t i = b.input >= 0 ? 0 : 1; i < b.outputs.size(); ++i) {
      Step step;
      step.kind = StepKind::CopyMemory;
      step.from = buffer_slot(id);
      Slot to{SlotClass::Output, static_cast<uint32_t>(b.outputs[i]), 0,
              static_cast<uint64_t>(b.bytes()), id};
      out_.slots.push_back(to);
      step.to = static_cast<SlotId>(out_.slots.size() - 1);
      step.bytes = 2 * b.bytes();
      out_.steps.push_back(std::move(step));
    }
  }
}

// In the order of first use, so that a run reads the section front to back.
void Planner::place_weights() {
  for (Slot& slot : out_.slots) {
    if (slot.slot_class != SlotClass::Weight) continue;
    slot.offset = out_.weight_bytes;
    out_.weight_bytes += (slot.bytes + kAlign - 1) / kAlign * kAlign;
    out_.packed.push_back(f_.packed[slot.source]);
    slot.source = static_cast<uint32_t>(out_.packed.size() - 1);
  }
}

void Planner::insert_lifetimes(const std::vector<Lifetime>& lives,
                               const std::vector<SlotId>& slots) {
  std::vector<Step> steps;
  for (uint32_t s = 0; s < out_.steps.size(); ++s) {
    auto add = [&](StepKind kind, size_t i) {
      Step step;
      step.kind = kind;
      step.slot = slots[i];
      steps.push_back(std::move(step));
    };
    for (size_t i = 0; i < lives.size(); ++i)
      if (lives[i].first == s) add(StepKind::Allocate, i);
    steps.push_back(std::move(out_.steps[s]));
    for (size_t i = 0; i < lives.size(); ++i)
      if (lives[i].last == s) add(StepKind::Deallocate, i);
  }
  out_.steps = std::move(steps);
}

void Planner::place_temporaries() {
  std::vector<Lifetime> lives;
  std::vector<SlotId> slots;
  std::map<SlotId, size_t> index;
  for (uint32_t s = 0; s < out_.steps.size(); ++s) {
    const Step& step = out_.steps[s];
    std::vector<SlotId> touched = step.arguments;
    if (step.kind == StepKind::CopyMemory) touched = {step.from, step.to};
    for (SlotId id : touched) {
      if (out_.slots[id].slot_class != SlotClass::Temporary) continue;
      auto [found, fresh] = index.emplace(id, lives.size());
      if (fresh) lives.push_back({out_.slots[id].bytes, s, s}), slots.push_back(id);
      lives[found->second].last = s;
    }
  }
  MemoryPlan memory = plan_memory(lives, kAlign);
  for (size_t i = 0; i < lives.size(); ++i)
    out_.slots[slots[i]].offset = memory.offsets[i];
  out_.arena_bytes = memory.bytes;
  out_.arena_lower_bound = memory.lower_bound;
  for (uint32_t i : memory.at_peak) out_.peak.push_back(slots[i]);
  insert_lifetimes(lives, slots);
}

Schedule Planner::run() {
  for (const Kernel& kernel : f_.kernels) add_launch(kernel);
  add_output_copies();
  place_weights();
  place_temporaries();
  out_.scratch_bytes = (out_.scratch_bytes + kAlign - 1) / kAlign * kAlign;
  out_.unfused_kernels = f_.unfused_kernels;
  out_.graph = std::move(f_.graph);
  return std::move(out_);
}

} // namespace

Schedule plan(FusedGraph fused) { return Planner(std::move(fused)).run(); }

static std::string slot_text(const Slot& slot) {
  static const char* names[] = {"input", "output", "weight", "state", "temporary"};
  std::string out = names[static_cast<int>(slot.slot_class)];
  if (slot.slot_class == SlotClass::Input || slot.slot_class == SlotClass::Output)
    out += " " + std::to_string(slot.io);
  else
    out += " at " + std::to_string(slot.offset);
  return out + ", " + std::to_string(slot.bytes) + " bytes";
}

std::string print(const Schedule& schedule) {
  std::string out = "arena " + std::to_string(schedule.arena_bytes) + " (lower bound " +
                    std::to_string(schedule.arena_lower_bound) + "), weights " +
                    std::to_string(schedule.weight_bytes) + ", scratch " +
                    std::to_string(schedule.scratch_bytes) + "\npeak";
  for (SlotId id : schedule.peak) out += " s" + std::to_string(id);
  out += "\n";
  for (size_t i = 0; i < schedule.slots.size(); ++i)
    out += "s" + std::to_string(i) + " = " + slot_text(schedule.slots[i]) + "\n";
  for (const Step& step : schedule.steps) {
    switch (step.kind) {
    case StepKind::Allocate:
      out += "allocate s" + std::to_string(step.slot);
      break;
    case StepKind::Deallocate:
      out += "deallocate s" + std::to_string(step.slot);
      break;
    case StepKind::CopyMemory:
      out += "copy s" + std::to_string(step.from) + " -> s" + std::to_string(step.to);
      break;
    case StepKind::LaunchProgram:
      out +=
          "launch k" + std::to_string(step.program) + " x" + std::to_string(step.chunks);
      for (SlotId id : step.arguments) out += " s" + std::to_string(id);
      break;
    }
    out += "\n";
  }
  for (size_t i = 0; i < schedule.programs.size(); ++i)
    out += "program k" + std::to_string(i) + "\n" + print(schedule.programs[i]);
  return out;
}

} // namespace svod
