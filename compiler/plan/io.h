// What a run of a plan moves.
#pragma once

#include "compiler/kernel/io_profile.h"
#include "compiler/plan/plan.h"

namespace svod::plan {

// One run after another on `machine`, loops as often as is known. A host that has its own
// memory gets the outputs and gives the inputs, and it waits for each condition that it
// branches on and around each function of the user's, or, where steps are placed, for
// each graph; what runs here is not counted. A processor is its own host, where none of
// that is anything.
IoProfile io_profile(const Plan& plan, const Machine& machine);

// Copies between slots of the arena, which kernels do not make.
struct Copies {
  int64_t count = 0, bytes = 0;
};
Copies copies_of(const Plan& plan);

} // namespace svod::plan
