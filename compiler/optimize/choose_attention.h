// Blocks of attention on a GPU.
#pragma once

#include "compiler/kernel/schedule.h"
#include "compiler/support/machine.h"

#include <optional>
#include <vector>

namespace svod::optimize {

// Of a kernel that is one, where a tile fits the machine.
std::optional<GpuSchedule> choose_attention(const ScheduledKernel& kernel,
                                            const Machine& machine);

// Whether attention as one kernel is predicted to take no longer than kernel by kernel.
bool attention_pays(const ScheduledKernel& joined,
                    const std::vector<const ScheduledKernel*>& apart,
                    const Machine& machine);

} // namespace svod::optimize
