// What the expression of a stage consists of, and how often a stage computes it: the
// numbers that choices count with.
#pragma once

#include "compiler/kernel/schedule.h"

namespace svod {

// Instructions of one step down a tree.
inline constexpr int64_t kStepWork = 6;

// Scalar functions that take many instructions.
bool is_costly(Op op);

struct StageWork {
  std::vector<ExprId> loads;
  int operations = 0; // scalar functions, casts, steps down trees
};
// Below an expression, each once, where data gives positions too. Locals end the walk.
StageWork work_below(const Kernel& kernel, ExprId root);
// Likewise, but for what was `counted` before, which becomes what was counted until now.
StageWork work_below(const Kernel& kernel, ExprId root, std::vector<bool>& counted);
std::vector<ExprId> loads_below(const Kernel& kernel, ExprId root);
// Walks down trees below an expression, each once.
std::vector<ExprId> descents_below(const Kernel& kernel, ExprId root);
// The axes that an index depends on, by way of data that gives positions, too; by axis.
std::vector<bool> axes_below(const Kernel& kernel, const Index& index);
// Nested stages whose results the value of a stage reads, in order.
std::vector<uint32_t> nested_below(const Kernel& kernel, uint32_t stage);
// What casts are applied to.
ExprId below_casts(const Kernel& kernel, ExprId id);

// The loops that a stage of `kernel` runs in, outermost first.
std::vector<AxisId> loops_of(const ScheduledKernel& kernel, const Stage& stage);
// How many positions loops over these axes visit.
double positions_of(const IndexPool& pool, const std::vector<AxisId>& axes);

bool is_arg_reduce(const Stage& stage);
// Whether all that the kernel writes are parts that no other kernel writes, if this holds
// for the other as well: where a scatter writes, and in a function of the user's, the
// order counts.
bool only_stores(const ScheduledKernel& kernel);
bool contains(const std::vector<AxisId>& axes, AxisId axis);

} // namespace svod
