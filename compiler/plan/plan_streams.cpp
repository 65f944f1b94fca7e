// Where the arena is fullest, two large pictures stand beside each other: the first
// layers of a network. The kernels around that place can take turns row by row
// (stream.h), so that of what they pass on few rows are there at a time. Nothing is
// computed twice; what it costs is moving the rows that stay, and calls.
//
// Each run of kernels that can be a stream has a number of bytes that are there while it
// runs. Of all ways to cut the steps into such runs and single steps, the one is taken
// whose largest number is the smallest that the allowed work can pay for, and of those
// the one that needs the least work.
#include "compiler/plan/apart.h"
#include "compiler/plan/planner.h"
#include "compiler/plan/stream.h"

#include <algorithm>
#include <limits>
#include <set>

namespace svod::plan {

// The compiler's own time.
static constexpr size_t kLongest = 48;
static constexpr int kMostCuts = 12;
// By how much the fullest step of a cut may be fuller than the least: a part of so many.
static constexpr uint64_t kLooser = 8;
// What an arena has to shrink by, a part of so many: turns of kernels take flash.
static constexpr uint64_t kLeastSaved = 16;
// Positions, of a row: what its last tile takes longer.
static constexpr double kPositionsLost = 0.4;

class Planner::StreamSearch {
public:
  StreamSearch(Planner& planner, Planner::Frame& main)
      : p_(planner), plan_(planner.out_), main_(main) {}
  void run();

private:
  struct Candidate {
    size_t first = 0, end = 0;   // steps
    std::vector<size_t> members; // of them; the others write borders
    MadeStream made;
    uint64_t bytes = 0; // that are there while it runs
    double work = 0;    // that is added
  };

  void look_at_steps();
  bool may_join(size_t step) const;
  bool writes_border(size_t step) const;
  using Rows = std::map<SlotId, PassedRows>;
  std::optional<Rows> find_passed(const Candidate& c) const;
  Rows find_others(const Candidate& c, const Rows& passed) const;
  bool try_stream(Candidate& c);
  void add_pairs(const Candidate& c, const std::vector<Lifetime>& lives,
                 std::vector<MemoryPair>& out) const;
  struct Memory {
    std::vector<Lifetime> lives;
    std::vector<MemoryPair> pairs;
  };
  Memory memory_with(const std::vector<const Candidate*>& taken) const;
  uint64_t bytes_of(const Candidate& c) const;
  uint64_t arena_with(const std::vector<size_t>& cut) const;
  void find_candidates();
  std::optional<std::vector<size_t>> cheapest_below(uint64_t bytes, double work,
                                                    size_t members) const;
  struct Cut {
    std::vector<size_t> candidates;
    uint64_t arena = 0;
  };
  Cut choose(double work) const;
  double lost_at_ends(const Step& step) const;
  double work_of(const Candidate& c) const;
  void take(Candidate c);

  Planner& p_;
  Plan& plan_;
  Planner::Frame& main_;
  std::vector<bool> free_;                   // by step: in no region, chain or stream
  std::map<SlotId, std::set<size_t>> users_; // steps
  Planner::Lives lives_;
  std::vector<MemoryPair> pairs_;
  std::vector<uint64_t> alive_; // by step, as it is
  std::vector<Candidate> candidates_;
  KnownRows known_;
  double all_work_ = 0;
};

void Planner::StreamSearch::look_at_steps() {
  size_t open = 0, chain_end = 0;
  free_.assign(plan_.steps.size(), false);
  users_.clear();
  all_work_ = 0;
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    const Step& step = plan_.steps[i];
    if (step.kind == StepKind::Loop || step.kind == StepKind::If) ++open;
    if (step.kind == StepKind::End) --open;
    if (step.followers != 0) chain_end = i + step.followers + 1;
    free_[i] = step.kind == StepKind::LaunchProgram && open == 0 && i >= chain_end &&
               !step.stream;
    for (const SlotId id : touched_slots(step)) users_[root_slot(plan_, id)].insert(i);
    all_work_ += double(step.flops + step.bytes) * double(step.repeats);
  }
  lives_ = p_.find_lives();
  pairs_ = p_.pairs(lives_.lives, lives_.slots);
  alive_ = bytes_alive(lives_.lives, plan_.align, pairs_);
  alive_.resize(plan_.steps.size());
}

bool Planner::StreamSearch::writes_border(size_t step) const {
  const ScheduledKernel& k = plan_.programs[plan_.steps[step].program];
  return !k.call() && k.arguments.size() == 1 && !k.arguments[0].read;
}

bool Planner::StreamSearch::may_join(size_t step) const {
  const ScheduledKernel& k = plan_.programs[plan_.steps[step].program];
  return std::ranges::all_of(plan_.steps[step].arguments,
                             [&](SlotId id) {
                               const SlotClass c = plan_.slots[id].slot_class;
                               return c != SlotClass::Slice && c != SlotClass::Part &&
                                      c != SlotClass::State;
                             }) &&
         std::ranges::none_of(k.arguments,
                              [](const Argument& a) { return a.read && a.written; });
}

// What goes from one member to another; nothing where that is no picture that passes by
// row by row, or is there before or behind the members, too.
std::optional<Planner::StreamSearch::Rows>
Planner::StreamSearch::find_passed(const Candidate& c) const {
  Rows out;
  std::set<SlotId> written;
  for (const size_t m : c.members) {
    const Step& step = plan_.steps[m];
    const ScheduledKernel& k = plan_.programs[step.program];
    for (size_t i = 0; i < step.arguments.size(); ++i) {
      const SlotId id = step.arguments[i];
      if (k.arguments[i].written) {
        if (!written.insert(id).second) return std::nullopt;
        continue;
      }
      if (written.count(id) == 0 || out.count(id) != 0) continue;
      const Slot& slot = plan_.slots[id];
      const std::set<size_t>& users = users_.at(id);
      if (slot.slot_class != SlotClass::Temporary || *users.begin() < c.first ||
          *users.rbegin() >= c.end)
        return std::nullopt;
      const std::optional<PassedRows> rows = passed_rows(main_.f.buffers[slot.source]);
      // Another kernel that reads nothing would write a part of the inside.
      const auto constants =
          std::ranges::count_if(users, [&](size_t user) { return writes_border(user); });
      if (!rows || constants != (rows->border ? 1 : 0)) return std::nullopt;
      out.emplace(id, *rows);
    }
  }
  return out;
}

// Temporaries whose rows are outermost, too, but are there as a whole.
Planner::StreamSearch::Rows Planner::StreamSearch::find_others(const Candidate& c,
                                                               const Rows& passed) const {
  Rows out;
  for (const size_t m : c.members)
    for (const SlotId id : plan_.steps[m].arguments) {
      const Slot& slot = plan_.slots[id];
      if (slot.slot_class != SlotClass::Temporary || passed.count(id) != 0) continue;
      if (const auto rows = passed_rows(main_.f.buffers[slot.source]))
        out.emplace(id, *rows);
    }
  return out;
}

// A row by itself ends with a tile of fewer positions; rows that lie behind each other
// are one run of positions otherwise.
double Planner::StreamSearch::lost_at_ends(const Step& step) const {
  int64_t columns = 1;
  for (const SlotId id : step.arguments) {
    const Slot& slot = plan_.slots[id];
    if (slot.slot_class == SlotClass::Weight) continue;
    const Shape& shape = main_.f.buffers[slot.source].shape;
    if (!shape.empty()) columns = std::max(columns, shape.back());
  }
  return double(step.flops + step.bytes) * kPositionsLost / double(columns);
}

double Planner::StreamSearch::work_of(const Candidate& c) const {
  const Stream& stream = c.made.stream;
  double calls = 0, lost = 0;
  for (const Stream::Launch& l : stream.launches) calls += double(l.chunks - 1);
  for (const size_t m : c.members) lost += lost_at_ends(plan_.steps[m]);
  return 2 * double(stream.copied_bytes) + lost +
         calls * p_.machine_.launch_ns * p_.machine_.work_per_ns;
}

// What the kernels write last may lie on what they read first. `lives`: with the
// candidate's steps as one.
void Planner::StreamSearch::add_pairs(const Candidate& c,
                                      const std::vector<Lifetime>& lives,
                                      std::vector<MemoryPair>& out) const {
  const auto at = static_cast<uint32_t>(c.first);
  for (const Stream::Whole& read : c.made.stream.wholes)
    for (const Stream::Whole& written : c.made.stream.wholes) {
      if (read.written || !written.written) continue;
      const auto number = [&](SlotId id) {
        return static_cast<uint32_t>(std::ranges::find(lives_.slots, id) -
                                     lives_.slots.begin());
      };
      const uint32_t r = number(read.slot), w = number(written.slot);
      if (lives[r].last != at || lives[r].first == at || lives[w].first != at) continue;
      if (const auto apart = least_apart(c.made.stream, read.slot, written.slot))
        out.push_back({r, w, apart->below, apart->above});
    }
}

// With these candidates, the steps of each being one.
Planner::StreamSearch::Memory
Planner::StreamSearch::memory_with(const std::vector<const Candidate*>& taken) const {
  const auto around = [&](uint32_t step) {
    const auto found = std::ranges::find_if(
        taken, [&](const Candidate* c) { return c->first <= step && step < c->end; });
    return found == taken.end() ? nullptr : *found;
  };
  const auto place = [&](uint32_t step) {
    const Candidate* const c = around(step);
    return c == nullptr ? step : static_cast<uint32_t>(c->first);
  };
  Memory out{lives_.lives, {}};
  for (Lifetime& life : out.lives)
    life.first = place(life.first), life.last = place(life.last);
  for (const Candidate* c : taken)
    for (const Stream::Window& w : c->made.stream.windows) {
      const auto slot = std::ranges::find(lives_.slots, w.slot) - lives_.slots.begin();
      out.lives[static_cast<size_t>(slot)].bytes =
          static_cast<uint64_t>(w.rows * w.row_bytes);
    }
  for (const MemoryPair& p : pairs_)
    if (around(lives_.lives[p.second].first) == nullptr) out.pairs.push_back(p);
  for (const Candidate* c : taken) add_pairs(*c, out.lives, out.pairs);
  return out;
}

uint64_t Planner::StreamSearch::bytes_of(const Candidate& c) const {
  const Memory memory = memory_with({&c});
  return bytes_alive(memory.lives, plan_.align, memory.pairs)[c.first];
}

uint64_t Planner::StreamSearch::arena_with(const std::vector<size_t>& cut) const {
  std::vector<const Candidate*> taken;
  for (const size_t i : cut) taken.push_back(&candidates_[i]);
  const Memory memory = memory_with(taken);
  return plan_memory(memory.lives, plan_.align, memory.pairs).bytes;
}

bool Planner::StreamSearch::try_stream(Candidate& c) {
  const auto passed = find_passed(c);
  if (!passed) return false;
  std::vector<StreamKernel> kernels;
  for (const size_t m : c.members)
    kernels.push_back(
        {&plan_.programs[plan_.steps[m].program], plan_.steps[m].arguments});
  std::optional<MadeStream> made =
      make_stream(kernels, *passed, find_others(c, *passed), known_);
  if (!made) return false;
  c.made = std::move(*made);
  c.work = work_of(c);
  c.bytes = bytes_of(c);
  return true;
}

// Kernels that write borders of what is passed on go; the others come first.
void Planner::StreamSearch::take(Candidate c) {
  Stream& stream = c.made.stream;
  for (const Stream::Window& w : stream.windows)
    plan_.slots[w.slot].bytes = static_cast<uint64_t>(w.rows * w.row_bytes);
  std::vector<Step> before, members;
  for (size_t i = c.first; i < c.end; ++i) {
    Step step = std::move(plan_.steps[i]);
    const auto member = std::ranges::find(c.members, i) - c.members.begin();
    if (member == std::ssize(c.members)) {
      const bool passed = std::ranges::count(stream.windows, step.arguments[0],
                                             &Stream::Window::slot) != 0;
      if (!passed) before.push_back(std::move(step));
      continue;
    }
    ScheduledKernel kernel = plan_.programs[step.program];
    kernel.loops.chunks = {c.made.chunks[static_cast<size_t>(member)]};
    kernel.loops.in_parts = true;
    step.program = p_.program_of(main_, kernel);
    step.chunks = static_cast<uint32_t>(kernel.chunk_count());
    members.push_back(std::move(step));
  }
  members.front().followers = static_cast<uint32_t>(members.size() - 1);
  members.front().stream = static_cast<uint32_t>(plan_.streams.size());
  plan_.streams.push_back(std::move(stream));
  std::ranges::move(members, std::back_inserter(before));
  const auto at = plan_.steps.begin() + static_cast<std::ptrdiff_t>(c.first);
  plan_.steps.erase(at, plan_.steps.begin() + static_cast<std::ptrdiff_t>(c.end));
  plan_.steps.insert(plan_.steps.begin() + static_cast<std::ptrdiff_t>(c.first),
                     std::make_move_iterator(before.begin()),
                     std::make_move_iterator(before.end()));
}

void Planner::StreamSearch::find_candidates() {
  const uint64_t peak = *std::ranges::max_element(alive_);
  for (size_t first = 0; first < plan_.steps.size(); ++first) {
    Candidate c;
    c.first = first;
    for (size_t i = first; i < plan_.steps.size() && free_[i]; ++i) {
      if (writes_border(i)) continue;
      if (!may_join(i) || c.members.size() == kLongest) break;
      c.members.push_back(i);
      c.end = i + 1;
      if (try_stream(c) && c.bytes < peak) candidates_.push_back(c);
    }
  }
}

// Candidates, in order, that leave no step with more bytes; of all such the ones that
// need the least work. None where there are none, or they need more than `work`. Only
// those of at least so many members.
std::optional<std::vector<size_t>>
Planner::StreamSearch::cheapest_below(uint64_t bytes, double work, size_t members) const {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const size_t steps = plan_.steps.size(), none = candidates_.size();
  std::vector<double> least(steps + 1, kNever); // of the steps before
  std::vector<size_t> last(steps + 1, none);    // the candidate that ends there
  least[0] = 0;
  size_t next = 0; // candidates are in the order of their first steps
  for (size_t s = 0; s < steps; ++s) {
    if (alive_[s] <= bytes && least[s] < least[s + 1])
      least[s + 1] = least[s], last[s + 1] = none;
    for (; next < none && candidates_[next].first == s; ++next) {
      const Candidate& c = candidates_[next];
      if (c.members.size() < members || c.bytes > bytes) continue;
      if (least[s] + c.work >= least[c.end]) continue;
      least[c.end] = least[s] + c.work, last[c.end] = next;
    }
  }
  if (least[steps] == kNever || least[steps] > work) return std::nullopt;
  std::vector<size_t> out;
  for (size_t s = steps; s > 0;) {
    const size_t c = last[s];
    if (c != none) out.push_back(c);
    s = c == none ? s - 1 : candidates_[c].first;
  }
  std::ranges::reverse(out);
  return out;
}

// Blocks do not always fit as tightly as their sum: cuts that leave a little more are
// placed, too, and those without streams of one kernel, whose results bind each other.
Planner::StreamSearch::Cut Planner::StreamSearch::choose(double work) const {
  std::set<uint64_t> all(alive_.begin(), alive_.end());
  for (const Candidate& c : candidates_) all.insert(c.bytes);
  const std::vector<uint64_t> levels(all.begin(), all.end());
  Cut best{{}, ~uint64_t{0}};
  for (const size_t members : {1, 2}) {
    auto at = std::ranges::partition_point(
        levels, [&](uint64_t bytes) { return !cheapest_below(bytes, work, members); });
    const uint64_t most = *at + *at / kLooser;
    std::optional<std::vector<size_t>> last;
    for (int tried = 0; at != levels.end() && *at <= most && tried < kMostCuts; ++at) {
      std::vector<size_t> cut = *cheapest_below(*at, work, members);
      if (cut == last) continue;
      ++tried;
      last = cut;
      const uint64_t arena = arena_with(cut);
      if (arena < best.arena) best = {std::move(cut), arena};
    }
  }
  return best;
}

void Planner::StreamSearch::run() {
  look_at_steps();
  if (plan_.steps.empty()) return;
  find_candidates();
  Cut cut = choose(p_.options_.work_for_ram * all_work_);
  if (p_.options_.most_arena != 0 && cut.arena > p_.options_.most_arena)
    cut = choose(std::numeric_limits<double>::max());
  const uint64_t before = arena_with({});
  if (cut.arena > before - before / kLeastSaved) return;
  // From the back, so that the steps of others stay where they are.
  for (size_t i = cut.candidates.size(); i-- > 0;)
    take(std::move(candidates_[cut.candidates[i]]));
}

void Planner::make_streams(Frame& main) {
  if (options_.takes_turns()) StreamSearch(*this, main).run();
}

} // namespace svod::plan
