// The table of contents: from a graph to kernels, one function per arrow.
#pragma once

#include "compiler/passes.h"

namespace svod {

struct CompileOptions {
  Target target;
  bool small = false; // -Os: bytes before speed
  bool exact = false; // --accuracy exact: no rounding changes beyond the order of sums
};

codegen::Kernels compile(const Graph& graph, const CompileOptions& options,
                         Passes& passes);
codegen::Kernels compile(const Graph& graph, const CompileOptions& options);

// Every program of the plan with a schedule for each level of the target.
plan::Plan schedule(plan::Plan plan, const Target& target);

} // namespace svod
