// Kernels that follow each other as one: what the last one reads of the others' results
// it computes itself, so that these are never stored.
#pragma once

#include "compiler/kernel/schedule.h"

#include <map>
#include <optional>

namespace svod {

// The kernel that stores a buffer, and the stage of it that does.
struct Producer {
  const ScheduledKernel* kernel = nullptr;
  uint32_t stage = 0;
};

// `last`, reading of `producers`, by the number of their buffer, nothing that they store.
// A reduction of theirs that has a result for each of the positions that a later stage
// reduces becomes a nested stage. Nothing where an access is no plain sum of axes, or
// where a reduction would be over other positions than it was.
std::optional<ScheduledKernel>
join_kernels(const ScheduledKernel& last, const std::map<uint32_t, Producer>& producers);

} // namespace svod
