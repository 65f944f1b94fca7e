// The state of planning one plan. Internal to this folder.
#pragma once

#include "compiler/ir/graph_copy.h"
#include "compiler/ir/region.h"
#include "compiler/plan/plan.h"
#include "compiler/plan/plan_memory.h"

#include <map>
#include <set>

namespace svod::plan {

class Planner {
public:
  Planner(FusedGraph fused, const Machine& machine, const PlanOptions& options)
      : f_(std::move(fused)), machine_(machine), options_(options) {
    out_.align = options.align;
  }
  Plan run();

private:
  class StreamSearch; // plan_streams.cpp

  // One graph being planned: the main one, or a body between its markers.
  struct Frame {
    Frame(const FusedGraph& fused, Graph& main) : f(fused), copy(main, fused.graph) {}
    const FusedGraph& f;
    bool is_body = false;
    std::vector<SlotId> inputs, outputs; // of a body
    uint32_t depth = 0;                  // loops around its steps
    int64_t repeats = 1;
    GraphCopy copy; // of known nodes into the main graph
    std::map<BufferId, SlotId> buffers;
    std::map<PackedId, SlotId> weights;
    // What chains pass on: offset in the scratch memory, bytes of a part.
    std::map<BufferId, std::pair<uint64_t, uint64_t>> parts;
  };

  uint64_t aligned(uint64_t bytes) const {
    return (bytes + out_.align - 1) / out_.align * out_.align;
  }

  // plan.cpp
  uint32_t program_of(const Frame& frame, const ScheduledKernel& kernel);
  SlotId add_slot(Slot slot);
  SlotId buffer_slot(Frame& frame, BufferId id);
  SlotId weight_slot(Frame& frame, PackedId id);
  SlotId argument_slot(Frame& frame, const Argument& a);
  void add_sources(const Frame& frame, NodeId node, std::vector<int32_t>& list);
  void add_launch(Frame& frame, const ScheduledKernel& kernel);
  void add_chains(Frame& frame);
  void add_copy(const Frame& frame, SlotId from, SlotId to);
  void add_output_copies(Frame& frame);
  void add_steps(Frame& frame);
  void place_weights();
  // What lives in the arena, and the operations and bytes of the steps that touch it.
  struct Lives {
    std::vector<Lifetime> lives;
    std::vector<SlotId> slots;
    std::vector<int64_t> touched;
  };
  Lives find_lives() const;
  void place_temporaries();
  void insert_lifetimes(const std::vector<Lifetime>& lives,
                        const std::vector<SlotId>& slots);

  // plan_overlaps.cpp
  void write_borders_late();
  std::vector<MemoryPair> pairs(const std::vector<Lifetime>& lives,
                                const std::vector<SlotId>& slots);
  void note_overlaps(const std::vector<MemoryPair>& pairs,
                     const std::vector<SlotId>& slots);

  void add_distances(const std::vector<Lifetime>& lives, const std::vector<SlotId>& slots,
                     std::vector<MemoryPair>& out);
  void add_places(const std::vector<Lifetime>& lives, const std::vector<SlotId>& slots,
                  std::vector<MemoryPair>& out);
  void add_stream_pairs(const std::vector<Lifetime>& lives,
                        const std::vector<SlotId>& slots, std::vector<MemoryPair>& out);

  // plan_states.cpp
  void find_states();

  // plan_changes.cpp
  void add_changes();

  // plan_streams.cpp
  void make_streams(Frame& main);

  // plan_pools.cpp
  MemoryPlan plan_pools(const std::vector<Lifetime>& lives,
                        const std::vector<MemoryPair>& pairs,
                        const std::vector<int64_t>& touched);

  // plan_region.cpp
  void add_region(Frame& frame, const FusedRegion& region);
  void add_loop(Frame& frame, const FusedRegion& region);
  RegionSlots loop_slots(Frame& frame, const FusedRegion& region, const LoopSpec& spec);
  void add_carried(Frame& frame, const FusedRegion& region, const LoopSpec& spec,
                   Frame& body);
  void add_items(Frame& frame, const FusedRegion& region, const LoopSpec& spec,
                 Frame& body);
  void add_if(Frame& frame, const FusedRegion& region);
  void add_marker(const Frame& frame, const FusedRegion& region, StepKind kind,
                  const RegionSlots& slots);
  SlotId temporary(uint64_t bytes);
  SlotId slice(SlotId parent, uint64_t bytes, uint64_t offset, int64_t stride,
               uint32_t depth, bool alternates);
  SlotId result_slot(Frame& frame, const FusedRegion& region, size_t number,
                     uint64_t bytes);

  FusedGraph f_;
  const Machine& machine_;
  const PlanOptions& options_;
  Plan out_;
  uint32_t launches_ = 0;
  std::map<std::string, uint32_t> programs_;
  std::map<std::string, int32_t> source_numbers_;
  std::set<SlotId> kept_; // what steps read that may have run in an earlier run
  std::set<size_t> idle_; // kernels of the main graph that would copy what lies there
  std::vector<PackedWeight> packed_; // all that have a slot
  std::vector<SlotId> packed_slots_;
};

// Where the input and the output of a state lie; kNoBuffer where nobody reads or writes
// it.
struct StateBuffers {
  BufferId in = kNoBuffer, out = kNoBuffer;
};
StateBuffers state_buffers(const FusedGraph& fused, const StateLink& link);

// The slots whose bytes a step reads or writes.
std::vector<SlotId> touched_slots(const Step& step);

} // namespace svod::plan
