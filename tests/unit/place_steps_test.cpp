// Steps on both sides of a GPU's plan: where copies stand, and that a run with two
// memories, which share nothing but these copies, has the values of a run with one.
#include "compiler/plan/place_steps.h"
#include "compiler/support/splitmix.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <set>

using namespace svod;
using plan::SlotClass;
using plan::SlotId;
using plan::StepKind;

namespace {

constexpr uint64_t kBytes = 64;

// A plan whose steps each have a program of their own, which reads and writes slots.
class Made {
public:
  Made() { plan.align = plan::kSlotAlign; }
  SlotId slot(SlotClass kind, uint64_t bytes = kBytes) {
    plan::Slot out;
    out.slot_class = kind;
    out.bytes = bytes;
    if (kind == SlotClass::Temporary) {
      out.offset = plan.arena_bytes;
      plan.arena_bytes += bytes;
    }
    if (kind == SlotClass::Input) out.io = inputs_++;
    if (kind == SlotClass::Output) out.io = outputs_++;
    plan.slots.push_back(out);
    return static_cast<SlotId>(plan.slots.size() - 1);
  }
  SlotId part(SlotId parent, uint64_t offset, uint64_t bytes) {
    plan::Slot out;
    out.slot_class = SlotClass::Slice;
    out.parent = parent;
    out.offset = offset;
    out.bytes = bytes;
    plan.slots.push_back(out);
    return static_cast<SlotId>(plan.slots.size() - 1);
  }
  void step(bool here, const std::vector<SlotId>& reads,
            const std::vector<SlotId>& writes) {
    ScheduledKernel kernel;
    plan::Step launch;
    for (const auto& [list, written] : {std::pair(reads, false), std::pair(writes, true)})
      for (SlotId id : list) {
        kernel.arguments.push_back(
            {Argument::Kind::Buffer, id, DType::U8, written, !written});
        launch.arguments.push_back(id);
      }
    if (here) kernel.other = CallStep{};
    launch.program = static_cast<uint32_t>(plan.programs.size());
    plan.programs.push_back(std::move(kernel));
    plan.steps.push_back(std::move(launch));
  }
  // "there", "here", "down 3", "up 2"
  std::vector<std::string> placed() {
    plan::place_steps(plan);
    std::vector<std::string> out;
    for (const plan::Step& step : plan.steps)
      out.push_back(step.kind == StepKind::CopyDown ? "down " + std::to_string(step.slot)
                    : step.kind == StepKind::CopyUp ? "up " + std::to_string(step.slot)
                    : step.is_here                  ? "here"
                                                    : "there");
    return out;
  }

  plan::Plan plan;

private:
  uint32_t inputs_ = 0, outputs_ = 0;
};

// Memory of one side, all of whose bytes are unlike those of the other.
class Memory {
public:
  Memory(const plan::Plan& plan, bool here, uint8_t first)
      : plan_(plan), here_(here), first_(first), arena_(plan.here_bytes, first) {}
  uint8_t* at(SlotId id) {
    uint64_t offset = 0;
    for (; plan_.slots[id].slot_class == SlotClass::Slice; id = plan_.slots[id].parent)
      offset += plan_.slots[id].offset;
    if (here_ && plan_.slots[id].here) return &arena_[*plan_.slots[id].here + offset];
    auto [found, fresh] = own_.try_emplace(id);
    if (fresh) found->second.assign(plan_.slots[id].bytes, first_);
    return &found->second[offset];
  }

private:
  const plan::Plan& plan_;
  const bool here_;
  const uint8_t first_;
  std::vector<uint8_t> arena_;
  std::map<SlotId, std::vector<uint8_t>> own_;
};

// What a step writes hangs on all that it reads.
void compute(const plan::Plan& plan, const plan::Step& step, Memory& memory) {
  const ScheduledKernel& kernel = plan.programs[step.program];
  uint64_t sum = step.program;
  for (size_t i = 0; i < step.arguments.size(); ++i)
    if (kernel.arguments[i].read)
      for (uint64_t b = 0; b < plan.slots[step.arguments[i]].bytes; ++b)
        sum = next_splitmix(sum) ^ memory.at(step.arguments[i])[b];
  for (size_t i = 0; i < step.arguments.size(); ++i)
    if (kernel.arguments[i].written)
      for (uint64_t b = 0; b < plan.slots[step.arguments[i]].bytes; ++b)
        memory.at(step.arguments[i])[b] = static_cast<uint8_t>(next_splitmix(sum));
}

// The bytes of all outputs, of a run whose sides are `two` memories; `left_out`: a copy
// that does not happen.
std::vector<uint8_t> run(const plan::Plan& plan, bool two, size_t left_out = SIZE_MAX) {
  Memory there(plan, false, 0xdb), here(plan, two, 0xa5);
  for (SlotId id = 0; id < plan.slots.size(); ++id)
    if (plan.slots[id].slot_class == SlotClass::Input)
      for (Memory* side : {&there, &here})
        std::fill_n(side->at(id), plan.slots[id].bytes, static_cast<uint8_t>(id + 1));
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const plan::Step& step = plan.steps[s];
    if (s == left_out) continue;
    if (step.kind == StepKind::LaunchProgram)
      compute(plan, step, two && step.is_here ? here : there);
    else if (two && step.kind == StepKind::CopyDown)
      std::copy_n(there.at(step.slot), plan.slots[step.slot].bytes, here.at(step.slot));
    else if (two && step.kind == StepKind::CopyUp)
      std::copy_n(here.at(step.slot), plan.slots[step.slot].bytes, there.at(step.slot));
  }
  std::vector<uint8_t> out;
  for (SlotId id = 0; id < plan.slots.size(); ++id)
    if (plan.slots[id].slot_class == SlotClass::Output)
      std::copy_n((two && is_only_here(plan, id) ? here : there).at(id),
                  plan.slots[id].bytes, std::back_inserter(out));
  return out;
}

using Steps = std::vector<std::string>;

} // namespace

TEST_CASE("places: a function between kernels takes a copy down and one up", "[gpu]") {
  Made m;
  const SlotId x = m.slot(SlotClass::Input), a = m.slot(SlotClass::Temporary),
               b = m.slot(SlotClass::Temporary), y = m.slot(SlotClass::Output);
  m.step(false, {x}, {a});
  m.step(true, {a}, {b});
  m.step(false, {b}, {y});
  CHECK(m.placed() == Steps{"there", "down 1", "here", "up 2", "there"});
  CHECK(m.plan.slots[a].here != m.plan.slots[b].here);
  CHECK(run(m.plan, true) == run(m.plan, false));
  const plan::Crossings crossings = crossings_of(m.plan);
  CHECK(
      (crossings.graphs == 2 && crossings.copies == 2 && crossings.bytes == 2 * kBytes));
}

TEST_CASE("places: at the front and the back inputs and outputs are not copied",
          "[gpu]") {
  Made m;
  const SlotId x = m.slot(SlotClass::Input), a = m.slot(SlotClass::Temporary),
               b = m.slot(SlotClass::Temporary), y = m.slot(SlotClass::Output);
  m.step(true, {x}, {a});
  m.step(false, {a}, {b});
  m.step(true, {b, x}, {y});
  CHECK(m.placed() == Steps{"here", "up 1", "there", "down 2", "here"});
  CHECK((is_only_here(m.plan, x) && is_only_here(m.plan, y)));
  CHECK(run(m.plan, true) == run(m.plan, false));
  CHECK(crossings_of(m.plan).graphs == 1);
}

TEST_CASE("places: steps in a row share copies, and pass on what only they read",
          "[gpu]") {
  Made m;
  const SlotId x = m.slot(SlotClass::Input), a = m.slot(SlotClass::Temporary),
               b = m.slot(SlotClass::Temporary), c = m.slot(SlotClass::Temporary),
               d = m.slot(SlotClass::Temporary), y = m.slot(SlotClass::Output);
  m.step(false, {x}, {a});
  m.step(true, {a}, {b});
  m.step(true, {a, b}, {c});
  m.step(false, {c}, {d});
  m.step(true, {a, d}, {y}); // `a` is still there
  CHECK(m.placed() ==
        Steps{"there", "down 1", "here", "here", "up 3", "there", "down 4", "here"});
  CHECK(run(m.plan, true) == run(m.plan, false));
}

TEST_CASE("places: an output that the GPU reads goes there and comes back", "[gpu]") {
  Made m;
  const SlotId x = m.slot(SlotClass::Input), a = m.slot(SlotClass::Output),
               y = m.slot(SlotClass::Output);
  m.step(true, {x}, {a});
  m.step(false, {a}, {y});
  CHECK(m.placed() == Steps{"here", "up 1", "there"});
  CHECK(!is_only_here(m.plan, a));
  CHECK(run(m.plan, true) == run(m.plan, false));
}

TEST_CASE("places: what both sides write parts of is whole on the GPU", "[gpu]") {
  for (const SlotClass kind : {SlotClass::Temporary, SlotClass::Output}) {
    Made m;
    const SlotId x = m.slot(SlotClass::Input), t = m.slot(SlotClass::Temporary),
                 whole = m.slot(kind, 2 * kBytes), low = m.part(whole, 0, kBytes),
                 high = m.part(whole, kBytes, kBytes), y = m.slot(SlotClass::Output);
    m.step(false, {x}, {t});
    m.step(true, {t}, {low});
    m.step(false, {x}, {high});
    m.step(true, {whole}, {y});
    CHECK(m.placed() ==
          Steps{"there", "down 1", "here", "up 3", "there", "down 2", "here"});
    CHECK(run(m.plan, true) == run(m.plan, false));
  }
}

TEST_CASE("places: memory here is used again once its copy is done", "[gpu]") {
  Made m;
  SlotId last = m.slot(SlotClass::Input);
  for (int i = 0; i < 6; ++i) {
    const SlotId next = m.slot(SlotClass::Temporary);
    m.step(i % 2 != 0, {last}, {next});
    last = next;
  }
  m.step(false, {last}, {m.slot(SlotClass::Output)});
  m.placed();
  CHECK(m.plan.here_bytes == 2 * kBytes); // of six temporaries
  CHECK(run(m.plan, true) == run(m.plan, false));
}

TEST_CASE("places: a plan without functions, or with a loop, stays as it is", "[gpu]") {
  Made m;
  m.step(false, {m.slot(SlotClass::Input)}, {m.slot(SlotClass::Output)});
  CHECK(m.placed() == Steps{"there"});
  m.step(true, {0}, {1});
  m.plan.steps.emplace_back().kind = StepKind::Loop;
  m.plan.steps.emplace_back().kind = StepKind::End;
  CHECK(!is_straight(m.plan));
  plan::place_steps(m.plan);
  CHECK(m.plan.steps.size() == 4);
}

// Whatever reads what: right with its copies, wrong without any one of them.
TEST_CASE("places: random plans need each of their copies", "[gpu]") {
  int copies = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    uint64_t state = seed;
    const auto below = [&](size_t count) { return next_splitmix(state) % count; };
    Made m;
    std::vector<SlotId> made = {m.slot(SlotClass::Input), m.slot(SlotClass::Input)};
    std::set<SlotId> unread;
    for (size_t steps = 3 + below(12); steps > 0; --steps) {
      std::vector<SlotId> reads, writes;
      for (size_t i = 1 + below(3); i > 0; --i) reads.push_back(made[below(made.size())]);
      for (size_t i = 1 + below(2); i > 0; --i)
        writes.push_back(
            m.slot(below(4) == 0 ? SlotClass::Output : SlotClass::Temporary));
      m.step(below(2) == 0, reads, writes);
      for (SlotId id : reads) unread.erase(id);
      for (SlotId id : writes) made.push_back(id), unread.insert(id);
    }
    m.step(below(2) == 0, {unread.begin(), unread.end()}, {m.slot(SlotClass::Output)});
    plan::place_steps(m.plan);
    const std::vector<uint8_t> right = run(m.plan, false);
    INFO(print(m.plan));
    REQUIRE(run(m.plan, true) == right);
    for (size_t s = 0; s < m.plan.steps.size(); ++s) {
      if (m.plan.steps[s].kind == StepKind::LaunchProgram) continue;
      ++copies;
      CHECK(run(m.plan, true, s) != right);
    }
  }
  CHECK(copies > 500);
}
