// Every temporary is allocated by one step and, unless it lives to the end, deallocated
// by another one; steps of a sequence are in it. So one walk finds all live ranges. What
// is alive is counted by the bytes that it covers, since two slots may share some.
#include "compiler/plan/memory_use.h"

#include "compiler/plan/planner.h"
#include "compiler/support/round_up.h"

#include <algorithm>
#include <map>

namespace svod::plan {

namespace {

class MemoryWalk {
public:
  explicit MemoryWalk(const Plan& plan) : s_(plan) {}
  MemoryUse run();

private:
  void visit(const Step& step, std::optional<uint32_t> launch,
             const ScheduledKernel* kernel);
  void note_writer(const Step& step, const ScheduledKernel* kernel);
  uint64_t live_bytes() const;

  const Plan& s_;
  MemoryUse out_;
  std::map<SlotId, size_t> alive_; // slot to its range
};

// A kernel says which arguments it writes; a step without one that touches a slot which
// nothing has written yet does it.
void MemoryWalk::note_writer(const Step& step, const ScheduledKernel* kernel) {
  const std::vector<SlotId> touched = kernel ? step.arguments
                                      : step.kind == StepKind::CopyMemory
                                          ? std::vector<SlotId>{step.to}
                                          : touched_slots(step);
  for (size_t i = 0; i < touched.size(); ++i) {
    if (kernel && !kernel->arguments[i].written) continue;
    const auto found = alive_.find(root_slot(s_, touched[i]));
    if (found == alive_.end()) continue;
    LiveRange& range = out_.ranges[found->second];
    if (range.sources.empty()) range.sources = step.sources;
  }
}

uint64_t MemoryWalk::live_bytes() const {
  std::vector<std::pair<uint64_t, uint64_t>> covered;
  for (const auto& [slot, range] : alive_) {
    const Slot& found = s_.slots[slot];
    covered.emplace_back(found.offset, found.offset + round_up(found.bytes, s_.align));
  }
  std::ranges::sort(covered);
  uint64_t live = 0, end = 0;
  for (const auto& [from, to] : covered) {
    if (to > end) live += to - std::max(from, end);
    end = std::max(end, to);
  }
  return live;
}

void MemoryWalk::visit(const Step& step, std::optional<uint32_t> launch,
                       const ScheduledKernel* kernel) {
  if (step.kind == StepKind::Allocate) {
    const auto now = static_cast<uint32_t>(out_.moments.size());
    alive_.emplace(step.slot, out_.ranges.size());
    out_.ranges.push_back({step.slot, now, now, {}});
  } else if (step.kind == StepKind::Deallocate) {
    const auto found = alive_.find(step.slot);
    out_.ranges[found->second].last = static_cast<uint32_t>(out_.moments.size()) - 1;
    alive_.erase(found);
  } else {
    note_writer(step, kernel);
    out_.moments.push_back({&step, launch, live_bytes()});
  }
}

MemoryUse MemoryWalk::run() {
  uint32_t launches = 0;
  for (const Step& step : s_.steps) {
    if (step.kind != StepKind::LaunchProgram) {
      visit(step, std::nullopt, nullptr);
      continue;
    }
    const ScheduledKernel& program = s_.programs[step.program];
    if (step.joined.empty()) visit(step, launches, &program);
    for (const Step& part : step.joined)
      visit(part, launches,
            part.kind == StepKind::LaunchProgram
                ? &program.sequence()->parts[part.program]
                : nullptr);
    ++launches;
  }
  for (const auto& [slot, range] : alive_)
    out_.ranges[range].last = static_cast<uint32_t>(out_.moments.size()) - 1;
  return std::move(out_);
}

} // namespace

MemoryUse memory_use(const Plan& plan) { return MemoryWalk(plan).run(); }

} // namespace svod::plan
