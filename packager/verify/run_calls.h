// Runs the C++ of calls (custom operators, image decoders, box selection) in this
// process, for the reference of --verify=random.
#pragma once

#include "compiler/ir/evaluate_calls.h"

namespace svod::packager {

// Compiles each function at its first call and keeps it as long as the runner lives. Only
// on a machine that runs what it packs for. A function that does not compile or load
// fails its call.
CallRunner calls_run_by();

} // namespace svod::packager
