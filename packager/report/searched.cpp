#include "packager/report/searched.h"

#include <cstdio>

namespace svod::packager {

static const char* stop_reason(const ScheduleSearch& search) {
  return search.out_of_budget ? "budget" : "all priced";
}

std::vector<std::string> search_lines(const ScheduleSearch& search) {
  std::vector<std::string> out;
  out.push_back("search: " + std::to_string(search.priced) + " schedules priced (" +
                stop_reason(search) + "), " + std::to_string(search.changed.size()) +
                " taken");
  for (const ChangedSchedule& c : search.changed) {
    char text[96];
    std::snprintf(text, sizeof(text), "search: k%u %s: predicted %.3f us, %.3f by rules",
                  c.program, c.level.c_str(), c.seconds * 1e6, c.rules * 1e6);
    out.emplace_back(text);
  }
  return out;
}

void write_search(JsonWriter& json, const ScheduleSearch& search, size_t spilled) {
  json.key("search").begin_object();
  json.pair("candidates", uint64_t{search.priced});
  json.pair("stop_reason", std::string(stop_reason(search)));
  json.pair("spilled", uint64_t{spilled});
  json.key("changed").begin_list();
  for (const ChangedSchedule& c : search.changed) {
    json.begin_object().pair("kernel", "k" + std::to_string(c.program));
    json.pair("level", c.level).key("rules_us").milliseconds(c.rules * 1e6);
    json.key("us").milliseconds(c.seconds * 1e6).end_object();
  }
  json.end_list().end_object();
}

} // namespace svod::packager
