// What every plan has to satisfy; a fault is a bug of ours.
#pragma once

#include "compiler/plan/plan.h"

namespace svod::plan {

// SVOD_CHECKs: every program and slot named exists, slots lie inside their section, a
// temporary is used only between its Allocate and its Deallocate, and no two that live at
// the same time share a byte.
void verify(const Plan& plan);

} // namespace svod::plan
