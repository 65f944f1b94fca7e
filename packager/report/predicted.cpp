#include "packager/report/predicted.h"

#include "packager/report/memory.h"

#include <cmath>
#include <cstdio>
#include <set>

namespace svod::packager {

static std::string tuned_text(const TunedKernel& tuned) {
  char text[160];
  std::snprintf(text, sizeof(text), "took %.3f %s, %.3f %s before (rules)", tuned.took,
                tuned.unit.c_str(), tuned.before, tuned.unit.c_str());
  return text;
}

// "1.204 us more (3.1 %): tile i4:7"
static std::string lost_text(const LostSchedule& lost, double running) {
  const double more = std::abs(lost.seconds - running);
  const bool is_short = more < 1e-6;
  char text[96];
  std::snprintf(text, sizeof(text),
                is_short ? "%.1f ns %s (%.1f %%)" : "%.3f us %s (%.1f %%)",
                more * (is_short ? 1e9 : 1e6), lost.seconds < running ? "less" : "more",
                100 * more / running);
  std::string out = text;
  if (lost.rules) out += ", rules";
  const char* separator = ": ";
  for (const std::string& line : lost.differs) {
    out += separator + line;
    separator = "; ";
  }
  return out;
}

static std::string accounts_text(const std::vector<ScheduleAccount>& accounts) {
  std::string out;
  for (const ScheduleAccount& account : accounts) {
    const std::string part =
        account.part ? "part " + std::to_string(*account.part) + ": " : "";
    if (account.tuned != nullptr)
      out += "  tuned  " + part + tuned_text(*account.tuned) + "\n";
    for (const LostSchedule& lost : account.lost)
      out += "  lost   " + part + lost_text(lost, account.seconds) + "\n";
  }
  return out;
}

std::string predicted_text(const plan::Plan& plan, const Target& target, int threads,
                           const ScheduleAccounts& accounts) {
  std::string out;
  for (size_t level = 0; level < target.levels.size(); ++level) {
    const PlanCost cost = cost_of(plan, target, level, threads);
    out += "predicted for " + target.levels[level].name + " on " +
           target.levels[level].machine.name + ", threads: " + std::to_string(threads) +
           "\n";
    std::set<uint32_t> told;
    out += print(cost, plan, [&](size_t launch) {
      const uint32_t program = cost.launches[launch].program;
      if (!told.insert(program).second) return std::string();
      return accounts_text(accounts.of(program, level));
    });
    for (const Cliff& cliff : cliffs_of(cost, target.levels[level])) {
      char text[96];
      std::snprintf(text, sizeof(text), "cliff k%u %.3f us, its roof is %.3f us\n",
                    cliff.program, cliff.seconds * 1e6, cliff.roof * 1e6);
      out += text;
    }
  }
  return out;
}

static void write_schedule(JsonWriter& json, const ScheduleAccount& account) {
  json.begin_object();
  if (account.part) json.pair("part", uint64_t{*account.part});
  json.pair("by", chooser_name(account.by)).key("us").milliseconds(account.seconds * 1e6);
  if (account.tuned != nullptr) {
    json.key("tuned").begin_object().key("took").milliseconds(account.tuned->took);
    json.key("before").milliseconds(account.tuned->before);
    json.pair("unit", account.tuned->unit).end_object();
  }
  json.key("lost").begin_list();
  for (const LostSchedule& lost : account.lost) {
    json.begin_object().key("us").milliseconds(lost.seconds * 1e6);
    json.pair("by", lost.rules ? "rules" : "search").key("differs").begin_list();
    for (const std::string& line : lost.differs) json.value(line);
    json.end_list().end_object();
  }
  json.end_list().end_object();
}

static void write_launch(JsonWriter& json, const LaunchCost& launch,
                         const plan::Plan& plan,
                         const std::vector<ScheduleAccount>& accounts) {
  json.begin_object().pair("name", "k" + std::to_string(launch.program));
  json.pair("calls", launch.times).key("us").milliseconds(launch.each.total * 1e6);
  json.pair("flops", static_cast<uint64_t>(launch.flops));
  json.pair("bytes", static_cast<uint64_t>(launch.bytes));
  json.key("parts").begin_object();
  for (const cost::Part& part : cost::parts_of(launch.each))
    if (part.seconds > 0) json.key(part.name).milliseconds(part.seconds * 1e6);
  json.end_object();
  write_nodes(json, launch.sources, plan);
  json.key("schedules").begin_list();
  for (const ScheduleAccount& account : accounts) write_schedule(json, account);
  json.end_list().end_object();
}

static void write_roofs(JsonWriter& json, const Roofs& roofs) {
  json.key("roofs").begin_object().key("gflops").milliseconds(roofs.flops_per_ns);
  json.key("memories").begin_list();
  for (const Roofs::Memory& memory : roofs.memories) {
    json.begin_object().pair("name", memory.name);
    json.pair("bytes", static_cast<uint64_t>(memory.bytes));
    json.key("gb_per_s").milliseconds(memory.bytes_per_ns).end_object();
  }
  json.end_list().end_object();
}

void write_machine(JsonWriter& json, const Level& level) {
  json.begin_object().pair("machine", level.machine.name);
  write_roofs(json, roofs_of(level));
  json.end_object();
}

void write_predicted(JsonWriter& json, const plan::Plan& plan, const Target& target,
                     int threads, const ScheduleAccounts& accounts) {
  json.key("predicted").begin_list();
  for (size_t level = 0; level < target.levels.size(); ++level) {
    const PlanCost cost = cost_of(plan, target, level, threads);
    json.begin_object().pair("level", target.levels[level].suffix);
    json.pair("threads", threads).key("total_us").milliseconds(cost.total.total * 1e6);
    json.pair("machine", target.levels[level].machine.name);
    write_roofs(json, roofs_of(target.levels[level]));
    json.key("kernels").begin_list();
    std::set<uint32_t> told;
    for (const LaunchCost& launch : cost.launches)
      write_launch(json, launch, plan,
                   told.insert(launch.program).second ? accounts.of(launch.program, level)
                                                      : std::vector<ScheduleAccount>());
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
