// How a kernel runs: every choice that is not what it computes. A kernel and its schedule
// together are all that code generation needs; it prints them and chooses nothing.
//
// What holds on every CPU level, because all levels read the same packed weights and the
// plan counts the chunks, is in Loops; the rest is one LevelSchedule per level.
#pragma once

#include "compiler/kernel/kernel.h"

namespace svod {

// Parallel parts: axis positions in blocks; chunk numbers enumerate the blocks row-major.
struct ChunkAxis {
  AxisId axis;
  int64_t block;
  bool operator==(const ChunkAxis&) const = default;
};

// Products that one step of a dot axis adds up: four bytes fill the 32 bits of a lane.
inline constexpr int kDot = 4;

struct Loops {
  std::vector<AxisId> outer;              // Kernel::outer, outermost loop first
  std::vector<std::vector<AxisId>> inner; // by stage: Stage::inner, outermost loop first
  // The axis that is executed as one vector; it has exactly `lanes` positions.
  std::optional<AxisId> lane;
  int lanes = 1;
  // The axis of kDot positions whose bytes one instruction multiplies and adds.
  std::optional<AxisId> dot;
  std::vector<ChunkAxis> chunks;
  bool in_parts = false; // the chunks are the parts of a chain

  bool operator==(const Loops&) const = default;
};

// A kernel with its schedule. What needs only the kernel takes a Kernel.
struct ScheduledKernel : Kernel {
  Loops loops;

  bool has_lane_axis() const { return loops.lane.has_value(); }
  bool has_dot_axis() const { return loops.dot.has_value(); }
  bool is_lane(AxisId a) const { return loops.lane == a; }
  bool is_dot(AxisId a) const { return loops.dot == a; }
  // The loops of one of this kernel's own stages, outermost first.
  const std::vector<AxisId>& inner(const Stage& stage) const {
    return loops.inner[static_cast<size_t>(&stage - stages.data())];
  }
  int64_t chunk_count() const;
};

// The kernel as text: axes, expressions, stages. Deterministic; equal kernels print
// equally.
std::string print(const ScheduledKernel& kernel);

// All axes in the order in which lowering made them.
Loops plain_loops(const Kernel& kernel);

} // namespace svod
