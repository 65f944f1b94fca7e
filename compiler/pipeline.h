// The table of contents: from a graph to kernels, one function per arrow.
#pragma once

#include "compiler/equal_programs.h"
#include "compiler/ir/value_facts.h"
#include "compiler/optimize/schedule_kernel.h"
#include "compiler/passes.h"
#include "compiler/rewrite/fixed_point.h"
#include "compiler/search_schedules.h"
#include "compiler/weight_bound.h"

namespace svod {

struct CompileOptions {
  Target target;
  bool exact = false; // --accuracy exact: no rounding changes beyond the order of sums
  // The steps run one after the other, so a result may lie on what its kernel reads.
  bool one_thread = false;
  // Cuts of the graph that are priced, beside that of the rules: which values are stored
  // and which are computed where they are read. 0: the rules' cut is taken.
  size_t fusion_budget = 0;
  // Graphs that are lowered and priced to find an equal one that takes less; 0: the given
  // one is taken as it is.
  size_t equal_budget = 0;
  EqualSearch* equal = nullptr; // gets what was found
  bool as_written = false;      // no form of a contraction with fewer products
  // Of the weights with all that such forms add; none: they add what they take.
  std::optional<WeightBound> most_weights = std::nullopt;
  // Where code is to be small: the kernels that are scheduled for speed all the same.
  std::set<Digest> for_speed = {};
  // else the machine's.
  std::optional<double> work_for_ram = std::nullopt;
  uint64_t most_arena = 0; // bytes; for a smaller one any such work is added. 0: none is
  std::vector<uint64_t> pools = {}; // bytes of several memories for the arena; none: one
  bool changes = false; // a run can leave out what hangs on inputs that are as they were
  // Schedules that take the place of those that are chosen, where their kernels are met,
  // and what became of them. Both or none.
  const ScheduleFile* schedules = nullptr;
  optimize::AppliedSchedules* applied = nullptr;
  // Gets what became of quantisations, on a target that makes them of integers.
  std::optional<rewrite::FixedPointReport>* fixed_point = nullptr;
  // Schedules that may be priced to find better ones than the rules'; 0: the rules
  // choose.
  size_t search_budget = 0;
  std::set<Digest> unsearched = {};   // kernels whose schedules are the rules'
  ScheduleSearch* searched = nullptr; // gets what the search found
  FusedGraph* fused = nullptr;        // gets a copy of what the plan is made from
  // Gets what the plan took for granted of the values of weights. Of graphs without
  // bodies.
  std::shared_ptr<ValueFacts> facts = nullptr;
};

codegen::Kernels compile(const Graph& graph, const CompileOptions& options,
                         Passes& passes);
codegen::Kernels compile(const Graph& graph, const CompileOptions& options);

// Every program of the plan with a schedule for each level of the target. Beyond this
// point nothing is chosen.
ScheduledPlan schedule(plan::Plan plan, const Target& target);

} // namespace svod
