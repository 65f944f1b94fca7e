// Short kernels one after the other become one program.
#pragma once

#include "compiler/plan/plan.h"

namespace svod::plan {

// Operations and bytes of the longest kernel that may become part of a sequence.
int64_t short_work(const Machine& machine);

// Joins launches, copies and loops of known length between them, of a plan whose
// slots have their places; programs that no step launches any more go. `machine`: what a
// launch costs there.
void join_steps(Plan& plan, const Machine& machine);

} // namespace svod::plan
