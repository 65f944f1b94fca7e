// Follows the plan as the stub does, but that a sequence and a chain run twice: first
// kernel by kernel, each compared with the evaluator on what the kernel found in memory,
// then as the package runs them, compared with the first time.
#include "packager/verify/walk.h"

#include "packager/verify/compare.h"

#include "compiler/support/check.h"

#include <algorithm>
#include <cstring>

namespace svod::packager {

using plan::StepKind;

Walk::Walk(const LoadedKernels& code, const FusedGraph& fused, RunMemory& memory,
           CallRunner calls, Tell tell, Stored stored)
    : code_(code), plan_(code.plan()), memory_(memory), calls_(std::move(calls)),
      tell_(std::move(tell)), stored_(std::move(stored)), whole_(fused),
      launched_(plan::launched_kernels(fused)) {
  for (const plan::Launched& l : launched_) {
    std::vector<size_t>& counts = writers_[l.fused];
    counts.resize(l.fused->buffers.size());
    for (const Argument& a : l.kernel->arguments)
      if (a.kind == Argument::Kind::Buffer && a.written) ++counts[a.id];
  }
}

std::optional<Fault> Walk::run() {
  counts_.stopped = !steps({plan_.steps}, 0, plan_.steps.size()) && !fault_;
  return fault_;
}

// The marker that belongs to the region at `at`: its Else, or its End.
static size_t find_marker(const std::vector<plan::Step>& steps, size_t at,
                          StepKind wanted) {
  size_t open = 0;
  for (size_t i = at + 1; i < steps.size(); ++i) {
    const StepKind kind = steps[i].kind;
    if (open == 0 && kind == wanted) return i;
    if (kind == StepKind::Loop || kind == StepKind::If) ++open;
    if (kind == StepKind::End) --open;
  }
  SVOD_CHECK(false) << "a region without its end";
  return steps.size();
}

bool Walk::steps(const Steps& in, size_t first, size_t end) {
  for (size_t i = first; i < end; ++i) {
    const Step& step = in.list[i];
    size_t last = i;
    switch (step.kind) {
    case StepKind::CopyMemory:
      copy(step);
      break;
    case StepKind::If:
      if (!branch(in, i, last)) return false;
      break;
    case StepKind::Loop:
      last = find_marker(in.list, i, StepKind::End);
      if (!loop(in, i, last)) return false;
      break;
    case StepKind::LaunchProgram:
      if (!launch(in, i)) return false;
      last = i + step.followers;
      break;
    default:
      break;
    }
    i = last;
  }
  return true;
}

bool Walk::branch(const Steps& in, size_t at, size_t& end) {
  const size_t middle = find_marker(in.list, at, StepKind::Else);
  end = find_marker(in.list, middle, StepKind::End);
  const bool holds = *memory_.address(in.list[at].region.start) != std::byte(0);
  return holds ? steps(in, at + 1, middle) : steps(in, middle + 1, end);
}

bool Walk::loop(const Steps& in, size_t at, size_t end) {
  const plan::RegionSlots& r = in.list[at].region;
  const auto truth = [&](SlotId id) { return *memory_.address(id) != std::byte(0); };
  const auto write = [&](SlotId id, int64_t number) {
    if (id == plan::kNoSlot) return;
    std::memcpy(memory_.address(id), &number, sizeof number);
    hashes_.erase(id);
  };
  int64_t count = 0;
  std::memcpy(&count, memory_.address(r.count), sizeof count);
  bool going = truth(r.start);
  memory_.open_loop();
  for (int64_t i = 0; going && i < count; ++i) {
    if (i == r.limit) return false; // as the package, which ends there
    write(r.iteration, i);
    if (!steps(in, at + 1, end)) return false;
    ++memory_.iteration();
    going = r.again == plan::kNoSlot || truth(r.again);
  }
  write(r.done, memory_.iteration());
  memory_.close_loop();
  return true;
}

void Walk::copy(const Step& step) {
  std::byte* const to = memory_.address(step.to);
  const uint64_t bytes = memory_.bytes(step.to);
  std::memmove(to, memory_.address(step.from), bytes);
  note_written(to, bytes, nullptr);
  remember(step.to);
}

bool Walk::launch(const Steps& in, size_t at) {
  const Step& step = in.list[at];
  if (!step.joined.empty()) return sequence(step);
  if (step.followers != 0) return chain(in, at);
  return kernel(step,
                in.sequence ? code_.part(*in.sequence, step.program) : step.program);
}

// The parts leave a value where no later one wrote.
static std::vector<bool> still_there(const auto& written) {
  std::vector<bool> out(written.size());
  for (size_t i = 0; i < written.size(); ++i)
    out[i] = std::none_of(written.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                          written.end(), [&](const auto& later) {
                            return later.at < written[i].at + written[i].bytes &&
                                   written[i].at < later.at + later.bytes;
                          });
  return out;
}

bool Walk::sequence(const Step& step) {
  std::vector<SlotId> writable;
  std::vector<std::vector<std::byte>> before;
  for (SlotId id : step.arguments) {
    const plan::SlotClass c = memory_.slot(plan::root_slot(plan_, id)).slot_class;
    if (c != plan::SlotClass::Output && c != plan::SlotClass::Temporary) continue;
    const std::byte* const at = memory_.address(id);
    before.emplace_back(at, at + memory_.bytes(id));
    writable.push_back(id);
  }
  written_.clear(), remembered_.clear();
  if (!steps({step.joined, step.program}, 0, step.joined.size())) return false;
  const std::vector<bool> there = still_there(written_);
  std::set<const Buffer*> unfinished{nullptr};
  for (const auto& [key, writing] : writings_)
    unfinished.insert(&key.first->buffers[key.second]);
  std::vector<Written> results;
  for (size_t i = 0; i < written_.size(); ++i) {
    if (!there[i] || unfinished.contains(written_[i].buffer)) continue;
    results.push_back(written_[i]);
    results.back().value = value_in(*written_[i].buffer, written_[i].at);
  }
  for (size_t i = 0; i < writable.size(); ++i)
    std::ranges::copy(before[i], memory_.address(writable[i]));
  tell_(code_.name(step.program), nodes_of(step));
  if (call(step, step.program) != 0) {
    blame(step, code_.name(step.program), step.program).facts = {
        "it stops the run, which none of its parts does by itself"};
    return false;
  }
  for (SlotId id : std::set<SlotId>(remembered_)) remember(id);
  return same_as_parts(step, code_.name(step.program), results);
}

bool Walk::chain(const Steps& in, size_t first) {
  const size_t count = in.list[first].followers + 1;
  written_.clear();
  for (size_t i = first; i < first + count; ++i)
    if (!kernel(in.list[i], in.list[i].program)) return false;
  std::vector<Written> results;
  for (size_t i = first; i < first + count; ++i)
    for (size_t a = 0; a < in.list[i].arguments.size(); ++a) {
      const SlotId id = in.list[i].arguments[a];
      const bool part = memory_.slot(id).slot_class == plan::SlotClass::Part;
      if (!arguments(in.list[i])[a].written || part) continue;
      results.push_back({memory_.address(id), memory_.bytes(id), &buffer(in.list[i], a),
                         value_in(buffer(in.list[i], a), memory_.address(id))});
    }
  std::string name = code_.name(in.list[first].program);
  name += " to " + code_.name(in.list[first + count - 1].program) + ", a chain";
  tell_(name, nodes_of(in.list[first]));
  for (uint32_t chunk = 0; chunk < in.list[first].chunks; ++chunk)
    for (size_t i = first; i < first + count; ++i) {
      std::vector<void*> buffers;
      for (SlotId id : in.list[i].arguments)
        buffers.push_back(memory_.address_in_chain(id, chunk));
      if (code_.call(in.list[i].program, buffers.data(), memory_.scratch(), chunk) != 0)
        return false;
    }
  return same_as_parts(in.list[first], name, results);
}

bool Walk::same_as_parts(const Step& step, const std::string& name,
                         const std::vector<Written>& written) {
  for (const Written& w : written) {
    const Tensor got = value_in(*w.buffer, w.at);
    const std::vector<int64_t> wrong = distant_elements(*w.value, got);
    if (wrong.empty()) continue;
    Fault& fault = blame(step, name, step.program);
    fault.facts = {buffer_text(*w.buffer), difference_text(*w.value, got, wrong),
                   "each of its kernels by itself gives what is expected"};
    return false;
  }
  return true;
}

} // namespace svod::packager
