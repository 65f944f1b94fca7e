#include "packager/report/predicted.h"

namespace svod::packager {

std::string predicted_text(const plan::Plan& plan, const Target& target, int threads) {
  std::string out;
  for (size_t level = 0; level < target.levels.size(); ++level) {
    const PlanCost cost = cost_of(plan, target, level, threads);
    out += "predicted for " + target.levels[level].name + " on " +
           target.levels[level].machine.name + ", threads: " + std::to_string(threads) +
           "\n" + print(cost, plan);
    for (const Cliff& cliff : cliffs_of(cost, target.levels[level])) {
      char text[96];
      std::snprintf(text, sizeof(text), "cliff k%u %.3f us, its roof is %.3f us\n",
                    cliff.program, cliff.seconds * 1e6, cliff.roof * 1e6);
      out += text;
    }
  }
  return out;
}

static void write_nodes(JsonWriter& json, const std::vector<int32_t>& sources,
                        const plan::Plan& plan) {
  json.key("nodes").begin_list();
  for (int32_t source : sources)
    json.value(plan.graph.source_names()[static_cast<size_t>(source)]);
  json.end_list();
}

static void write_launch(JsonWriter& json, const LaunchCost& launch,
                         const plan::Plan& plan) {
  json.begin_object().pair("name", "k" + std::to_string(launch.program));
  json.pair("calls", launch.times).key("us").milliseconds(launch.each.total * 1e6);
  json.key("parts").begin_object();
  for (const cost::Part& part : cost::parts_of(launch.each))
    if (part.seconds > 0) json.key(part.name).milliseconds(part.seconds * 1e6);
  json.end_object();
  write_nodes(json, launch.sources, plan);
  json.end_object();
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
    json.end_list().key("cliffs").begin_list();
    for (const Cliff& cliff : cliffs_of(cost, target.levels[level])) {
      json.begin_object().pair("name", "k" + std::to_string(cliff.program));
      json.key("us").milliseconds(cliff.seconds * 1e6);
      json.key("roof_us").milliseconds(cliff.roof * 1e6);
      write_nodes(json, cliff.sources, plan);
      json.end_object();
    }
    json.end_list().end_object();
  }
  json.end_list();
}

} // namespace svod::packager
