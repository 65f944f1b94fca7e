// Results in the very place of what their kernels read.
#pragma once

#include "compiler/kernel/schedule.h"

namespace svod::plan {

// Whether the argument `written` may begin where `read` does: every element is read only
// for the result that takes its place. It holds on every level, with any schedule, and
// with chunks on several threads, which no two of touch the same element.
bool may_take_place(const ScheduledKernel& kernel, uint32_t read, uint32_t written);

} // namespace svod::plan
