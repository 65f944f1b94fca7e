// Blocks of attention on a GPU.
#pragma once

#include "compiler/kernel/schedule.h"
#include "compiler/support/target.h"

#include <optional>
#include <vector>

namespace svod::optimize {

// Of a kernel that is one, where a tile fits the machine.
std::optional<GpuSchedule> choose_attention(const ScheduledKernel& kernel,
                                            const Level& level);

// What a launch of any kernel is predicted to take on a GPU: by its tile, or what it
// moves, and what the order of a scatter adds.
double gpu_launch_ns(const ScheduledKernel& kernel, const Level& level);

// How many times as long attention is predicted to take kernel by kernel as in one; 0
// where no tile fits.
double attention_gain(const ScheduledKernel& joined,
                      const std::vector<const ScheduledKernel*>& apart,
                      const Level& level);

} // namespace svod::optimize
