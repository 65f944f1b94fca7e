// Runs that leave out what hangs only on inputs that are as they were: what is left out,
// and that what is read from earlier runs is still there.
#include "compiler/ir/build.h"
#include "compiler/kernel/stage_work.h"
#include "compiler/pipeline.h"
#include "compiler/plan/planner.h"
#include "tests/support/check_kernels.h"
#include "tests/support/model_graph.h"
#include "tests/support/sweep.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>

using namespace svod;
using namespace svod::test;

namespace {

// Launches stay apart from each other, so that their arguments are those of kernels.
CompileOptions options_of() {
  CompileOptions options;
  options.target = *find_target("x86-64-v3");
  options.as_written = true;
  options.changes = true;
  for (Level& level : options.target.levels) level.machine.launch_ns = 0;
  return options;
}

// Runs a plan on numbers that stand for what tensors hold: a step's result is a number
// made of those that it reads. What is written over is gone.
class Runs {
public:
  explicit Runs(const plan::Plan& plan)
      : plan_(plan), inputs_(plan.graph.inputs().size()) {
    for (const plan::Step& step : plan.steps)
      for (size_t i = 0; i < step.arguments.size(); ++i) {
        const ScheduledKernel& kernel = plan.programs[step.program];
        const Argument& a = kernel.arguments[i];
        if (a.written && (a.read || !only_stores(kernel)))
          in_order_.insert(step.arguments[i]);
      }
  }
  void change(uint32_t input) { inputs_[input] = ++last_; }
  // Launches that were done; bits of `changed` as in a run.
  size_t run(bool all, uint64_t changed);
  std::vector<uint64_t> outputs() const;

private:
  struct Held {
    std::map<size_t, uint64_t> parts; // by the step that wrote it
    bool gone = false;
  };
  uint64_t read(plan::SlotId id) const;
  void write(plan::SlotId id, size_t step, uint64_t value);
  bool holds(plan::SlotId condition, bool all, uint64_t changed) const;

  const plan::Plan& plan_;
  std::vector<uint64_t> inputs_; // versions
  uint64_t last_ = 0;
  std::map<plan::SlotId, Held> held_;
  std::set<plan::SlotId> begun_;    // in this run
  std::set<plan::SlotId> in_order_; // what is written first begins anew
};

uint64_t mix(uint64_t a, uint64_t b) {
  return (a ^ (b + 0x9e3779b9)) * 0xff51afd7ed558ccd;
}

uint64_t Runs::read(plan::SlotId id) const {
  const plan::Slot& slot = plan_.slots[id];
  if (slot.slot_class == plan::SlotClass::Input) return mix(slot.io, inputs_[slot.io]);
  if (slot.slot_class == plan::SlotClass::Weight) return 1;
  const auto found = held_.find(id);
  if (found == held_.end()) return 2;
  if (found->second.gone) return 3;
  uint64_t out = 4;
  for (const auto& [step, value] : found->second.parts) out = mix(mix(out, step), value);
  return out;
}

void Runs::write(plan::SlotId id, size_t step, uint64_t value) {
  const plan::Slot& slot = plan_.slots[id];
  if (slot.slot_class == plan::SlotClass::Temporary)
    for (auto& [other, held] : held_) {
      const plan::Slot& o = plan_.slots[other];
      if (other != id && o.slot_class == plan::SlotClass::Temporary &&
          o.offset < slot.offset + slot.bytes && slot.offset < o.offset + o.bytes)
        held.gone = true;
    }
  Held& held = held_[id];
  const bool first = begun_.insert(id).second;
  if (held.gone || (first && in_order_.contains(id))) held = {};
  held.parts[step] = value;
}

bool Runs::holds(plan::SlotId condition, bool all, uint64_t changed) const {
  const plan::Slot& slot = plan_.slots[condition];
  return all || (plan_.changes.masks[slot.offset - plan::kChangeKeyBytes] & changed) != 0;
}

size_t Runs::run(bool all, uint64_t changed) {
  size_t done = 0;
  begun_.clear();
  for (size_t s = 0; s < plan_.steps.size(); ++s) {
    const plan::Step& step = plan_.steps[s];
    if (step.kind == plan::StepKind::If && !holds(step.region.start, all, changed))
      while (plan_.steps[s].kind != plan::StepKind::End) ++s;
    if (step.kind == plan::StepKind::CopyMemory)
      write(step.to, s, mix(s, read(step.from)));
    if (step.kind != plan::StepKind::LaunchProgram) continue;
    ++done;
    const ScheduledKernel& kernel = plan_.programs[step.program];
    uint64_t value = s;
    for (size_t i = 0; i < step.arguments.size(); ++i)
      if (kernel.arguments[i].read) value = mix(value, read(step.arguments[i]));
    for (size_t i = 0; i < step.arguments.size(); ++i)
      if (kernel.arguments[i].written) write(step.arguments[i], s, mix(value, i));
  }
  return done;
}

std::vector<uint64_t> Runs::outputs() const {
  std::vector<uint64_t> out;
  for (plan::SlotId id = 0; id < plan_.slots.size(); ++id)
    if (plan_.slots[id].slot_class == plan::SlotClass::Output) out.push_back(read(id));
  return out;
}

} // namespace

TEST_CASE("what hangs on one input is left out where another one changes",
          "[plan][changes]") {
  Graph g;
  const NodeId x = g.add_input("x", DType::F32, {40, 64});
  const NodeId y = g.add_input("y", DType::F32, {1, 64});
  NodeId deep = x;
  const NodeId weight = tensor_f32(g, {64, 64}, std::vector<float>(64 * 64, 0.01F));
  for (int layer = 0; layer < 4; ++layer)
    deep = map(g, Op::Tanh, {matmul(g, deep, weight)});
  g.add_output("z",
               map(g, Op::Tanh,
                   {matmul(g, map(g, Op::Mul, {deep, expand(g, y, {40, 64})}), weight)}));
  const plan::Plan plan = compile(g, options_of()).plan;
  REQUIRE(plan.changes.masks == std::vector<uint64_t>{1, 3});
  Runs runs(plan);
  const size_t all = runs.run(true, 0);
  CHECK(runs.run(false, 0) == 0);
  CHECK(runs.run(false, 2) < all);
  CHECK(runs.run(false, 1) == all);
}

TEST_CASE("runs that leave out steps hold what a run of all does",
          "[plan][changes][property][sweep]") {
  size_t left_out = 0, done = 0;
  for (uint64_t seed = 1; seed <= swept(40, 16); ++seed) {
    INFO("seed " << seed);
    const RandomGraph random = seed % 4 == 0 ? model_graph(seed) : random_graph(seed);
    const codegen::Kernels kernels = compile(random.graph, options_of());
    if (seed % 8 == 0) CHECK(check_answers(random, kernels, options_of().target) == "");
    const plan::Plan& plan = kernels.plan;
    // Regions of the model's own have conditions that are no inputs.
    if (plan.changes.slot == plan::kNoSlot || random.graph.body_count() != 0) continue;
    const size_t inputs = plan.graph.inputs().size();
    Random draw(seed);
    Runs some(plan);
    const size_t launches = some.run(true, 0);
    Runs whole = some;
    for (int run = 0; run < 12; ++run) {
      uint64_t changed = 0;
      for (uint32_t i = 0; i < inputs; ++i)
        if (draw.chance(40)) {
          some.change(i), whole.change(i);
          changed |= uint64_t{1} << i;
        }
      const size_t now = some.run(false, changed);
      whole.run(true, 0);
      REQUIRE(some.outputs() == whole.outputs());
      done += now, left_out += launches - now;
    }
  }
  CHECK(left_out > 100);
  CHECK(done > 100);
}
