// The text of one kernel, for tests that look at what code generation made of a choice.
#pragma once

#include "compiler/codegen/kernels.h"
#include "compiler/optimize/schedule_kernel.h"

namespace svod::test {

// Scheduled for this level.
inline std::string text_for(ScheduledKernel kernel, const Level& level) {
  kernel.levels = {optimize::schedule_kernel(kernel, level)};
  return codegen::kernel_text(kernel, 0).text;
}

} // namespace svod::test
