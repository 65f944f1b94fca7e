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
constexpr std::string_view kMachine = "machine ", kKernel = "kernel took ",
                           kSchedule = "schedule ";

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

  void add(const NumberedLine& line) {
    text += std::string(static_cast<size_t>(line.number - 1 - lines), '\n');
    text += std::string(line.text) + "\n";
    lines = line.number;
  }
};

std::string without_spaces_behind(std::string_view text) {
  return std::string(text.substr(0, text.find_last_not_of(" \r") + 1));
}

Times times_of(std::string_view line) {
  Times out;
  char unit[kLongestUnit + 1], same[kLongestUnit + 1];
  const int read =
      std::sscanf(std::string(line).c_str(), "kernel took %lf %31[^ ,], %lf %31s before",
                  &out.took, unit, &out.before, same);
  if (read != 4 || std::string_view(unit) != same || !is_unit(unit))
    throw std::string("'kernel took A us, B us before' was expected");
  out.unit = unit;
  return out;
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
    if (line.text.starts_with("kernel ")) {
      times_ = times_of(line.text);
      inside_ = false;
    } else if (line.text.starts_with(kSchedule)) {
      begin_schedule(line.text);
    } else if (!inside_) {
      throw std::string("'kernel' or 'schedule' was expected");
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

std::string print(const TuningFile& file) {
  std::string out = std::string(kHeader) + "\n";
  for (const auto& [machine, kernels] : file.machines) {
    out += std::string(kMachine) + machine + "\n";
    for (const auto& [digest, kernel] : kernels) {
      char times[160];
      const char* unit = kernel.unit.c_str();
      std::snprintf(times, sizeof(times), "%.3f %s, %.3f %s before\n", kernel.took, unit,
                    kernel.before, unit);
      out += std::string(kKernel) + times + std::string(kSchedule) + digest.hex() + "\n" +
             print(kernel.schedule);
    }
  }
  return out + std::string(kEnd) + "\n";
}

void merge(TuningFile& into, const TuningFile& more) {
  for (const auto& [machine, kernels] : more.machines)
    for (const auto& [digest, kernel] : kernels)
      into.machines[machine].insert_or_assign(digest, kernel);
}

// Times of two machines differ; what a schedule takes of the rules' time can be compared.
static bool gains_more(const TunedKernel& a, const TunedKernel& b) {
  const double left = a.took * b.before, right = b.took * a.before;
  return left != right ? left < right : print(a.schedule) < print(b.schedule);
}

void merge_faster(TuningFile& into, const TuningFile& more) {
  for (const auto& [machine, kernels] : more.machines)
    for (const auto& [digest, kernel] : kernels) {
      const auto [known, added] = into.machines[machine].emplace(digest, kernel);
      if (!added && gains_more(kernel, known->second)) known->second = kernel;
    }
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
