// Rows of a GPU: what their threads share, and neighbours that one reads and writes at
// once.
#pragma once

#include "compiler/kernel/gpu_schedule.h"

namespace svod {

// Of a block that computes a row: neighbours along the loops of each stage that are read
// and written at once in all of them; 1: not in all.
int near_rows(const ScheduledKernel& kernel);

// Whether the kernel is a running sum, or its like, whose threads may share each row.
bool is_scan(const Kernel& kernel);

} // namespace svod
