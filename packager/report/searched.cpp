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

static std::string asked_line(const AskedAim& asked) {
  std::string out = "equal programs: " + std::string(name_of(asked.aim)) + ": " +
                    std::to_string(asked.nodes) + " nodes in " +
                    std::to_string(asked.classes) + " classes, ended by " +
                    std::string(text_of(asked.stop));
  if (asked.priced == 0) return out + "; no other graph";
  char text[96];
  std::snprintf(text, sizeof(text), "; the best of %zu: %.3f -> %.3f us, %s",
                asked.priced, asked.before * 1e6, asked.after * 1e6,
                asked.taken ? "taken" : "not taken");
  return out + text;
}

std::vector<std::string> equal_lines(const EqualSearch& equal) {
  if (equal.end == EqualSearch::End::Off) return {};
  std::vector<std::string> out;
  for (const AskedAim& asked : equal.aims) out.push_back(asked_line(asked));
  if (equal.end == EqualSearch::End::Budget)
    out.emplace_back("equal programs: " + std::to_string(equal.priced) +
                     " graphs priced, all that the budget allows");
  return out;
}

void write_equal(JsonWriter& json, const EqualSearch& equal) {
  json.key("equal_programs").begin_object();
  json.pair("stop_reason", std::string(text_of(equal.end)));
  json.pair("priced", uint64_t{equal.priced});
  json.key("given_us").milliseconds(equal.before * 1e6);
  json.key("us").milliseconds(equal.after * 1e6);
  json.key("asked").begin_list();
  for (const AskedAim& asked : equal.aims) {
    json.begin_object().pair("aim", std::string(name_of(asked.aim)));
    json.pair("stop_reason", std::string(text_of(asked.stop)));
    json.pair("iterations", asked.iterations);
    json.pair("nodes", uint64_t{asked.nodes}).pair("classes", uint64_t{asked.classes});
    json.pair("priced", uint64_t{asked.priced});
    json.pair("places", uint64_t{asked.places});
    json.key("given_us").milliseconds(asked.before * 1e6);
    json.key("us").milliseconds(asked.after * 1e6);
    json.pair("taken", asked.taken).end_object();
  }
  json.end_list().end_object();
}

} // namespace svod::packager
