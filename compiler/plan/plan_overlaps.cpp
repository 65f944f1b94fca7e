// Results that lie on what their kernels read. That halves what a pair of layers needs
// where the one does not grow: a picture and the next one become little more than the
// larger of both. In the very place of what is read (in_place.h) that holds for any
// number of threads; beside it, only where one thread runs the steps in their order.
//
// A padded picture has its border written by a kernel of its own. It comes after the one
// that writes the inside: before it, the border would fall on what is still to be read.
#include "compiler/plan/planner.h"

#include "compiler/kernel/stage_work.h"
#include "compiler/plan/apart.h"
#include "compiler/plan/in_place.h"
#include "compiler/plan/join_steps.h"

#include <algorithm>

namespace svod::plan {

// Kernels that read nothing wait until somebody reads what they write.
void Planner::write_borders_late() {
  if (!options_.schedule) return;
  const auto reads = [&](const Step& step, SlotId id) {
    if (step.kind != StepKind::LaunchProgram) return true;
    const ScheduledKernel& kernel = out_.programs[step.program];
    for (size_t i = 0; i < step.arguments.size(); ++i)
      if (step.arguments[i] == id && (kernel.arguments[i].read || !only_stores(kernel)))
        return true;
    return false;
  };
  // Where the step at `to` ends, with what runs in turns with it; or `to`, where one of
  // them reads.
  const auto behind = [&](size_t to, SlotId id) {
    const size_t end = to + out_.steps[to].followers + 1;
    for (size_t i = to; i < end; ++i)
      if (reads(out_.steps[i], id)) return to;
    return end;
  };
  // Backwards, so that what has moved is not met again.
  for (size_t i = out_.steps.size(); i-- > 0;) {
    const Step& step = out_.steps[i];
    if (step.kind != StepKind::LaunchProgram || step.followers != 0 || step.stream ||
        step.arguments.size() != 1 || reads(step, step.arguments[0]))
      continue;
    if (out_.slots[step.arguments[0]].slot_class != SlotClass::Temporary) continue;
    size_t to = i + 1;
    while (to < out_.steps.size() && behind(to, step.arguments[0]) != to)
      to = behind(to, step.arguments[0]);
    std::rotate(out_.steps.begin() + static_cast<std::ptrdiff_t>(i),
                out_.steps.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                out_.steps.begin() + static_cast<std::ptrdiff_t>(to));
  }
}

// What a stream is the last to read, and what it is the first to write.
void Planner::add_stream_pairs(const std::vector<Lifetime>& lives,
                               const std::vector<SlotId>& slots,
                               std::vector<MemoryPair>& out) {
  for (uint32_t s = 0; s < out_.steps.size(); ++s) {
    if (!out_.steps[s].stream) continue;
    const Stream& stream = out_.streams[*out_.steps[s].stream];
    const uint32_t last = s + out_.steps[s].followers;
    for (uint32_t r = 0; r < lives.size(); ++r)
      for (uint32_t w = 0; w < lives.size(); ++w) {
        if (lives[r].last != last || lives[r].first >= s || lives[w].first != s) continue;
        if (const auto apart = least_apart(stream, slots[r], slots[w]))
          out.push_back({r, w, apart->below, apart->above});
      }
  }
}

// Of the lifetimes, by their slots.
static std::map<SlotId, uint32_t> numbers_of(const std::vector<SlotId>& slots) {
  std::map<SlotId, uint32_t> out;
  for (uint32_t i = 0; i < slots.size(); ++i) out[slots[i]] = i;
  return out;
}

// Of a chain, all steps touch what one of them does, so its last one alone may read and
// write them. Short kernels become sequences, which are worth more than their bytes. A
// result lies in one place, which no other one takes: of several the largest.
void Planner::add_places(const std::vector<Lifetime>& lives,
                         const std::vector<SlotId>& slots, std::vector<MemoryPair>& out) {
  const std::map<SlotId, uint32_t> number = numbers_of(slots);
  std::set<uint32_t> read, written; // by a pair; the result of one may be read by another
  for (const MemoryPair& p : out) read.insert(p.first), written.insert(p.second);
  for (uint32_t begin = 0, s = 0; begin < out_.steps.size(); begin = s + 1) {
    s = begin + out_.steps[begin].followers;
    if (out_.steps[begin].stream) continue;
    const Step& step = out_.steps[s];
    if (step.kind != StepKind::LaunchProgram) continue;
    if (options_.joins && step.chunks == 1 &&
        step.flops + step.bytes <= short_work(machine_))
      continue;
    const ScheduledKernel& kernel = out_.programs[step.program];
    const auto whole = [&](SlotId id, const std::set<uint32_t>& taken) {
      int64_t touched = 0;
      for (uint32_t i = begin; i <= s; ++i)
        touched += std::ranges::count(touched_slots(out_.steps[i]), id);
      const auto found = number.find(id);
      return touched == 1 && found != number.end() && !taken.contains(found->second)
                 ? std::optional(found->second)
                 : std::nullopt;
    };
    for (uint32_t w = 0; w < step.arguments.size(); ++w) {
      const auto second = whole(step.arguments[w], written);
      if (!second || lives[*second].first != begin) continue;
      std::optional<uint32_t> best;
      for (uint32_t r = 0; r < step.arguments.size(); ++r) {
        const auto first = whole(step.arguments[r], read);
        if (r == w || !first || lives[*first].last != s || lives[*first].first >= begin ||
            (best && lives[*first].bytes <= lives[*best].bytes))
          continue;
        if (may_take_place(kernel, r, w)) best = first;
      }
      if (!best) continue;
      read.insert(*best), written.insert(*second);
      out.push_back({*best, *second, lives[*second].bytes, lives[*best].bytes, true});
    }
  }
}

// Of two lifetimes that meet in one step alone, which reads the one and writes the other.
void Planner::add_distances(const std::vector<Lifetime>& lives,
                            const std::vector<SlotId>& slots,
                            std::vector<MemoryPair>& out) {
  const std::map<SlotId, uint32_t> number = numbers_of(slots);
  for (uint32_t s = 0; s < out_.steps.size(); ++s) {
    const Step& step = out_.steps[s];
    if (step.kind != StepKind::LaunchProgram || step.stream) continue;
    std::optional<ScheduledKernel> kernel;
    const auto whole = [&](size_t i) {
      const auto found = number.find(step.arguments[i]);
      const bool once = std::ranges::count(step.arguments, step.arguments[i]) == 1;
      return once && found != number.end() ? std::optional(found->second) : std::nullopt;
    };
    for (uint32_t w = 0; w < step.arguments.size(); ++w) {
      const auto second = whole(w);
      if (!second || lives[*second].first != s) continue;
      for (uint32_t r = 0; r < step.arguments.size(); ++r) {
        const auto first = whole(r);
        if (r == w || !first || lives[*first].last != s || lives[*first].first == s)
          continue;
        if (!kernel) options_.schedule(kernel.emplace(out_.programs[step.program]));
        if (const auto apart = least_apart(*kernel, r, w))
          out.push_back({*first, *second, apart->below, apart->above});
      }
    }
  }
}

std::vector<MemoryPair> Planner::pairs(const std::vector<Lifetime>& lives,
                                       const std::vector<SlotId>& slots) {
  std::vector<MemoryPair> out;
  if (options_.schedule) {
    add_stream_pairs(lives, slots, out);
    add_distances(lives, slots, out);
  }
  if (options_.in_place) add_places(lives, slots, out);
  std::erase_if(out, [&](const MemoryPair& p) {
    return kept_.contains(slots[p.first]) || kept_.contains(slots[p.second]);
  });
  return out;
}

std::vector<SharedArguments> shared_arguments(const Plan& plan, const Step& step) {
  std::vector<SharedArguments> out;
  if (step.kind != StepKind::LaunchProgram) return out;
  const auto place = [&](SlotId id) {
    return std::ranges::find(step.arguments, id) - step.arguments.begin();
  };
  const auto end = static_cast<std::ptrdiff_t>(step.arguments.size());
  for (const Overlap& o : plan.overlaps)
    if (place(o.read) != end && place(o.written) != end)
      out.push_back({static_cast<uint32_t>(place(o.read)),
                     static_cast<uint32_t>(place(o.written))});
  return out;
}

bool stays_apart(const Plan& plan, const ScheduledKernel& kernel, const Step& step) {
  return std::ranges::all_of(
      shared_arguments(plan, step), [&](const SharedArguments& shared) {
        const uint64_t from = plan.slots[step.arguments[shared.read]].offset;
        const uint64_t to = plan.slots[step.arguments[shared.written]].offset;
        if (from == to && may_take_place(kernel, shared.read, shared.written))
          return true;
        const auto apart = least_apart(kernel, shared.read, shared.written);
        return apart && (from >= to + apart->below || to >= from + apart->above);
      });
}

// A program whose arguments share bytes in one step has to expect it in all: one text
// that does not is not worth a second one.
void Planner::note_overlaps(const std::vector<MemoryPair>& pairs,
                            const std::vector<SlotId>& slots) {
  for (const MemoryPair& p : pairs) {
    const SlotId read = slots[p.first], written = slots[p.second];
    const Slot &a = out_.slots[read], &b = out_.slots[written];
    if (a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes)
      out_.overlaps.push_back({read, written});
  }
  for (const Step& step : out_.steps)
    for (const SharedArguments& s : shared_arguments(out_, step)) {
      std::vector<Argument>& arguments = out_.programs[step.program].arguments;
      arguments[s.read].shares = arguments[s.written].shares = true;
    }
}

} // namespace svod::plan
