// The text form of a plan. What a region runs is indented.
#include "compiler/kernel/schedule_file.h"
#include "compiler/plan/plan.h"

namespace svod::plan {

static std::string slot_text(const Slot& slot) {
  if (slot.slot_class == SlotClass::Slice)
    return "s" + std::to_string(slot.parent) + " + " + std::to_string(slot.offset) +
           (slot.alternates ? " alternating " : " + ") + std::to_string(slot.stride) +
           " per iteration of loop " + std::to_string(slot.depth) + ", " +
           std::to_string(slot.bytes) + " bytes";
  static const char* names[] = {"input",     "output", "weight", "state",
                                "temporary", "slice",  "part"};
  std::string out = names[static_cast<int>(slot.slot_class)];
  if (slot.slot_class == SlotClass::Input || slot.slot_class == SlotClass::Output)
    out += " " + std::to_string(slot.io);
  else
    out += " at " + std::to_string(slot.offset);
  if (slot.here) out += ", here at " + std::to_string(*slot.here);
  return out + ", " + std::to_string(slot.bytes) + " bytes";
}

static std::string name_of(SlotId id) { return " s" + std::to_string(id); }

static std::string loop_text(const RegionSlots& r) {
  std::string out = "loop" + name_of(r.count) + " times while" + name_of(r.start);
  if (r.again != kNoSlot) out += " then" + name_of(r.again);
  out += ", iteration" + name_of(r.iteration) + ", limit " + std::to_string(r.limit);
  if (r.done != kNoSlot) out += ", done" + name_of(r.done);
  return out;
}

static std::string step_text(const Step& step) {
  std::string out;
  switch (step.kind) {
  case StepKind::Allocate:
    return "allocate" + name_of(step.slot);
  case StepKind::Deallocate:
    return "deallocate" + name_of(step.slot);
  case StepKind::CopyMemory:
    return "copy" + name_of(step.from) + " ->" + name_of(step.to);
  case StepKind::LaunchProgram:
    out = "launch k" + std::to_string(step.program) + " x" + std::to_string(step.chunks);
    for (SlotId id : step.arguments) out += name_of(id);
    if (step.is_here) out += " on the processor, as C++ of its own";
    if (step.followers != 0) out += " with the next " + std::to_string(step.followers);
    if (step.stream) out += " as stream " + std::to_string(*step.stream);
    return out;
  case StepKind::Loop:
    return loop_text(step.region);
  case StepKind::If:
    return "if" + name_of(step.region.start);
  case StepKind::Else:
    return "else";
  case StepKind::End:
    return "end";
  case StepKind::CopyDown:
    return "copy down" + name_of(step.slot);
  case StepKind::CopyUp:
    return "copy up" + name_of(step.slot);
  }
  return out;
}

static std::string stream_text(const Stream& stream) {
  std::string out = "turns " + std::to_string(stream.first_turn) + " to " +
                    std::to_string(stream.turns) + ", " +
                    std::to_string(stream.copied_bytes) + " bytes are moved\n";
  for (const Stream::Launch& l : stream.launches)
    out += "  launch of " + std::to_string(l.chunks) + " chunks, rate " +
           std::to_string(l.rate) + ", ahead " + std::to_string(l.ahead) + "\n";
  for (const Stream::Whole& w : stream.wholes)
    out += "  launch " + std::to_string(w.launch) + (w.written ? " writes" : " reads") +
           name_of(w.slot) + ": rows " + std::to_string(w.low) + " to " +
           std::to_string(w.high) + " of its first chunk, then " +
           std::to_string(w.step) + " on\n";
  for (const Stream::Window& w : stream.windows)
    out += "  window" + name_of(w.slot) + " of launch " + std::to_string(w.writer) +
           ": " + std::to_string(w.rows) + " rows of " + std::to_string(w.row_bytes) +
           " bytes, " + std::to_string(w.by) + " with each chunk from " +
           std::to_string(w.first) + " on, " + std::to_string(w.count) + " in all" +
           (w.border ? ", border " + std::to_string(w.fill) : "") + "\n";
  return out;
}

std::string print(const Plan& plan) {
  std::string out = "arena " + std::to_string(plan.arena_bytes) + " (lower bound " +
                    std::to_string(plan.arena_lower_bound) + "), weights " +
                    std::to_string(plan.weight_bytes) + ", scratch " +
                    std::to_string(plan.scratch_bytes);
  if (plan.here_bytes != 0) out += ", here " + std::to_string(plan.here_bytes);
  out += "\npeak";
  for (SlotId id : plan.peak) out += " s" + std::to_string(id);
  out += "\n";
  for (const Overlap& o : plan.overlaps)
    out += "overlap" + name_of(o.read) + name_of(o.written) + "\n";
  for (size_t i = 0; i < plan.streams.size(); ++i)
    out += "stream " + std::to_string(i) + ": " + stream_text(plan.streams[i]);
  for (size_t i = 0; i < plan.slots.size(); ++i)
    out += "s" + std::to_string(i) + " = " + slot_text(plan.slots[i]) + "\n";
  size_t depth = 0;
  for (const Step& step : plan.steps) {
    if (step.kind == StepKind::Else || step.kind == StepKind::End) --depth;
    out += std::string(2 * depth, ' ') + step_text(step) + "\n";
    if (step.kind == StepKind::Loop || step.kind == StepKind::If ||
        step.kind == StepKind::Else)
      ++depth;
  }
  for (size_t i = 0; i < plan.programs.size(); ++i)
    out +=
        "program k" + std::to_string(i) + " " + digest_of(plan.programs[i]).hex() + "\n";
  return out;
}

std::string print_programs(const Plan& plan) {
  std::string out;
  for (size_t i = 0; i < plan.streams.size(); ++i)
    out += "stream " + std::to_string(i) + ": " + stream_text(plan.streams[i]);
  for (size_t i = 0; i < plan.programs.size(); ++i)
    out += print_program("k" + std::to_string(i), plan.programs[i]);
  return out;
}

} // namespace svod::plan
