// A stream as it runs, chunk by chunk.
#pragma once

#include "compiler/plan/plan.h"

namespace svod::plan {

// `steps`: its launches. Each chunk finds the rows that it reads, and writes those that
// its window has room for.
void verify_stream(const Plan& plan, const std::vector<const Step*>& steps);

} // namespace svod::plan
