// Steps that a run may leave out. What a step hangs on are the inputs that it reads and
// those that the writers of what it reads hang on. Steps that hang on the same inputs run
// or stay out together, so what only they touch is temporary as ever. What others read,
// too, is kept until the next run: no other bytes lie there.
//
// That a kept result may be read without being written again holds where all of it is
// there before somebody reads it. A tensor that is changed later, or of which the parts
// are written in an order, is made anew as a whole: all that touch it hang on the same.
//
// Steps that hang on no input, as the zeros around a picture, run with those that touch
// what they write: kept, each would be memory of its own.
#include "compiler/kernel/stage_work.h"
#include "compiler/plan/planner.h"

#include <algorithm>

namespace svod::plan {

namespace {

// States are others in every run.
constexpr uint64_t kAlways = ~uint64_t{0};

// Steps that run as one: a launch with those of its chain, a region, a copy.
struct Unit {
  size_t begin = 0, end = 0;
  uint64_t mask = 0;
};

struct Touch {
  size_t unit = 0;
  bool reads = false, writes = false;
  bool stores = false; // it only writes, and parts that no other store writes
};

class ChangeSearch {
public:
  ChangeSearch(const Plan& plan, const Graph& graph) : plan_(plan), graph_(graph) {
    find_units();
    find_touches();
  }
  // By step.
  std::vector<uint64_t> masks();
  // Temporaries that steps of different masks touch.
  std::set<SlotId> kept() const;

private:
  void find_units();
  void find_touches();
  void note(SlotId id, const Touch& touch);
  uint64_t mask_of(SlotId id) const;
  bool is_state(SlotId id) const;
  bool is_made_once(const std::vector<Touch>& touches) const;
  bool spread();
  void join_idle();

  const Plan& plan_;
  const Graph& graph_;
  std::vector<Unit> units_;
  std::map<SlotId, std::vector<Touch>> touches_; // by the slot that is no part
};

void ChangeSearch::find_units() {
  for (size_t s = 0; s < plan_.steps.size();) {
    const size_t begin = s;
    int open = 0;
    do {
      const Step& step = plan_.steps[s];
      open += step.kind == StepKind::Loop || step.kind == StepKind::If;
      open -= step.kind == StepKind::End;
      s += 1 + step.followers;
    } while (open != 0);
    units_.push_back({begin, s});
  }
}

void ChangeSearch::note(SlotId id, const Touch& touch) {
  const SlotClass kind = plan_.slots[id].slot_class;
  if (kind == SlotClass::Weight || kind == SlotClass::Part) return;
  touches_[root_slot(plan_, id)].push_back(touch);
}

void ChangeSearch::find_touches() {
  for (size_t u = 0; u < units_.size(); ++u)
    for (size_t s = units_[u].begin; s < units_[u].end; ++s) {
      const Step& step = plan_.steps[s];
      if (step.kind == StepKind::CopyMemory) {
        note(step.from, {u, true, false, false});
        note(step.to, {u, false, true, false});
      } else if (step.kind == StepKind::LaunchProgram) {
        const ScheduledKernel& kernel = plan_.programs[step.program];
        for (size_t i = 0; i < step.arguments.size(); ++i) {
          const Argument& a = kernel.arguments[i];
          note(step.arguments[i], {u, a.read, a.written, !a.read && only_stores(kernel)});
        }
      } else {
        for (const SlotId id : touched_slots(step)) note(id, {u, true, true, false});
      }
    }
}

uint64_t ChangeSearch::mask_of(SlotId id) const {
  if (is_state(id)) return kAlways;
  const Slot& slot = plan_.slots[id];
  return slot.slot_class == SlotClass::Input
             ? uint64_t{1} << std::min(slot.io, kLastChangeBit)
             : 0;
}

bool ChangeSearch::is_state(SlotId id) const {
  const Slot& slot = plan_.slots[id];
  return std::ranges::any_of(graph_.states(), [&](const StateLink& link) {
    return (slot.slot_class == SlotClass::Input && link.input == slot.io) ||
           (slot.slot_class == SlotClass::Output && link.output == slot.io);
  });
}

// All is written before anybody else reads, and by nobody a second time.
bool ChangeSearch::is_made_once(const std::vector<Touch>& touches) const {
  size_t first_read = units_.size(), last_write = 0;
  std::set<size_t> writers;
  bool stores = true;
  for (const Touch& t : touches) {
    if (t.reads) first_read = std::min(first_read, t.unit);
    if (t.writes) last_write = std::max(last_write, t.unit), writers.insert(t.unit);
    if (t.writes) stores = stores && t.stores;
  }
  if (writers.size() <= 1) return first_read >= last_write;
  return stores && first_read > last_write;
}

// Once more from slot to slot; whether anything has changed.
bool ChangeSearch::spread() {
  bool any = false;
  for (const auto& [id, touches] : touches_) {
    const bool once = is_made_once(touches) && !is_state(id);
    uint64_t mask = mask_of(id);
    for (const Touch& t : touches)
      if (t.writes || !once) mask |= units_[t.unit].mask;
    for (const Touch& t : touches) {
      if (once && !t.reads) continue;
      any |= (units_[t.unit].mask | mask) != units_[t.unit].mask;
      units_[t.unit].mask |= mask;
    }
  }
  return any;
}

void ChangeSearch::join_idle() {
  std::vector<uint64_t> with(units_.size(), kAlways);
  for (const auto& [id, touches] : touches_)
    for (const Touch& t : touches)
      for (const Touch& other : touches)
        if (units_[other.unit].mask != 0) with[t.unit] &= units_[other.unit].mask;
  for (size_t u = 0; u < units_.size(); ++u)
    if (units_[u].mask == 0) units_[u].mask = with[u];
}

std::vector<uint64_t> ChangeSearch::masks() {
  while (spread()) {
  }
  join_idle();
  while (spread()) {
  }
  std::vector<uint64_t> out(plan_.steps.size());
  for (const Unit& unit : units_)
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(unit.begin),
              out.begin() + static_cast<std::ptrdiff_t>(unit.end), unit.mask);
  return out;
}

std::set<SlotId> ChangeSearch::kept() const {
  std::set<SlotId> out;
  for (const auto& [id, touches] : touches_)
    if (plan_.slots[id].slot_class == SlotClass::Temporary &&
        std::ranges::any_of(touches, [&](const Touch& t) {
          return units_[t.unit].mask != units_[touches[0].unit].mask;
        }))
      out.insert(id);
  return out;
}

} // namespace

void Planner::add_changes() {
  ChangeSearch search(out_, f_.graph);
  const std::vector<uint64_t> masks = search.masks();
  kept_ = search.kept();
  std::vector<uint64_t> known = masks;
  std::ranges::sort(known);
  known.erase(std::ranges::unique(known).begin(), known.end());
  std::erase(known, kAlways);
  // Where all always runs, one condition of no step.
  const bool always = known.empty();
  if (always) known.push_back(0);
  out_.changes.masks = known;
  out_.changes.slot = temporary(kChangeKeyBytes + known.size());
  kept_.insert(out_.changes.slot);
  std::vector<SlotId> conditions;
  for (uint32_t i = 0; i < known.size(); ++i)
    conditions.push_back(slice(out_.changes.slot, 1, kChangeKeyBytes + i, 0, 0, false));
  std::vector<Step> steps;
  const auto mark = [&](StepKind kind, uint64_t mask) {
    if (mask == kAlways) return;
    Step step;
    step.kind = kind;
    const auto number = std::ranges::find(known, mask) - known.begin();
    step.region.start = conditions[static_cast<size_t>(number)];
    steps.push_back(std::move(step));
  };
  if (always)
    for (const StepKind kind : {StepKind::If, StepKind::Else, StepKind::End})
      mark(kind, 0);
  for (size_t s = 0; s < masks.size(); ++s) {
    if (s == 0 || masks[s] != masks[s - 1]) mark(StepKind::If, masks[s]);
    steps.push_back(std::move(out_.steps[s]));
    if (s + 1 == masks.size() || masks[s] != masks[s + 1]) {
      mark(StepKind::Else, masks[s]);
      mark(StepKind::End, masks[s]);
    }
  }
  out_.steps = std::move(steps);
}

} // namespace svod::plan
