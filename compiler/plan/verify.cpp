// Walks the steps as a run would, keeping the set of temporaries alive.
#include "compiler/plan/verify.h"

#include "compiler/plan/apart.h"
#include "compiler/plan/planner.h"
#include "compiler/plan/verify_stream.h"

#include "compiler/support/check.h"

#include <set>

namespace svod::plan {

// A slice stays inside its parent in its first iteration, in the one beside it where two
// places take turns, and in the last of a loop (which is checked where it is used).
static void check_slice(const Plan& s, SlotId id) {
  const Slot& slot = s.slots[id];
  SVOD_CHECK(slot.parent < id) << "slot " << id << " is a part of a later one";
  const auto room = static_cast<int64_t>(s.slots[slot.parent].bytes);
  const auto first = static_cast<int64_t>(slot.offset);
  const auto bytes = static_cast<int64_t>(slot.bytes);
  const int64_t other = slot.alternates ? first + slot.stride : first;
  SVOD_CHECK(first >= 0 && other >= 0 && first + bytes <= room && other + bytes <= room)
      << "slot " << id << " ends outside slot " << slot.parent;
}

static void check_slot(const Plan& s, SlotId id) {
  const Slot& slot = s.slots[id];
  if (slot.slot_class == SlotClass::Slice) return check_slice(s, id);
  uint64_t section = 0;
  if (slot.slot_class == SlotClass::Temporary)
    section = s.arena_bytes;
  else if (slot.slot_class == SlotClass::Weight)
    section = s.weight_bytes;
  else if (slot.slot_class == SlotClass::Part)
    section = s.scratch_bytes;
  else
    return;
  SVOD_CHECK(slot.offset <= section && slot.bytes <= section - slot.offset)
      << "slot " << id << " ends outside its section";
}

namespace {

// Where a walk through the steps is: what is alive, and the regions around it.
struct Place {
  const Step* chain = nullptr;     // the first step of the one that is run
  uint32_t followers = 0;          // of it that are to come
  std::vector<const Step*> stream; // the steps of the chain so far
  bool in_stream = false;          // the step is one of a stream
  std::set<SlotId> alive;
  std::vector<const Step*> open;
  std::vector<std::set<SlotId>> before; // alive where each open region began
};

} // namespace

// A slice moves with a loop around it and stays inside its parent to the last iteration.
static void check_strides(const Plan& s, const Place& place, SlotId id) {
  for (; s.slots[id].slot_class == SlotClass::Slice; id = s.slots[id].parent) {
    const Slot& slot = s.slots[id];
    if (slot.alternates || slot.stride == 0) continue;
    const RegionSlots* around = nullptr;
    for (const Step* step : place.open)
      if (step->kind == StepKind::Loop && step->region.depth == slot.depth)
        around = &step->region;
    SVOD_CHECK(around != nullptr) << "slot " << id << " moves with no loop";
    const int64_t last =
        static_cast<int64_t>(slot.offset) + slot.stride * (int64_t{around->limit} - 1);
    const auto room = static_cast<int64_t>(s.slots[slot.parent].bytes);
    SVOD_CHECK(around->limit == 0 ||
               (last >= 0 && last + static_cast<int64_t>(slot.bytes) <= room))
        << "slot " << id << " leaves slot " << slot.parent;
  }
}

static void check_use(const Plan& s, const Place& place, SlotId id) {
  SVOD_CHECK(id < s.slots.size()) << "no slot " << id;
  check_strides(s, place, id);
  const SlotId root = root_slot(s, id);
  SVOD_CHECK(s.slots[root].slot_class != SlotClass::Temporary ||
             place.alive.count(root) != 0)
      << "slot " << id << " is used outside its life";
}

static bool overlap(const Plan& s, SlotId read, SlotId written) {
  return std::ranges::any_of(s.overlaps, [&](const Overlap& o) {
    return o.read == read && o.written == written;
  });
}

// With the loops that the kernel has in the end.
static void check_overlaps(const Plan& s, const ScheduledKernel& kernel,
                           const Step& step) {
  for (const SharedArguments& shared : shared_arguments(s, step))
    SVOD_CHECK(kernel.arguments[shared.read].shares &&
               kernel.arguments[shared.written].shares)
        << "program " << step.program << " does not expect that its arguments overlap";
  SVOD_CHECK(kernel.levels.empty() || stays_apart(s, kernel, step))
      << "program " << step.program << " writes over what it is going to read";
}

static void allocate(const Plan& s, std::set<SlotId>& alive, SlotId id) {
  SVOD_CHECK(id < s.slots.size()) << "no slot " << id;
  const Slot& a = s.slots[id];
  for (SlotId other : alive) {
    const Slot& b = s.slots[other];
    bool apart = a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset;
    SVOD_CHECK(apart || overlap(s, other, id))
        << "slots " << id << " and " << other << " share bytes";
  }
  SVOD_CHECK(alive.insert(id).second) << "slot " << id << " is allocated twice";
}

static void check_launch(const Plan& s, std::span<const ScheduledKernel> programs,
                         const Step& step, bool in_stream) {
  SVOD_CHECK(step.program < programs.size()) << "no program " << step.program;
  const ScheduledKernel& kernel = programs[step.program];
  SVOD_CHECK(step.arguments.size() == kernel.arguments.size() &&
             step.chunks == kernel.chunk_count())
      << "a launch of program " << step.program << " is none of its";
  if (!in_stream) check_overlaps(s, kernel, step);
}

// The processor finds what it touches in its memory: the temporaries at places of theirs,
// the rest where the caller, or the program, has it.
static void check_place_here(const Plan& s, const Step& step) {
  for (SlotId id : touched_slots(step)) {
    const Slot& root = s.slots[root_slot(s, id)];
    if (root.slot_class != SlotClass::Temporary) continue;
    SVOD_CHECK(root.here && *root.here <= s.here_bytes &&
               root.bytes <= s.here_bytes - *root.here)
        << "slot " << id << " has no place here";
  }
}

// Only launches with as many parts follow each other in a chain, and only they take
// parts.
static void check_chain(const Plan& s, Place& place, const Step& step) {
  const bool launch = step.kind == StepKind::LaunchProgram;
  if (place.followers != 0) {
    SVOD_CHECK(launch && step.followers == 0 &&
               (place.chain->stream || step.chunks == place.chain->chunks))
        << "a chain is broken";
    place.stream.push_back(&step);
    --place.followers;
  } else {
    place.chain = launch && (step.followers != 0 || step.stream) ? &step : nullptr;
    place.followers = step.followers;
    place.stream = {&step};
    SVOD_CHECK(launch || step.followers == 0) << "a chain begins with no launch";
  }
  place.in_stream = place.chain != nullptr && place.chain->stream;
  for (SlotId id : touched_slots(step))
    SVOD_CHECK(place.chain != nullptr || s.slots[id].slot_class != SlotClass::Part)
        << "slot " << id << " is used outside its chain";
  if (place.followers != 0) return;
  if (place.in_stream) verify_stream(s, place.stream);
  place.chain = nullptr;
}

// What lives when a branch or an iteration ends is what lived before it.
static void check_marker(Place& place, const Step& step) {
  if (step.kind == StepKind::Loop || step.kind == StepKind::If) {
    place.open.push_back(&step);
    place.before.push_back(place.alive);
    return;
  }
  SVOD_CHECK(!place.open.empty() &&
             (step.kind == StepKind::End || place.open.back()->kind == StepKind::If))
      << "a region ends that did not begin";
  const bool loop = place.open.back()->kind == StepKind::Loop;
  SVOD_CHECK(!loop || place.alive == place.before.back())
      << "a temporary outlives the iteration";
  if (step.kind == StepKind::Else) return;
  place.open.pop_back();
  place.before.pop_back();
}

static void check_step(const Plan& s, std::span<const ScheduledKernel> programs,
                       Place& place, const Step& step);

// What a sequence does to an argument stays inside its slot in every iteration.
static void check_reach(const Plan& s, const Step& joined,
                        const ScheduledKernel& sequence) {
  std::map<uint32_t, int64_t> count; // of the loops, by depth
  size_t at = 0;
  for (const SequenceStep& step : sequence.sequence()->steps) {
    while (joined.joined[at].kind == StepKind::Allocate ||
           joined.joined[at].kind == StepKind::Deallocate)
      ++at;
    const Step& from = joined.joined[at++];
    if (step.kind == SequenceStep::Kind::Loop) count[step.depth] = step.count;
    std::vector<SlotId> slots = from.arguments;
    if (step.kind == SequenceStep::Kind::Copy) slots = {from.from, from.to};
    SVOD_CHECK(slots.size() == step.places.size()) << "a sequence is none of its steps";
    for (size_t i = 0; i < slots.size(); ++i) {
      const SequenceStep::Place& place = step.places[i];
      int64_t low = place.offset, high = place.offset;
      for (const SequenceStep::Move& m : place.moves) {
        const int64_t most = m.alternates ? 1 : count.at(m.depth) - 1;
        (m.stride < 0 ? low : high) += m.stride * most;
      }
      const Slot& slot = s.slots[joined.arguments[place.argument]];
      SVOD_CHECK(low >= 0 && high + static_cast<int64_t>(s.slots[slots[i]].bytes) <=
                                 static_cast<int64_t>(slot.bytes))
          << "a sequence leaves slot " << joined.arguments[place.argument];
    }
  }
}

static void check_joined(const Plan& s, Place& place, const Step& step) {
  check_launch(s, s.programs, step, false);
  const ScheduledKernel& sequence = s.programs[step.program];
  check_reach(s, step, sequence);
  for (const Step& part : step.joined) check_step(s, sequence.parts(), place, part);
}

static void check_step(const Plan& s, std::span<const ScheduledKernel> programs,
                       Place& place, const Step& step) {
  if (!step.joined.empty()) return check_joined(s, place, step);
  if (step.kind != StepKind::Allocate && step.kind != StepKind::Deallocate) {
    for (SlotId id : touched_slots(step)) check_use(s, place, id);
    check_chain(s, place, step);
  }
  switch (step.kind) {
  case StepKind::Allocate:
    return allocate(s, place.alive, step.slot);
  case StepKind::Deallocate:
    SVOD_CHECK(place.alive.erase(step.slot) == 1)
        << "slot " << step.slot << " is not alive";
    return;
  case StepKind::CopyMemory:
    return;
  case StepKind::CopyDown:
  case StepKind::CopyUp:
    return check_place_here(s, step);
  case StepKind::LaunchProgram:
    if (step.is_here) check_place_here(s, step);
    return check_launch(s, programs, step, place.in_stream);
  default:
    check_marker(place, step);
  }
}

void verify(const Plan& s) {
  for (SlotId id = 0; id < s.slots.size(); ++id) check_slot(s, id);
  Place place;
  for (const Step& step : s.steps) check_step(s, s.programs, place, step);
  SVOD_CHECK(place.alive.empty()) << "a temporary outlives the last step";
  SVOD_CHECK(place.open.empty()) << "a region has no end";
}

} // namespace svod::plan
