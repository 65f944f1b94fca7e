// Walks the steps as a run would, keeping the set of temporaries alive.
#include "compiler/schedule/verify.h"

#include "compiler/support/check.h"

#include <set>

namespace svod {

static void check_slot(const Schedule& s, SlotId id) {
  const Slot& slot = s.slots[id];
  bool temporary = slot.slot_class == SlotClass::Temporary;
  if (!temporary && slot.slot_class != SlotClass::Weight) return;
  uint64_t section = temporary ? s.arena_bytes : s.weight_bytes;
  SVOD_CHECK(slot.offset <= section && slot.bytes <= section - slot.offset)
      << "slot " << id << " ends outside its section";
}

static void check_use(const Schedule& s, const std::set<SlotId>& alive, SlotId id) {
  SVOD_CHECK(id < s.slots.size()) << "no slot " << id;
  SVOD_CHECK(s.slots[id].slot_class != SlotClass::Temporary || alive.count(id) != 0)
      << "slot " << id << " is used outside its life";
}

static void allocate(const Schedule& s, std::set<SlotId>& alive, SlotId id) {
  SVOD_CHECK(id < s.slots.size()) << "no slot " << id;
  const Slot& a = s.slots[id];
  for (SlotId other : alive) {
    const Slot& b = s.slots[other];
    bool apart = a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset;
    SVOD_CHECK(apart) << "slots " << id << " and " << other << " share bytes";
  }
  SVOD_CHECK(alive.insert(id).second) << "slot " << id << " is allocated twice";
}

static void check_launch(const Schedule& s, const std::set<SlotId>& alive,
                         const Step& step) {
  SVOD_CHECK(step.program < s.programs.size()) << "no program " << step.program;
  const Kernel& kernel = s.programs[step.program];
  SVOD_CHECK(step.arguments.size() == kernel.arguments.size() &&
             step.chunks == kernel.chunk_count())
      << "a launch of program " << step.program << " is none of its";
  for (SlotId id : step.arguments) check_use(s, alive, id);
}

void verify(const Schedule& s) {
  for (SlotId id = 0; id < s.slots.size(); ++id) check_slot(s, id);
  std::set<SlotId> alive;
  for (const Step& step : s.steps) {
    switch (step.kind) {
    case StepKind::Allocate:
      allocate(s, alive, step.slot);
      break;
    case StepKind::Deallocate:
      SVOD_CHECK(alive.erase(step.slot) == 1) << "slot " << step.slot << " is not alive";
      break;
    case StepKind::CopyMemory:
      check_use(s, alive, step.from);
      check_use(s, alive, step.to);
      break;
    case StepKind::LaunchProgram:
      check_launch(s, alive, step);
      break;
    }
  }
  SVOD_CHECK(alive.empty()) << "a temporary outlives the last step";
}

} // namespace svod
