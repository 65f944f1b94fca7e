// The compiled graph: steps in dependency order over slots, and one arena with an offset
// for every temporary. Beyond this point every buffer has its place; nothing allocates.
#pragma once

#include "compiler/fuse/fused_graph.h"

namespace svod {

using SlotId = uint32_t;

enum class SlotClass : uint8_t { Input, Output, Weight, State, Temporary };

struct Slot {
  SlotClass slot_class = SlotClass::Temporary;
  uint32_t io = 0;     // input or output number
  uint64_t offset = 0; // in the arena (Temporary) or the weight section (Weight)
  uint64_t bytes = 0;
  uint32_t source = 0; // Weight: PackedId; else BufferId
};

enum class StepKind : uint8_t { Allocate, Deallocate, CopyMemory, LaunchProgram };

struct Step {
  StepKind kind = StepKind::LaunchProgram;
  SlotId slot = 0;               // Allocate, Deallocate
  SlotId from = 0, to = 0;       // CopyMemory
  uint32_t program = 0;          // LaunchProgram
  std::vector<SlotId> arguments; // LaunchProgram, in the kernel's order
  uint32_t chunks = 1;
  int64_t flops = 0, bytes = 0;
  std::vector<int32_t> sources; // into graph.source_names()
};

struct Schedule {
  Graph graph;                      // what packed weights are evaluated from
  std::vector<PackedWeight> packed; // in the order of the weight section
  std::vector<Kernel> programs;     // equal kernels are one program
  std::vector<Slot> slots;
  std::vector<Step> steps;
  uint64_t arena_bytes = 0, arena_lower_bound = 0;
  uint64_t scratch_bytes = 0; // per thread, multiple of 64
  uint64_t weight_bytes = 0;
  int64_t unfused_kernels = 0;
  std::vector<SlotId> peak; // temporaries alive where the arena is fullest
};

Schedule plan(FusedGraph fused);
std::string print(const Schedule& schedule);

} // namespace svod
