#include "compiler/plan_cost.h"
#include "compiler/support/join.h"

#include <algorithm>
#include <cstdio>
#include <map>

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
    out.launches.push_back({step.program, step.repeats, step.sources,
                            programs[step.program], double(step.flops),
                            double(step.bytes)});
    out.total += programs[step.program] * double(step.repeats);
  }
  return out;
}

Roofs roofs_of(const Level& level) {
  const Machine& m = level.machine;
  const double wide = 16 * m.flops_per_clock / m.fmas_per_clock;
  const double at_once = level.register_bits < wide ? m.narrow_at_once : 1;
  Roofs out;
  out.flops_per_ns =
      2 * m.clock_ghz * m.fmas_per_clock * at_once * level.register_bits / 32;
  constexpr const char* kNames[] = {"first", "second", "last"};
  const Cache* before = nullptr;
  for (const Cache* cache : {&m.first, &m.second, &m.last}) {
    // A core with fewer caches repeats the nearest one.
    const bool again = before != nullptr && before->bytes == cache->bytes;
    if (!again)
      out.memories.push_back({kNames[out.memories.size()], double(cache->bytes),
                              m.clock_ghz * cache->bytes_per_clock});
    before = cache;
  }
  out.memories.push_back({"memory", 0, m.memory_bytes_per_ns});
  return out;
}

// Of the nearest memory that holds all that is moved.
static double bytes_per_ns(double bytes, const Roofs& roofs) {
  for (const Roofs::Memory& memory : roofs.memories)
    if (bytes <= memory.bytes) return memory.bytes_per_ns;
  return roofs.memories.back().bytes_per_ns;
}

// Seconds of a launch that does nothing but multiply and add, or move, at full rate.
static double roof_of(const LaunchCost& launch, const Roofs& roofs, const Machine& m) {
  const double ns = std::max(launch.flops / roofs.flops_per_ns,
                             launch.bytes / bytes_per_ns(launch.bytes, roofs));
  return 1e-9 * (ns + m.launch_ns);
}

std::vector<Cliff> cliffs_of(const PlanCost& cost, const Level& level) {
  constexpr double kLeastShare = 0.01, kFarAbove = 10;
  const Roofs roofs = roofs_of(level);
  std::map<uint32_t, Cliff> programs;
  for (const LaunchCost& launch : cost.launches) {
    Cliff& all = programs[launch.program];
    all.program = launch.program;
    all.seconds += launch.each.total * double(launch.times);
    all.roof += roof_of(launch, roofs, level.machine) * double(launch.times);
    for (int32_t source : launch.sources)
      if (std::ranges::count(all.sources, source) == 0) all.sources.push_back(source);
  }
  std::vector<Cliff> out;
  for (auto& [program, all] : programs)
    if (all.seconds >= kLeastShare * cost.total.total &&
        all.seconds >= kFarAbove * all.roof)
      out.push_back(std::move(all));
  std::ranges::sort(out, std::greater<>(), &Cliff::seconds);
  return out;
}

std::string print(const PlanCost& cost, const plan::Plan& plan,
                  const std::function<std::string(size_t)>& below) {
  std::string out;
  char text[64];
  for (size_t i = 0; i < cost.launches.size(); ++i) {
    const LaunchCost& launch = cost.launches[i];
    std::snprintf(text, sizeof(text), "k%u", launch.program);
    out += text;
    if (launch.times != 1) out += "*" + std::to_string(launch.times);
    out += " " + cost::print(launch.each);
    if (!launch.sources.empty())
      out += " for " + join(plan.graph.names_of(launch.sources));
    out += "\n";
    if (below) out += below(i);
  }
  std::snprintf(text, sizeof(text), "total %.3f us\n", cost.total.total * 1e6);
  return out + text;
}

} // namespace svod
