// Short kernels one after the other become one program.
#pragma once

#include "compiler/plan/plan.h"

namespace svod::plan {

// Joins launches, copies and loops of known length between them, of a plan whose
// slots have their places; programs that no step launches any more go.
void join_steps(Plan& plan);

} // namespace svod::plan
