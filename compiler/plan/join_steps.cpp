// A launch costs some hundred clocks: addresses of its buffers, a jump through the
// switch, the kernel's own entry. That is nothing beside a convolution and most of a
// recurrent cell's step. So launches of little work that follow each other become one
// program, a sequence: its parts are called in order, with addresses that are constants
// apart from few pointers. A loop of known length belongs to it, which makes a recurrent
// cell one kernel over time. Memory was planned before: nothing moves.
#include "compiler/plan/join_steps.h"

#include "compiler/plan/planner.h"

#include <algorithm>
#include <set>

namespace svod::plan {

namespace {

// Beyond so many launches' time a launch costs a kernel below one percent. What is longer
// also wants to be seen by itself in a profile.
constexpr double kLaunchesOfKernel = 100;
// Of different kernels: they are compiled together.
constexpr size_t kMostParts = 16;

// A failure names its step, so what can fail stays one. Walks and sorts have text of
// their own. Parts of a sequence have vectors of one length, with which arguments might
// have to lie further apart than they do.
bool is_plain(const Kernel& k) {
  auto special = [](const Expr& e) {
    return e.kind == Expr::Kind::Checked || e.kind == Expr::Kind::Descend;
  };
  auto sorts = [](const Stage& s) { return s.kind == StageKind::Sort; };
  return !k.call() && std::ranges::none_of(k.exprs, special) &&
         std::ranges::none_of(k.arguments, &Argument::shares) &&
         std::ranges::none_of(k.stages, sorts);
}

class Joiner {
public:
  Joiner(Plan& plan, const Machine& m) : s_(plan), short_work_(short_work(m)) {}
  void run();

private:
  bool is_short(const Step& step) const;
  bool reads_finished_loop(size_t at) const;
  size_t run_end(size_t begin) const;
  Step join(size_t begin, size_t end);
  SequenceStep::Place place(SlotId id, Step& joined);
  void add(const Step& step, Step& joined, ScheduledKernel& kernel);
  void drop_unused_programs();

  Plan& s_;
  const int64_t short_work_; // of one kernel, in operations and bytes
  std::set<SlotId> used_;    // by launches and copies
  // Of the sequence being made.
  std::map<uint32_t, uint32_t> part_of_;
  std::set<uint32_t> depths_; // of loops that began in it
  uint32_t around_ = 0;       // loops around it
  std::map<std::string, uint32_t> programs_;
};

bool Joiner::is_short(const Step& step) const {
  switch (step.kind) {
  case StepKind::Allocate:
  case StepKind::Deallocate:
  case StepKind::End:
    return true;
  case StepKind::CopyMemory:
    return step.bytes <= short_work_;
  case StepKind::LaunchProgram:
    return step.chunks == 1 && step.flops + step.bytes <= short_work_ &&
           is_plain(s_.programs[step.program]);
  case StepKind::Loop:
    return step.region.known > 0 && step.region.done == kNoSlot &&
           used_.count(step.region.iteration) == 0;
  default:
    return false;
  }
}

// Whether the next copy takes the last value from a loop that has ended: it belongs
// together with the loop, which leaves its number of iterations behind.
bool Joiner::reads_finished_loop(size_t at) const {
  auto lasts = [](StepKind kind) {
    return kind != StepKind::Allocate && kind != StepKind::Deallocate;
  };
  while (at < s_.steps.size() && !lasts(s_.steps[at].kind)) ++at;
  if (at == s_.steps.size() || s_.steps[at].kind != StepKind::CopyMemory) return false;
  const Slot& from = s_.slots[s_.steps[at].from];
  return from.slot_class == SlotClass::Slice && from.alternates;
}

// Where the steps end that can be joined with the one at `begin`; `begin` when there are
// not two launches among them.
size_t Joiner::run_end(size_t begin) const {
  std::set<uint32_t> parts;
  std::set<int> lanes; // of all parts: they are one text
  size_t end = begin, open = 0, launches = 0, launches_before_end = 0;
  for (size_t i = begin; i < s_.steps.size(); ++i) {
    const Step& step = s_.steps[i];
    if (!is_short(step) || (step.kind == StepKind::End && open == 0)) break;
    if (step.kind == StepKind::LaunchProgram) {
      const ScheduledKernel& part = s_.programs[step.program];
      parts.insert(step.program);
      if (part.has_lane_axis()) lanes.insert(part.loops.lanes);
      ++launches;
    }
    if (parts.size() > kMostParts || lanes.size() > 1) break;
    if (step.kind == StepKind::Loop) ++open;
    if (step.kind == StepKind::End) --open;
    if (open == 0 && step.kind != StepKind::Allocate && !reads_finished_loop(i + 1)) {
      end = i + 1;
      launches_before_end = launches;
    }
  }
  const bool loops =
      std::any_of(s_.steps.begin() + static_cast<std::ptrdiff_t>(begin),
                  s_.steps.begin() + static_cast<std::ptrdiff_t>(end),
                  [](const Step& step) { return step.kind == StepKind::Loop; });
  return launches_before_end >= 2 || (loops && launches_before_end > 0) ? end : begin;
}

// Inside a slice that moves with a loop of the sequence the place is arithmetic.
SequenceStep::Place Joiner::place(SlotId id, Step& joined) {
  SequenceStep::Place out;
  while (s_.slots[id].slot_class == SlotClass::Slice) {
    const Slot& slot = s_.slots[id];
    const bool inside = slot.depth >= around_ && depths_.count(slot.depth - around_) != 0;
    if (slot.stride != 0 && !inside) break;
    out.offset += static_cast<int64_t>(slot.offset);
    if (slot.stride != 0)
      out.moves.push_back({slot.depth - around_, slot.stride, slot.alternates});
    id = slot.parent;
  }
  auto found = std::ranges::find(joined.arguments, id);
  out.argument = static_cast<uint32_t>(found - joined.arguments.begin());
  if (found == joined.arguments.end()) joined.arguments.push_back(id);
  return out;
}

void Joiner::add(const Step& step, Step& joined, ScheduledKernel& kernel) {
  Sequence& sequence = *kernel.sequence();
  SequenceStep out;
  switch (step.kind) {
  case StepKind::LaunchProgram: {
    auto [found, fresh] = part_of_.emplace(step.program, sequence.parts.size());
    if (fresh) sequence.parts.push_back(s_.programs[step.program]);
    out.part = found->second;
    for (SlotId id : step.arguments) out.places.push_back(place(id, joined));
    kernel.scratch_bytes =
        std::max(kernel.scratch_bytes, s_.programs[step.program].scratch_bytes);
    break;
  }
  case StepKind::CopyMemory:
    out.kind = SequenceStep::Kind::Copy;
    out.count = static_cast<int64_t>(s_.slots[step.to].bytes);
    out.places = {place(step.from, joined), place(step.to, joined)};
    break;
  case StepKind::Loop:
  case StepKind::End:
    out.kind =
        step.kind == StepKind::Loop ? SequenceStep::Kind::Loop : SequenceStep::Kind::End;
    out.depth = step.region.depth - around_;
    out.count = step.kind == StepKind::Loop ? step.region.known : 0;
    depths_.insert(out.depth);
    break;
  default:
    return;
  }
  joined.flops += step.flops * (step.repeats / joined.repeats);
  joined.bytes += step.bytes * (step.repeats / joined.repeats);
  joined.sources.insert(joined.sources.end(), step.sources.begin(), step.sources.end());
  sequence.steps.push_back(std::move(out));
}

Step Joiner::join(size_t begin, size_t end) {
  Step joined;
  ScheduledKernel sequence;
  sequence.other = Sequence();
  part_of_.clear();
  depths_.clear();
  joined.repeats = s_.steps[begin].repeats;
  for (size_t i = begin; i < end; ++i) {
    Step& step = s_.steps[i];
    add(step, joined, sequence);
    if (step.kind == StepKind::LaunchProgram) step.program = part_of_.at(step.program);
    joined.joined.push_back(std::move(step));
  }
  std::ranges::sort(joined.sources);
  auto again = std::ranges::unique(joined.sources);
  joined.sources.erase(again.begin(), again.end());
  for (size_t i = 0; i < joined.arguments.size(); ++i)
    sequence.arguments.push_back({Argument::Kind::Buffer, 0, DType::U8, true, true});
  sequence.flops = joined.flops;
  sequence.bytes = joined.bytes;
  auto [found, fresh] = programs_.emplace(program_text(sequence),
                                          static_cast<uint32_t>(s_.programs.size()));
  if (fresh) s_.programs.push_back(std::move(sequence));
  joined.program = found->second;
  return joined;
}

void Joiner::drop_unused_programs() {
  std::map<uint32_t, uint32_t> number;
  std::vector<ScheduledKernel> kept;
  for (Step& step : s_.steps) {
    if (step.kind != StepKind::LaunchProgram) continue;
    auto [found, fresh] =
        number.emplace(step.program, static_cast<uint32_t>(kept.size()));
    if (fresh) kept.push_back(std::move(s_.programs[step.program]));
    step.program = found->second;
  }
  s_.programs = std::move(kept);
}

void Joiner::run() {
  for (const Step& step : s_.steps) {
    used_.insert(step.arguments.begin(), step.arguments.end());
    if (step.kind == StepKind::CopyMemory) used_.insert({step.from, step.to});
  }
  std::vector<Step> steps;
  uint32_t loops = 0;
  std::vector<bool> open; // whether each open region is a loop
  for (size_t i = 0; i < s_.steps.size();) {
    const StepKind kind = s_.steps[i].kind;
    around_ = loops;
    const bool starts = kind == StepKind::LaunchProgram || kind == StepKind::Loop ||
                        kind == StepKind::CopyMemory;
    const size_t end = starts ? run_end(i) : i;
    if (end != i) {
      steps.push_back(join(i, end));
      i = end;
      continue;
    }
    if (kind == StepKind::Loop || kind == StepKind::If) {
      open.push_back(kind == StepKind::Loop);
      loops += open.back() ? 1 : 0;
    } else if (kind == StepKind::End) {
      loops -= open.back() ? 1 : 0;
      open.pop_back();
    }
    steps.push_back(std::move(s_.steps[i++]));
  }
  s_.steps = std::move(steps);
  drop_unused_programs();
}

} // namespace

int64_t short_work(const Machine& m) {
  return static_cast<int64_t>(kLaunchesOfKernel * m.launch_ns * m.work_per_ns);
}

void join_steps(Plan& plan, const Machine& machine) { Joiner(plan, machine).run(); }

} // namespace svod::plan
