// Schedules are printed and read by schedule_file.h, one machine after the other. What it
// passes over, the lines of kernels, holds the times here.
#include "packager/tune/tuning_file.h"

#include "compiler/kernel/line_scanner.h"

#include <algorithm>
#include <cstdio>
#include <ranges>

namespace svod::packager {

namespace {

constexpr std::string_view kHeader = "svod-pack tuning 1", kEnd = "end";
constexpr std::string_view kMachine = "machine ", kPlan = "plan ",
                           kKernel = "kernel took ", kSchedule = "schedule ";

constexpr size_t kLongestUnit = 31;

struct Times {
  double took = 0, before = 0;
  std::string unit;
};

// The schedules of one machine, on the lines that they have in the whole file.
struct Section {
  std::string text;
  int lines = 0;
  std::map<Digest, Times> times;
  TunedPlans plans;

  void add(const NumberedLine& line) {
    text += std::string(static_cast<size_t>(line.number - 1 - lines), '\n');
    text += std::string(line.text) + "\n";
    lines = line.number;
  }
};

std::string without_spaces_behind(std::string_view text) {
  return std::string(text.substr(0, text.find_last_not_of(" \r") + 1));
}

// Not a number, and what no line of a file has room for, are none.
bool is_time(double value) { return value >= 0 && value < 1e18; }

std::optional<Times> times_of(std::string_view words) {
  Times out;
  char unit[kLongestUnit + 1], same[kLongestUnit + 1];
  const int read =
      std::sscanf(std::string(words).c_str(), "took %lf %31[^ ,], %lf %31s before",
                  &out.took, unit, &out.before, same);
  if (read != 4 || std::string_view(unit) != same || !is_unit(unit)) return std::nullopt;
  if (!is_time(out.took) || !is_time(out.before)) return std::nullopt;
  out.unit = unit;
  return out;
}

// "plan NAME of DIGEST took A us, B us before"
void read_plan(std::string_view line, TunedPlans& out) {
  constexpr std::string_view kOf = " of ", kTook = " took ";
  const size_t of = line.find(kOf), took = line.find(kTook);
  if (of != line.npos && took != line.npos && of < took) {
    const auto choice = plan_choice_named(line.substr(kPlan.size(), of - kPlan.size()));
    const auto subject = digest_from_hex(
        std::string(line.substr(of + kOf.size(), took - of - kOf.size())));
    const auto times = times_of(line.substr(took + 1));
    if (choice && subject && times) {
      out[*subject] = {*choice, times->took, times->before, times->unit};
      return;
    }
  }
  throw std::string("'plan NAME of DIGEST took A us, B us before' was expected");
}

// Reads the lines between header and end; a fault is thrown as a sentence.
class Sections {
public:
  void read(const NumberedLine& line) {
    if (line.text.starts_with(kMachine)) {
      section_ = &machines[without_spaces_behind(line.text.substr(kMachine.size()))];
      times_.reset();
      inside_ = false;
      return;
    }
    if (section_ == nullptr) throw std::string("'machine' was expected");
    if (line.text.starts_with(kPlan)) {
      read_plan(line.text, section_->plans);
      inside_ = false;
      return;
    }
    if (line.text.starts_with("kernel ")) {
      times_ = times_of(line.text.substr(kKernel.find(' ') + 1));
      if (!times_) throw std::string("'kernel took A us, B us before' was expected");
      inside_ = false;
    } else if (line.text.starts_with(kSchedule)) {
      begin_schedule(line.text);
    } else if (!inside_) {
      throw std::string("'plan', 'kernel' or 'schedule' was expected");
    }
    section_->add(line);
  }

  std::map<std::string, Section> machines;

private:
  void begin_schedule(std::string_view line) {
    const auto digest =
        digest_from_hex(without_spaces_behind(line.substr(kSchedule.size())));
    if (!digest) throw std::string("the digest of a kernel was expected");
    if (!times_) throw std::string("'kernel' was expected");
    section_->times[*digest] = *times_;
    times_.reset();
    inside_ = true;
  }

  Section* section_ = nullptr;
  std::optional<Times> times_; // of the schedule that follows
  bool inside_ = false;        // a schedule
};

std::optional<Sections> sections_of(std::string_view text, TextFault& fault) {
  Sections sections;
  bool header = false, end = false;
  fault = {1, ""};
  try {
    for (const NumberedLine& line : lines_of(text)) {
      fault.line = line.number;
      if (end) throw std::string("nothing was expected after 'end'");
      const std::string words = without_spaces_behind(line.text);
      if (!header && words != kHeader)
        throw "'" + std::string(kHeader) + "' was expected";
      end = words == kEnd;
      if (header && !end) sections.read(line);
      header = true;
    }
    if (!end) throw std::string("the file is cut off: 'end' was expected behind it");
  } catch (const std::string& why) {
    fault.why = why;
    return std::nullopt;
  }
  return sections;
}

} // namespace

bool is_unit(std::string_view text) {
  return !text.empty() && text.size() <= kLongestUnit &&
         std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
         });
}

std::string machine_key(const Target& target, const Level& level) {
  std::string out = target.triple + " " + level.suffix + " " + level.machine.name;
  for (const std::string& flag : level.flags) out += " " + flag;
  return level.small ? out + " small" : out;
}

std::optional<TuningFile> parse_tuning_file(std::string_view text, TextFault& fault) {
  const std::optional<Sections> sections = sections_of(text, fault);
  if (!sections) return std::nullopt;
  TuningFile out;
  for (const auto& [machine, section] : sections->machines) {
    if (!section.plans.empty()) out.plans[machine] = section.plans;
    std::optional<ScheduleFile> read = parse_schedule_file(section.text, fault);
    if (!read) return std::nullopt;
    for (auto& [digest, schedule] : *read) {
      const Times& times = section.times.at(digest);
      out.machines[machine][digest] = {std::move(schedule), times.took, times.before,
                                       times.unit};
    }
  }
  return out;
}

static std::string times_text(double took, double before, const std::string& unit) {
  char out[160];
  std::snprintf(out, sizeof(out), "took %.3f %s, %.3f %s before\n", took, unit.c_str(),
                before, unit.c_str());
  return out;
}

static std::string print(const TunedPlans& plans) {
  std::string out;
  for (const auto& [subject, plan] : plans)
    out += std::string(kPlan) + name_of(plan.choice) + " of " + subject.hex() + " " +
           times_text(plan.took, plan.before, plan.unit);
  return out;
}

static std::string print(const TunedKernels& kernels) {
  std::string out;
  for (const auto& [digest, kernel] : kernels)
    out += "kernel " + times_text(kernel.took, kernel.before, kernel.unit) +
           std::string(kSchedule) + digest.hex() + "\n" + print(kernel.schedule);
  return out;
}

std::string print(const TuningFile& file) {
  std::map<std::string, std::string> sections; // by machine
  for (const auto& [machine, plans] : file.plans) sections[machine] += print(plans);
  for (const auto& [machine, kernels] : file.machines)
    sections[machine] += print(kernels);
  std::string out = std::string(kHeader) + "\n";
  for (const auto& [machine, text] : sections)
    out += std::string(kMachine) + machine + "\n" + text;
  return out + std::string(kEnd) + "\n";
}

void merge(TuningFile& into, const TuningFile& more) {
  for (const auto& [machine, kernels] : more.machines)
    for (const auto& [digest, kernel] : kernels)
      into.machines[machine].insert_or_assign(digest, kernel);
  for (const auto& [machine, plans] : more.plans)
    for (const auto& [subject, plan] : plans)
      into.plans[machine].insert_or_assign(subject, plan);
}

static std::string text_of(const TunedKernel& kernel) { return print(kernel.schedule); }
static std::string text_of(const TunedPlan& plan) { return name_of(plan.choice); }

// Times of two machines differ; what a choice takes of the time before can be compared.
template <class Tuned> static bool gains_more(const Tuned& a, const Tuned& b) {
  const double left = a.took * b.before, right = b.took * a.before;
  return left != right ? left < right : text_of(a) < text_of(b);
}

template <class Tuned>
static void keep_faster(std::map<Digest, Tuned>& into,
                        const std::map<Digest, Tuned>& more) {
  for (const auto& [digest, tuned] : more) {
    const auto [known, added] = into.emplace(digest, tuned);
    if (!added && gains_more(tuned, known->second)) known->second = tuned;
  }
}

void merge_faster(TuningFile& into, const TuningFile& more) {
  for (const auto& [machine, kernels] : more.machines)
    keep_faster(into.machines[machine], kernels);
  for (const auto& [machine, plans] : more.plans) keep_faster(into.plans[machine], plans);
}

PlanChoice plan_for(const TuningFile& file, const Target& target, const Digest& subject) {
  for (const Level& level : std::views::reverse(target.levels)) {
    const auto plans = file.plans.find(machine_key(target, level));
    if (plans == file.plans.end()) continue;
    if (const auto plan = plans->second.find(subject); plan != plans->second.end())
      return plan->second.choice;
  }
  return {};
}

ScheduleFile schedules_for(const TuningFile& file, const Target& target) {
  ScheduleFile out;
  for (const Level& level : std::views::reverse(target.levels)) {
    const auto kernels = file.machines.find(machine_key(target, level));
    if (kernels == file.machines.end()) continue;
    for (const auto& [digest, kernel] : kernels->second) {
      const auto [known, added] = out.emplace(digest, kernel.schedule);
      if (added || known->second.loops != kernel.schedule.loops) continue;
      std::vector<LevelSchedule>& levels = known->second.levels;
      levels.insert(levels.end(), kernel.schedule.levels.begin(),
                    kernel.schedule.levels.end());
    }
  }
  return out;
}

} // namespace svod::packager
