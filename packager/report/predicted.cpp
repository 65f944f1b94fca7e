#include "packager/report/predicted.h"

namespace svod::packager {

std::string predicted_text(const plan::Plan& plan, const Target& target, int threads) {
  std::string out;
  for (size_t level = 0; level < target.levels.size(); ++level)
    out += "predicted for " + target.levels[level].name + " on " +
           target.levels[level].machine.name + ", threads: " + std::to_string(threads) +
           "\n" + print(cost_of(plan, target, level, threads), plan);
  return out;
}

static void write_launch(JsonWriter& json, const LaunchCost& launch,
                         const plan::Plan& plan) {
  json.begin_object().pair("name", "k" + std::to_string(launch.program));
  json.pair("calls", launch.times).key("us").milliseconds(launch.each.total * 1e6);
  json.key("parts").begin_object();
  for (const cost::Part& part : cost::parts_of(launch.each))
    if (part.seconds > 0) json.key(part.name).milliseconds(part.seconds * 1e6);
  json.end_object().key("nodes").begin_list();
  for (int32_t source : launch.sources)
    json.value(plan.graph.source_names()[static_cast<size_t>(source)]);
  json.end_list().end_object();
}

void write_predicted(JsonWriter& json, const plan::Plan& plan, const Target& target,
                     int threads) {
  json.key("predicted").begin_list();
  for (size_t level = 0; level < target.levels.size(); ++level) {
    const PlanCost cost = cost_of(plan, target, level, threads);
    json.begin_object().pair("level", target.levels[level].suffix);
    json.pair("threads", threads).key("total_us").milliseconds(cost.total.total * 1e6);
    json.key("kernels").begin_list();
    for (const LaunchCost& launch : cost.launches) write_launch(json, launch, plan);
    json.end_list().end_object();
  }
  json.end_list();
}

} // namespace svod::packager
