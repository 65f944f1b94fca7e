#include "compiler/plan/io.h"

#include "compiler/plan/place_steps.h"

#include <algorithm>

namespace svod::plan {

namespace {

class Meter {
public:
  Meter(const Plan& plan, const Machine& machine)
      : plan_(plan), machine_(machine), distances_(machine) {}
  IoProfile run();

private:
  void step(const Step& step, const ScheduledKernel* sequence = nullptr);
  void launch(const Step& step, const ScheduledKernel& kernel);
  void read(SlotId slot, int64_t bytes, int64_t repeats);
  void write(SlotId slot, int64_t bytes, int64_t repeats);
  void wait(int64_t times) { out_.syncs += machine_.shared_memory ? 0 : times; }
  void hand_over(int64_t bytes) { out_.host_bytes += machine_.shared_memory ? 0 : bytes; }
  void interface();
  int64_t bytes_of(SlotId slot) const {
    return static_cast<int64_t>(plan_.slots[slot].bytes);
  }

  const Plan& plan_;
  const Machine& machine_;
  ReuseDistances distances_;
  IoProfile out_;
};

void Meter::read(SlotId slot, int64_t bytes, int64_t repeats) {
  out_.at(distances_.touch(slot, bytes)).read += bytes * repeats;
}

// What is written stays as near as all of it can.
void Meter::write(SlotId slot, int64_t bytes, int64_t repeats) {
  distances_.touch(slot, bytes);
  out_.at(level_of(machine_, bytes)).written += bytes * repeats;
}

void Meter::launch(const Step& step, const ScheduledKernel& k) {
  if (step.is_here) return; // what it takes is copied by steps of their own
  out_.operations += double(step.flops) * double(step.repeats);
  if (k.call()) wait(2 * step.repeats);
  for (uint32_t a = 0; a < step.arguments.size(); ++a) {
    const SlotId slot = step.arguments[a];
    const int64_t bytes = touched_bytes(k, a, bytes_of(slot));
    if (k.arguments[a].read) read(slot, bytes, step.repeats);
    if (k.arguments[a].written) write(slot, bytes, step.repeats);
    if (k.call()) hand_over(bytes * step.repeats);
  }
}

// `sequence`: that it is a part of.
void Meter::step(const Step& s, const ScheduledKernel* sequence) {
  switch (s.kind) {
  case StepKind::LaunchProgram: {
    const ScheduledKernel& k =
        sequence == nullptr ? plan_.programs[s.program] : sequence->parts()[s.program];
    if (sequence == nullptr && !s.is_here) out_.launches += s.repeats;
    if (s.joined.empty()) launch(s, k);
    for (const Step& part : s.joined) step(part, &k);
    break;
  }
  case StepKind::CopyMemory:
    read(s.from, s.bytes / 2, s.repeats);
    write(s.to, s.bytes / 2, s.repeats);
    break;
  case StepKind::Loop: // the host asks before each iteration
    if (s.region.again != kNoSlot) wait(s.repeats * (s.region.known + 1));
    break;
  case StepKind::If:
    wait(s.repeats);
    break;
  case StepKind::CopyDown:
  case StepKind::CopyUp:
    hand_over(s.bytes);
    break;
  default:
    break;
  }
}

void Meter::interface() {
  bool waited = false;
  for (SlotId id = 0; id < plan_.slots.size(); ++id) {
    const Slot& slot = plan_.slots[id];
    const bool output = slot.slot_class == SlotClass::Output;
    if ((output || slot.slot_class == SlotClass::Input) && !is_only_here(plan_, id))
      hand_over(bytes_of(id));
    if (output && !waited) wait(1);
    waited |= output;
  }
}

IoProfile Meter::run() {
  for (int time = 0; time < 2; ++time) {
    out_ = {};
    for (const Step& s : plan_.steps) step(s);
  }
  interface();
  wait(std::max<int64_t>(crossings_of(plan_).graphs - 1, 0));
  return out_;
}

} // namespace

IoProfile io_profile(const Plan& plan, const Machine& machine) {
  return Meter(plan, machine).run();
}

static void add_copies(const std::vector<Step>& steps, Copies& out) {
  for (const Step& step : steps) {
    add_copies(step.joined, out);
    if (step.kind != StepKind::CopyMemory) continue;
    out.count += step.repeats;
    out.bytes += step.bytes / 2 * step.repeats;
  }
}

Copies copies_of(const Plan& plan) {
  Copies out;
  add_copies(plan.steps, out);
  return out;
}

} // namespace svod::plan
