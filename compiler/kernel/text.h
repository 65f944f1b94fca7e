// Kernels and their schedules as text. Each reads back what it writes: a line per
// argument, expression, stage and choice.
//
//   axes i0:56 i1:3 i2:16
//   terms i0 i2 (3*i0 + i1)/4          in the order of their numbers, which orders sums
//   outer i0 i2
//   a0 = buffer b1 f32 read
//   e0 = load f32 a0[16*i0 + i2] if 0 <= i0 < 50
//   s0 = reduce reduce_sum f32 over i1: e0
//
//   loops
//     outer i2 i0
//     lane i2 16
//     chunk i0 by 8
//   level v4 lanes 16
//     tile i0:4
//     s0 unroll 128 32 16 by 4
#pragma once

#include "compiler/kernel/schedule.h"
#include "compiler/support/digest.h"

namespace svod {

// What the kernel computes. Deterministic; equal kernels print equally, whatever their
// provenance and the model's numbers of nodes.
std::string print(const Kernel& kernel);
std::string print(const Kernel& kernel, const Index& index);
// " i0 i2"
std::string axes_text(const std::vector<AxisId>& axes);
std::string counts_text(const std::vector<TileAxis>& axes); // " i0:2 i3:4"
// How it runs.
std::string print(const Loops& loops);
std::string print(const LevelSchedule& level);
std::string print(const KernelSchedule& schedule);
// Both, one after the other.
std::string print(const ScheduledKernel& kernel);

// The same but for which buffers and weights the arguments are: kernels with equal texts
// are one program.
std::string program_text(const ScheduledKernel& kernel);

// Of the kernel, its arguments' numbers aside, and of what no schedule can change: its
// lanes and dots, the chunks that are parts of a chain, and whether it is a part of a
// sequence. A schedule in a file names its kernel by this.
Digest digest_of(const ScheduledKernel& kernel, bool joined = false);

// What a text form cannot be read for: the line in it and the reason.
struct TextFault {
  int line = 0;
  std::string why;
};
std::optional<Kernel> parse_kernel(std::string_view text, TextFault& fault);
std::optional<KernelSchedule> parse_schedule(std::string_view text, TextFault& fault);

} // namespace svod
