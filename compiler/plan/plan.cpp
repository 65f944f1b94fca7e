// Turns kernels into steps: equal kernels become one program, buffers become slots,
// temporaries get their place in the arena from their first and last step. The bodies of
// regions are planned into the same list of steps, between markers, and the same arena:
// what only a body touches lives inside it, what it shares with the outside lives as long
// as the loop.
#include "compiler/plan/planner.h"

#include "compiler/plan/join_steps.h"
#include "compiler/plan/plan_memory.h"

#include <algorithm>

namespace svod::plan {

uint32_t Planner::program_of(const Frame& frame, const ScheduledKernel& kernel) {
  auto [found, fresh] = programs_.emplace(program_text(kernel),
                                          static_cast<uint32_t>(out_.programs.size()));
  if (!fresh) return found->second;
  out_.programs.push_back(kernel);
  // The text of a function that a body calls is read from the main graph too.
  if (frame.is_body && kernel.call())
    out_.programs.back().call()->function =
        f_.graph.add_blob(frame.f.graph.blob(kernel.call()->function));
  return found->second;
}

SlotId Planner::add_slot(Slot slot) {
  out_.slots.push_back(slot);
  return static_cast<SlotId>(out_.slots.size() - 1);
}

SlotId Planner::buffer_slot(Frame& frame, BufferId id) {
  if (auto found = frame.buffers.find(id); found != frame.buffers.end())
    return found->second;
  const Buffer& b = frame.f.buffers[id];
  Slot slot;
  slot.bytes = static_cast<uint64_t>(b.bytes());
  slot.source = id;
  if (auto part = frame.parts.find(id); part != frame.parts.end()) {
    slot.slot_class = SlotClass::Part;
    slot.offset = part->second.first;
    slot.bytes = part->second.second;
  } else if (b.input >= 0)
    slot.slot_class = SlotClass::Input, slot.io = static_cast<uint32_t>(b.input);
  else if (!b.outputs.empty())
    slot.slot_class = SlotClass::Output, slot.io = static_cast<uint32_t>(b.outputs[0]);
  SlotId& place = frame.buffers[id];
  if (frame.is_body && slot.slot_class == SlotClass::Input)
    return place = frame.inputs[slot.io];
  if (frame.is_body && slot.slot_class == SlotClass::Output)
    return place = frame.outputs[slot.io];
  return place = add_slot(slot);
}

SlotId Planner::weight_slot(Frame& frame, PackedId id) {
  if (auto found = frame.weights.find(id); found != frame.weights.end())
    return found->second;
  // What a body knows is evaluated from the main graph too.
  PackedWeight weight = frame.f.packed[id];
  if (frame.is_body) weight.source = frame.copy.copy(weight.source);
  auto known = std::find(packed_.begin(), packed_.end(), weight);
  if (known == packed_.end()) {
    Slot slot;
    slot.slot_class = SlotClass::Weight;
    slot.bytes = static_cast<uint64_t>(weight.bytes());
    slot.source = static_cast<uint32_t>(packed_.size());
    packed_.push_back(std::move(weight));
    packed_slots_.push_back(add_slot(slot));
    known = packed_.end() - 1;
  }
  return frame.weights[id] = packed_slots_[static_cast<size_t>(known - packed_.begin())];
}

SlotId Planner::argument_slot(Frame& frame, const Argument& a) {
  return a.kind == Argument::Kind::Buffer ? buffer_slot(frame, a.id)
                                          : weight_slot(frame, a.id);
}

void Planner::add_sources(const Frame& frame, NodeId node, std::vector<int32_t>& list) {
  for (int32_t source : frame.f.graph.sources(node)) {
    const std::string& name = frame.f.graph.source_name(source);
    auto [found, fresh] = source_numbers_.emplace(
        name, static_cast<int32_t>(f_.graph.source_names().size()));
    if (fresh) {
      f_.graph.open_source(name);
      f_.graph.close_source();
    }
    list.push_back(found->second);
  }
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

// What is stored, and the joins in it that a part is written into: of one that is copied,
// by a kernel that computes nothing, all there are.
static std::vector<NodeId> joins_of(const Graph& g, NodeId stored, const Kernel& kernel) {
  const NodeId part = kernel.nodes.empty() ? kNoNode : kernel.nodes[0];
  std::vector<NodeId> out{stored};
  if (part == stored || g[stored].op != Op::Concat) return out;
  for (NodeId in : g[stored].inputs) {
    if (g[in].op != Op::Concat || in == part) continue;
    const std::vector<NodeId> inner = joins_of(g, in, kernel);
    const bool within = part == kNoNode || std::ranges::any_of(inner, [&](NodeId join) {
                          return std::ranges::count(g[join].inputs, part) != 0;
                        });
    if (within) out.insert(out.end(), inner.begin(), inner.end());
  }
  return out;
}

void Planner::add_launch(Frame& frame, const ScheduledKernel& kernel) {
  Step step;
  step.program = program_of(frame, kernel);
  step.kernel = launches_++;
  for (const Argument& a : kernel.arguments)
    step.arguments.push_back(argument_slot(frame, a));
  step.chunks = static_cast<uint32_t>(kernel.chunk_count());
  step.flops = kernel.flops;
  step.bytes = kernel.bytes;
  step.repeats = frame.repeats;
  for (NodeId n : kernel.nodes) add_sources(frame, n, step.sources);
  for (const Argument& a : kernel.arguments)
    if (a.kind == Argument::Kind::Buffer && a.written)
      for (NodeId n : joins_of(frame.f.graph, frame.f.buffers[a.id].node, kernel))
        add_sources(frame, n, step.sources);
  out_.scratch_bytes =
      std::max(out_.scratch_bytes, static_cast<uint64_t>(kernel.scratch_bytes));
  out_.steps.push_back(std::move(step));
}

void Planner::add_copy(const Frame& frame, SlotId from, SlotId to) {
  Step step;
  step.kind = StepKind::CopyMemory;
  step.from = from;
  step.to = to;
  step.bytes = 2 * static_cast<int64_t>(out_.slots[to].bytes);
  step.repeats = frame.repeats;
  if (step.bytes != 0) out_.steps.push_back(std::move(step));
}

// A value that leaves twice, or an input that is an output too, is copied to its other
// places.
void Planner::add_output_copies(Frame& frame) {
  for (BufferId id = 0; id < frame.f.buffers.size(); ++id) {
    const Buffer& b = frame.f.buffers[id];
    for (size_t i = b.input >= 0 ? 0 : 1; i < b.outputs.size(); ++i) {
      const auto io = static_cast<uint32_t>(b.outputs[i]);
      Slot to;
      to.slot_class = SlotClass::Output;
      to.io = io;
      to.bytes = static_cast<uint64_t>(b.bytes());
      to.source = id;
      const SlotId from = buffer_slot(frame, id);
      add_copy(frame, from, frame.is_body ? frame.outputs[io] : add_slot(to));
    }
  }
}

// The kernels of a chain use no scratch memory of their own.
void Planner::add_chains(Frame& frame) {
  for (const Chain& chain : frame.f.chains) {
    uint64_t offset = 0;
    for (const Chain::Passed& p : chain.buffers) {
      const auto bytes = static_cast<uint64_t>(p.bytes);
      frame.parts[p.buffer] = {offset, bytes};
      offset += aligned(bytes);
    }
    out_.scratch_bytes = std::max(out_.scratch_bytes, offset);
  }
}

void Planner::add_steps(Frame& frame) {
  add_chains(frame);
  size_t next = 0, chain = 0;
  for (size_t i = 0; i <= frame.f.kernels.size(); ++i) {
    for (; next < frame.f.regions.size() && frame.f.regions[next].kernels_before == i;
         ++next)
      add_region(frame, frame.f.regions[next]);
    if (i == frame.f.kernels.size()) break;
    if (!frame.is_body && idle_.contains(i)) {
      ++launches_;
      continue;
    }
    add_launch(frame, frame.f.kernels[i]);
    if (chain == frame.f.chains.size()) continue;
    const Chain& c = frame.f.chains[chain];
    if (i == c.first) out_.steps.back().followers = static_cast<uint32_t>(c.count - 1);
    if (i + 1 == c.first + c.count) ++chain;
  }
  add_output_copies(frame);
}

// In the order of add_steps() and of what it calls.
std::vector<Launched> launched_kernels(const FusedGraph& fused) {
  std::vector<Launched> out;
  size_t next = 0;
  for (size_t i = 0; i <= fused.kernels.size(); ++i) {
    for (; next < fused.regions.size() && fused.regions[next].kernels_before == i; ++next)
      for (const FusedGraph& body : fused.regions[next].bodies)
        std::ranges::copy(launched_kernels(body), std::back_inserter(out));
    if (i < fused.kernels.size()) out.push_back({&fused, &fused.kernels[i]});
  }
  return out;
}

// In the order of first use, so that a run reads the section front to back.
void Planner::place_weights() {
  for (Slot& slot : out_.slots) {
    if (slot.slot_class != SlotClass::Weight) continue;
    slot.offset = out_.weight_bytes;
    out_.weight_bytes += aligned(slot.bytes);
    out_.packed.push_back(packed_[slot.source]);
    slot.source = static_cast<uint32_t>(out_.packed.size() - 1);
  }
}

void Planner::insert_lifetimes(const std::vector<Lifetime>& lives,
                               const std::vector<SlotId>& slots) {
  std::vector<Step> steps;
  for (uint32_t s = 0; s < out_.steps.size(); ++s) {
    auto add = [&](StepKind kind, size_t i) {
      Step step;
      step.kind = kind;
      step.slot = slots[i];
      steps.push_back(std::move(step));
    };
    for (size_t i = 0; i < lives.size(); ++i)
      if (lives[i].first == s) add(StepKind::Allocate, i);
    steps.push_back(std::move(out_.steps[s]));
    for (size_t i = 0; i < lives.size(); ++i)
      if (lives[i].last == s) add(StepKind::Deallocate, i);
  }
  out_.steps = std::move(steps);
}

std::vector<SlotId> touched_slots(const Step& step) {
  const RegionSlots& r = step.region;
  std::vector<SlotId> all = step.arguments;
  if (step.kind == StepKind::CopyMemory) all = {step.from, step.to};
  if (step.kind == StepKind::CopyDown || step.kind == StepKind::CopyUp) all = {step.slot};
  if (step.kind == StepKind::If) all = {r.start};
  if (step.kind == StepKind::Loop) all = {r.count, r.start, r.iteration, r.again, r.done};
  if (step.kind == StepKind::End) all = {r.again, r.iteration, r.done};
  std::erase(all, kNoSlot);
  return all;
}

SlotId root_slot(const Plan& plan, SlotId id) {
  while (plan.slots[id].slot_class == SlotClass::Slice) id = plan.slots[id].parent;
  return id;
}

// What a loop shares with the steps around it must keep its place through all iterations.
static void stretch_over_loops(const std::vector<Step>& steps,
                               std::vector<Lifetime>& lives) {
  std::vector<uint32_t> open;
  for (uint32_t end = 0; end < steps.size(); ++end) {
    const StepKind kind = steps[end].kind;
    if (kind == StepKind::Loop || kind == StepKind::If) open.push_back(end);
    if (kind != StepKind::End) continue;
    const uint32_t begin = open.back();
    open.pop_back();
    if (steps[begin].kind != StepKind::Loop) continue;
    for (Lifetime& life : lives) {
      const bool enters = life.first < begin && life.last >= begin;
      const bool leaves = life.first < end && life.first > begin && life.last > end;
      if (enters) life.last = std::max(life.last, end);
      if (leaves) life.first = begin;
    }
  }
}

Planner::Lives Planner::find_lives() const {
  Lives out;
  std::map<SlotId, size_t> index;
  // What a chain touches lives from its first step to its last.
  uint32_t first = 0, last = 0;
  for (uint32_t s = 0; s < out_.steps.size(); ++s) {
    if (s == 0 || s > last) first = s, last = s + out_.steps[s].followers;
    for (SlotId touched : touched_slots(out_.steps[s])) {
      const SlotId id = root_slot(out_, touched);
      if (out_.slots[id].slot_class != SlotClass::Temporary) continue;
      auto [found, fresh] = index.emplace(id, out.lives.size());
      if (fresh)
        out.lives.push_back({out_.slots[id].bytes, first, first}),
            out.slots.push_back(id);
      out.lives[found->second].last = last;
      out.touched.resize(out.lives.size());
      out.touched[found->second] += out_.steps[s].flops + out_.steps[s].bytes;
    }
  }
  stretch_over_loops(out_.steps, out.lives);
  for (size_t i = 0; i < out.lives.size(); ++i)
    if (kept_.contains(out.slots[i]))
      out.lives[i].first = 0,
      out.lives[i].last = static_cast<uint32_t>(out_.steps.size() - 1);
  return out;
}

void Planner::place_temporaries() {
  const auto [lives, slots, touched] = find_lives();
  const std::vector<MemoryPair> pairs = this->pairs(lives, slots);
  const MemoryPlan memory = options_.pools.empty() ? plan_memory(lives, out_.align, pairs)
                                                   : plan_pools(lives, pairs, touched);
  for (size_t i = 0; i < lives.size(); ++i)
    out_.slots[slots[i]].offset = memory.offsets[i];
  out_.arena_bytes = memory.bytes;
  out_.arena_lower_bound = memory.lower_bound;
  for (uint32_t i : memory.at_peak) out_.peak.push_back(slots[i]);
  note_overlaps(pairs, slots);
  insert_lifetimes(lives, slots);
}

Plan Planner::run() {
  const std::vector<std::string>& names = f_.graph.source_names();
  for (size_t i = 0; i < names.size(); ++i)
    source_numbers_.emplace(names[i], static_cast<int32_t>(i));
  find_states();
  Frame main(f_, f_.graph);
  add_steps(main);
  make_streams(main);
  write_borders_late();
  if (options_.changes) add_changes();
  place_weights();
  place_temporaries();
  if (options_.joins) join_steps(out_, machine_);
  out_.scratch_bytes = aligned(out_.scratch_bytes);
  out_.unfused_kernels = f_.unfused_kernels;
  for (const ChosenAlgorithm& chosen : chosen_algorithms(f_))
    out_.fast_form_bytes += chosen.more_bytes;
  out_.graph = std::move(f_.graph);
  return std::move(out_);
}

Plan plan(FusedGraph fused, const Machine& machine, const PlanOptions& options) {
  return Planner(std::move(fused), machine, options).run();
}

} // namespace svod::plan
