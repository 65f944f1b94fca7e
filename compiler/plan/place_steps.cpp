// A slot is the unit of a copy. Steps of the processor that follow each other are a turn
// of it: copies down stand in front of the turn, copies up behind it, so a run is graphs
// of the GPU's steps with the processor's turns between them, and one wait for each turn.
//
// Two places of one slot agree but for what the last writer did. What the GPU writes is
// copied down where a later turn reads it; what a turn writes is copied up where the GPU
// reads it later. A tensor that both sides write parts of (a join) is whole on the GPU:
// parts from here go up behind their turn, whoever reads them. So is an output that a
// step of the GPU touches, since a run ends with a copy of such outputs down.
#include "compiler/plan/place_steps.h"

#include "compiler/plan/plan_memory.h"
#include "compiler/plan/planner.h"

#include <algorithm>

namespace svod::plan {

namespace {

bool is_marker(const Step& step) {
  return step.kind == StepKind::Allocate || step.kind == StepKind::Deallocate;
}

bool runs_here(const Plan& plan, const Step& step) {
  return step.kind == StepKind::LaunchProgram &&
         plan.programs[step.program].call() != nullptr;
}

class Placer {
public:
  explicit Placer(Plan& plan) : plan_(plan), old_(std::move(plan.steps)) {}
  void run();

private:
  // Bytes of the slot at its root.
  struct Part {
    SlotId root = kNoSlot;
    uint64_t begin = 0, end = 0;
    bool meets(const Part& other) const {
      return root == other.root && begin < other.end && other.begin < end;
    }
    bool holds(const Part& other) const {
      return root == other.root && begin <= other.begin && other.end <= end;
    }
  };
  Part part_of(SlotId id) const;
  std::vector<SlotId> touched(const Step& step, bool written) const;
  bool is_touched_from(size_t step, SlotId root) const;
  bool is_read_there(size_t from, SlotId id) const;
  bool is_touched_there(SlotId root, bool written) const;
  bool goes_up(size_t turn_end, SlotId id) const;
  void add_copy(StepKind kind, SlotId id);
  void copy_down(size_t begin, size_t end);
  void copy_up(size_t begin, size_t end);
  void note_written_there(const Step& step);
  void place_here();

  Plan& plan_;
  const std::vector<Step> old_;
  std::vector<Part> stale_; // what the GPU wrote: the processor does not have it
  std::vector<Part> known_; // of that, what was copied down since
};

Placer::Part Placer::part_of(SlotId id) const {
  Part out{id, 0, plan_.slots[id].bytes};
  for (; plan_.slots[out.root].slot_class == SlotClass::Slice;
       out.root = plan_.slots[out.root].parent) {
    out.begin += plan_.slots[out.root].offset;
    out.end += plan_.slots[out.root].offset;
  }
  return out;
}

// What the step reads, or writes; weights are nobody's to copy.
std::vector<SlotId> Placer::touched(const Step& step, bool written) const {
  std::vector<SlotId> out;
  if (step.kind == StepKind::CopyMemory) out = {written ? step.to : step.from};
  if (step.kind == StepKind::LaunchProgram) {
    const ScheduledKernel& kernel = plan_.programs[step.program];
    for (size_t i = 0; i < step.arguments.size(); ++i)
      if (written ? kernel.arguments[i].written : kernel.arguments[i].read)
        out.push_back(step.arguments[i]);
  }
  std::erase_if(out, [&](SlotId id) {
    return plan_.slots[root_slot(plan_, id)].slot_class == SlotClass::Weight;
  });
  return out;
}

bool Placer::is_touched_from(size_t step, SlotId root) const {
  return std::any_of(
      old_.begin() + static_cast<ptrdiff_t>(step), old_.end(), [&](const Step& s) {
        return !is_marker(s) && std::ranges::any_of(touched_slots(s), [&](SlotId id) {
          return root_slot(plan_, id) == root;
        });
      });
}

bool Placer::is_read_there(size_t from, SlotId id) const {
  const Part part = part_of(id);
  for (size_t s = from; s < old_.size(); ++s)
    if (!runs_here(plan_, old_[s]))
      for (SlotId read : touched(old_[s], false))
        if (part_of(read).meets(part)) return true;
  return false;
}

// `written`: only writers count.
bool Placer::is_touched_there(SlotId root, bool written) const {
  const auto is_of_root = [&](SlotId id) { return root_slot(plan_, id) == root; };
  return std::ranges::any_of(old_, [&](const Step& s) {
    return !runs_here(plan_, s) &&
           (std::ranges::any_of(touched(s, true), is_of_root) ||
            (!written && std::ranges::any_of(touched(s, false), is_of_root)));
  });
}

// `turn_end`: the first step behind the turn that writes the slot.
bool Placer::goes_up(size_t turn_end, SlotId id) const {
  if (is_read_there(turn_end, id)) return true;
  const SlotId root = root_slot(plan_, id);
  if (plan_.slots[root].slot_class == SlotClass::Output)
    return is_touched_there(root, false);
  return is_touched_there(root, true) && is_touched_from(turn_end, root);
}

void Placer::add_copy(StepKind kind, SlotId id) {
  Step step;
  step.kind = kind;
  step.slot = id;
  step.bytes = static_cast<int64_t>(plan_.slots[id].bytes);
  if (step.bytes != 0) plan_.steps.push_back(std::move(step));
}

void Placer::copy_down(size_t begin, size_t end) {
  for (size_t s = begin; s < end; ++s)
    for (SlotId id : touched(old_[s], false)) {
      const Part part = part_of(id);
      const auto meets = [&](const Part& other) { return other.meets(part); };
      const auto holds = [&](const Part& other) { return other.holds(part); };
      if (std::ranges::none_of(stale_, meets) || std::ranges::any_of(known_, holds))
        continue;
      add_copy(StepKind::CopyDown, id);
      known_.push_back(part);
    }
}

void Placer::copy_up(size_t begin, size_t end) {
  std::vector<SlotId> done;
  for (size_t s = begin; s < end; ++s)
    for (SlotId id : touched(old_[s], true)) {
      if (!goes_up(end, id) || std::ranges::count(done, id) != 0) continue;
      add_copy(StepKind::CopyUp, id);
      done.push_back(id);
    }
}

void Placer::note_written_there(const Step& step) {
  for (SlotId id : touched(step, true)) {
    const Part part = part_of(id);
    std::erase_if(known_, [&](const Part& other) { return other.meets(part); });
    stale_.push_back(part);
  }
}

// From the first step that touches it here to the last; a copy up has been waited for
// before the next turn begins.
void Placer::place_here() {
  std::vector<Lifetime> lives;
  std::vector<SlotId> slots;
  const auto touch = [&](SlotId id, uint32_t step) {
    const SlotId root = root_slot(plan_, id);
    if (plan_.slots[root].slot_class != SlotClass::Temporary) return;
    const auto at = std::ranges::find(slots, root);
    if (at != slots.end()) {
      lives[static_cast<size_t>(at - slots.begin())].last = step;
      return;
    }
    slots.push_back(root);
    lives.push_back({plan_.slots[root].bytes, step, step});
  };
  for (uint32_t s = 0; s < plan_.steps.size(); ++s) {
    const Step& step = plan_.steps[s];
    const bool copies = step.kind == StepKind::CopyDown || step.kind == StepKind::CopyUp;
    if (copies || step.is_here)
      for (SlotId id : touched_slots(step)) touch(id, s);
  }
  const MemoryPlan memory = plan_memory(lives, plan_.align);
  for (size_t i = 0; i < slots.size(); ++i)
    plan_.slots[slots[i]].here = memory.offsets[i];
  plan_.here_bytes = memory.bytes;
}

void Placer::run() {
  for (size_t s = 0; s < old_.size();) {
    if (!runs_here(plan_, old_[s])) {
      note_written_there(old_[s]);
      plan_.steps.push_back(old_[s++]);
      continue;
    }
    size_t end = s + 1; // behind the turn's last step
    for (size_t i = s; i < old_.size(); ++i) {
      if (is_marker(old_[i])) continue;
      if (!runs_here(plan_, old_[i])) break;
      end = i + 1;
    }
    copy_down(s, end);
    for (size_t i = s; i < end; ++i) {
      plan_.steps.push_back(old_[i]);
      plan_.steps.back().is_here = runs_here(plan_, old_[i]);
    }
    copy_up(s, end);
    s = end;
  }
  place_here();
}

} // namespace

bool is_straight(const Plan& plan) {
  return std::ranges::none_of(plan.steps, [](const Step& step) {
    return step.kind == StepKind::Loop || step.kind == StepKind::If;
  });
}

void place_steps(Plan& plan) {
  const bool any = std::ranges::any_of(
      plan.steps, [&](const Step& step) { return runs_here(plan, step); });
  if (any && is_straight(plan)) Placer(plan).run();
}

Crossings crossings_of(const Plan& plan) {
  Crossings out;
  bool there = false; // whether a graph is under way
  for (const Step& step : plan.steps) {
    if (is_marker(step)) continue;
    if (!step.is_here && !there) ++out.graphs;
    there = !step.is_here;
    if (step.kind != StepKind::CopyDown && step.kind != StepKind::CopyUp) continue;
    ++out.copies;
    out.bytes += step.bytes;
  }
  return out;
}

bool is_only_here(const Plan& plan, SlotId port) {
  bool here = false, there = false;
  for (const Step& step : plan.steps) {
    if (step.kind == StepKind::CopyDown || step.kind == StepKind::CopyUp) continue;
    const std::vector<SlotId> touched = touched_slots(step);
    if (std::ranges::any_of(touched,
                            [&](SlotId id) { return root_slot(plan, id) == port; }))
      (step.is_here ? here : there) = true;
  }
  return here && !there;
}

} // namespace svod::plan
