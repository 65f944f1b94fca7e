#include "compiler/plan_cost.h"

#include <cstdio>

namespace svod {

PlanCost cost_of(const plan::Plan& plan, const Target& target, size_t level,
                 int threads) {
  PlanCost out;
  const cost::Surroundings around{double(plan.weight_bytes) + double(plan.arena_bytes),
                                  threads};
  std::vector<cost::KernelCost> programs;
  for (const ScheduledKernel& program : plan.programs)
    programs.push_back(
        cost::cost_of(program, program.levels[level], target.levels[level], around));
  for (const plan::Step& step : plan.steps) {
    if (step.kind != plan::StepKind::LaunchProgram) continue;
    out.launches.push_back(
        {step.program, step.repeats, step.sources, programs[step.program]});
    out.total += programs[step.program] * double(step.repeats);
  }
  return out;
}

std::string print(const PlanCost& cost, const plan::Plan& plan) {
  std::string out;
  char text[64];
  for (const LaunchCost& launch : cost.launches) {
    std::snprintf(text, sizeof(text), "k%u", launch.program);
    out += text;
    if (launch.times != 1) out += "*" + std::to_string(launch.times);
    out += " " + cost::print(launch.each);
    const char* separator = " for ";
    for (int32_t source : launch.sources) {
      out += separator + plan.graph.source_names()[static_cast<size_t>(source)];
      separator = ", ";
    }
    out += "\n";
  }
  std::snprintf(text, sizeof(text), "total %.3f us\n", cost.total.total * 1e6);
  return out + text;
}

} // namespace svod
