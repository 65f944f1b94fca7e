// Whose schedule a kernel has is read off the plan: it is the tuning file's where what
// runs is what the file has. So a schedule that did not fit is not told as taken.
#include "packager/report/schedule_account.h"

#include <algorithm>
#include <sstream>

namespace svod::packager {

namespace {

// So many that lost are told, the rules' one aside; of those of equal cost, one.
constexpr size_t kMostTold = 2;

// Loops and a level of them.
struct Running {
  const Loops& loops;
  const LevelSchedule& level;
  bool operator==(const Running& other) const {
    return loops == other.loops && level == other.level;
  }
};

std::vector<std::string> lines_of(const Running& schedule) {
  std::istringstream text(print(schedule.loops) + print(schedule.level));
  std::vector<std::string> out;
  std::string line;
  while (std::getline(text, line))
    out.push_back(line.substr(line.find_first_not_of(' ')));
  return out;
}

// What a line is about: "tile", or with its stage "s0 sums".
std::string subject_of(const std::string& line) {
  const size_t first = line.find(' ');
  const bool of_stage =
      line.size() > 1 && line[0] == 's' && line[1] >= '0' && line[1] <= '9';
  return line.substr(0, of_stage ? line.find(' ', first + 1) : first);
}

std::vector<std::string> difference(const Running& other, const Running& running) {
  const std::vector<std::string> theirs = lines_of(other), ours = lines_of(running);
  std::vector<std::string> out;
  for (const std::string& line : theirs)
    if (std::ranges::count(ours, line) == 0) out.push_back(line);
  for (const std::string& line : ours) {
    const std::string subject = subject_of(line);
    if (std::ranges::count(theirs, subject, subject_of) == 0)
      out.push_back("no " + subject);
  }
  return out;
}

bool is_same(const Running& running, const KernelSchedule& given) {
  KernelSchedule tuned = given;
  tuned.loops.inner.resize(running.loops.inner.size());
  tuned.levels[0].stages.resize(running.level.stages.size());
  return running == Running{tuned.loops, tuned.levels[0]};
}

} // namespace

std::string_view chooser_name(ScheduleAccount::By by) {
  switch (by) {
  case ScheduleAccount::By::Rules:
    return "rules";
  case ScheduleAccount::By::Search:
    return "search";
  case ScheduleAccount::By::Tuning:
    return "tuning";
  case ScheduleAccount::By::Given:
    break;
  }
  return "given";
}

ScheduleAccount ScheduleAccounts::of(const ScheduledKernel& kernel, bool joined,
                                     size_t number) const {
  const Level& level = target_.levels[number];
  const Running running{kernel.loops, kernel.levels[number]};
  const Digest digest = digest_of(kernel, joined);
  ScheduleAccount out;
  out.seconds = cost::cost_of(kernel, running.level, level, searched_among(plan_)).total;
  if (const auto machine = tuning_.machines.find(machine_key(target_, level));
      machine != tuning_.machines.end())
    if (const auto tuned = machine->second.find(digest);
        tuned != machine->second.end() && is_same(running, tuned->second.schedule)) {
      out.tuned = &tuned->second;
      out.by = ScheduleAccount::By::Tuning;
    }
  const auto found = search_.considered.find({digest, level.suffix});
  if (found == search_.considered.end()) return out;
  const PricedSchedules& priced = found->second;
  const Loops& loops = *priced.rules.loops;
  const bool ruled = running == Running{loops, priced.rules.schedule};
  if (!ruled && out.tuned == nullptr)
    out.by = was_changed(digest, level) ? ScheduleAccount::By::Search
                                        : ScheduleAccount::By::Given;
  std::vector<optimize::ScheduleCandidate> others = priced.best;
  if (priced.other_loops) others.push_back(*priced.other_loops);
  std::ranges::stable_sort(others, {}, &optimize::ScheduleCandidate::seconds);
  for (const optimize::ScheduleCandidate& other : others)
    if (const Running lost{other.loops ? *other.loops : loops, other.schedule};
        !(lost == running) && out.lost.size() < kMostTold &&
        (out.lost.empty() || out.lost.back().seconds < other.seconds))
      out.lost.push_back({other.seconds, false, difference(lost, running)});
  if (!ruled)
    out.lost.push_back({priced.rules.seconds, true,
                        difference({loops, priced.rules.schedule}, running)});
  std::ranges::stable_sort(out.lost, {}, &LostSchedule::seconds);
  return out;
}

bool ScheduleAccounts::was_changed(const Digest& digest, const Level& level) const {
  return std::ranges::any_of(search_.changed, [&](const ChangedSchedule& changed) {
    return changed.kernel == digest && changed.level == level.suffix;
  });
}

std::vector<ScheduleAccount> ScheduleAccounts::of(uint32_t program, size_t level) const {
  const ScheduledKernel& kernel = plan_.programs[program];
  if (!kernel.sequence()) return {of(kernel, false, level)};
  std::vector<ScheduleAccount> out;
  for (const ScheduledKernel& part : kernel.parts()) {
    const size_t number = out.size();
    out.push_back(of(part, true, level));
    out.back().part = number;
  }
  return out;
}

} // namespace svod::packager
