// Kernels are predicted as each side predicts its own; what lies between the sides,
// copies and waits, is the IO gate's, as for a fusion that adds them.
#include "compiler/mixed_cost.h"

#include "compiler/optimize/choose_attention.h"
#include "compiler/optimize/io_gate.h"
#include "compiler/plan/io.h"
#include "compiler/plan_cost.h"

#include <algorithm>

namespace svod {

static double ns_here(const plan::Plan& plan, const Target& host, int threads) {
  double out = 0;
  const PlanCost cost = cost_of(plan, host, host.levels.size() - 1, threads);
  for (const LaunchCost& launch : cost.launches)
    if (!plan.programs[launch.program].call())
      out += launch.each.total * double(launch.times) * 1e9;
  return out;
}

static double ns_of_kernels(const plan::Plan& plan, const Level& level) {
  double out = 0;
  for (const plan::Step& step : plan.steps)
    if (step.kind == plan::StepKind::LaunchProgram && !step.is_here)
      out += optimize::gpu_launch_ns(plan.programs[step.program], level);
  return out;
}

MixedCost mixed_cost(const plan::Plan& here, const Target& host, int threads,
                     const plan::Plan& there, const Target& device) {
  MixedCost out{ns_here(here, host, threads)};
  const double share = 1 / double(device.levels.size());
  double least = 0;
  for (const Level& level : device.levels) {
    const optimize::IoGate gate = optimize::io_gate(level.machine);
    const IoProfile all = plan::io_profile(there, level.machine);
    IoProfile between;
    between.syncs = all.syncs;
    between.host_bytes = all.host_bytes;
    out.there_ns += share * (ns_of_kernels(there, level) - gate.gain_ns({}, between));
    least += share * gate.least_gain_ns;
  }
  out.pays = out.here_ns - out.there_ns >= least;
  return out;
}

} // namespace svod
