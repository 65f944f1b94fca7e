// Predicts what kernels cost, from texts that --emit=schedule printed, for
// bench/cost_pairs.py:
//
//   kernel_costs FILE=BYTES ...     BYTES: what a run of the file's program touches
//
// Each line on standard input sets columns of the machine, "latency=5 window=256", or
// none; for each one object a line comes out: microseconds by kernel and level, in the
// order of files, kernels and levels. With "parts" among the words, what they are made
// of. "target=aarch64", the first word, takes that target instead of x86-64, and
// "machine=cortex-a76" before columns a row of the machine table for all its levels.
#include "compiler/kernel/schedule_file.h"
#include "compiler/optimize/cost/cost.h"

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>

namespace {

using svod::Machine;

constexpr std::pair<const char*, double Machine::*> kColumns[] = {
    {"operations_per_clock", &Machine::operations_per_clock},
    {"quotients_per_clock", &Machine::quotients_per_clock},
    {"instructions_per_clock", &Machine::instructions_per_clock},
    {"stored_per_clock", &Machine::stored_per_clock},
    {"stores_per_clock", &Machine::stores_per_clock},
    {"narrow_at_once", &Machine::narrow_at_once},
    {"broadcasts_per_clock", &Machine::broadcasts_per_clock},
    {"latency", &Machine::latency},
    {"window", &Machine::window},
    {"ports_seen", &Machine::ports_seen},
    {"streams_seen", &Machine::streams_seen},
    {"caches_seen", &Machine::caches_seen},
    {"unfetched_seen", &Machine::unfetched_seen},
    {"spill_clocks", &Machine::spill_clocks},
    {"jumps_seen", &Machine::jumps_seen},
    {"nest_clocks", &Machine::nest_clocks},
    {"memory_seen", &Machine::memory_seen},
    {"memory_bytes_per_ns", &Machine::memory_bytes_per_ns},
    {"launch_ns", &Machine::launch_ns}};

struct Row {
  std::string file, kernel;
  svod::ScheduledKernel what;
  double run_bytes = 0;
};

// Headings stand on lines of their own; what follows up to the next is their text.
std::vector<std::pair<std::string, std::string>> sections_of(const std::string& path) {
  std::ifstream in(path);
  std::vector<std::pair<std::string, std::string>> out;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("kernel ") || line.starts_with("schedule "))
      out.emplace_back(line, "");
    else if (!out.empty())
      out.back().second += line + "\n";
  }
  return out;
}

// The rows of a file; joined kernels, whose parts have schedules of their own, are left
// out.
std::vector<Row> read(const std::string& path, double run_bytes) {
  std::vector<Row> out;
  svod::TextFault fault;
  const auto sections = sections_of(path);
  for (size_t i = 0; i + 1 < sections.size(); ++i) {
    const auto& [head, text] = sections[i];
    if (!head.starts_with("kernel ") || text.find("\n  part ") != std::string::npos)
      continue;
    const auto kernel = svod::parse_kernel(text, fault);
    const auto schedule = svod::parse_schedule(sections[i + 1].second, fault);
    if (!kernel || !schedule) {
      std::cerr << path << ": " << head << ", line " << fault.line << ": " << fault.why
                << "\n";
      std::exit(1);
    }
    if (kernel->call() || kernel->sequence()) continue;
    Row row{path, head.substr(7), {}, run_bytes};
    static_cast<svod::Kernel&>(row.what) = *kernel;
    static_cast<svod::KernelSchedule&>(row.what) = *schedule;
    // The text names stages that have loops; all have a list of them.
    row.what.loops.inner.resize(row.what.stages.size());
    out.push_back(std::move(row));
  }
  return out;
}

bool set_column(Machine& machine, const std::string& word) {
  const size_t at = word.find('=');
  const auto column = std::ranges::find(
      kColumns, word.substr(0, at), [](const auto& c) { return std::string(c.first); });
  if (at == std::string::npos || column == std::end(kColumns)) return false;
  machine.*column->second = std::stod(word.substr(at + 1));
  return true;
}

} // namespace

int main(int argc, char** argv) {
  std::vector<Row> rows;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const size_t at = word.rfind('=');
    for (Row& row : read(word.substr(0, at), std::stod(word.substr(at + 1))))
      rows.push_back(std::move(row));
  }
  for (std::string line; std::getline(std::cin, line);) {
    svod::Target target = *svod::find_target("x86-64");
    bool parts = false;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      if (word.starts_with("target=")) {
        target = *svod::find_target(word.substr(7));
        continue;
      }
      if (word.starts_with("machine=")) {
        for (svod::Level& level : target.levels)
          level.machine = svod::find_machine(word.substr(8));
        continue;
      }
      parts |= word == "parts";
      for (svod::Level& level : target.levels)
        if (word != "parts" && !set_column(level.machine, word)) {
          std::cerr << "no column: " << word << "\n";
          return 2;
        }
    }
    for (const Row& row : rows)
      for (const svod::LevelSchedule& how : row.what.levels) {
        const auto level =
            std::ranges::find(target.levels, how.level, &svod::Level::suffix);
        if (level == target.levels.end()) continue;
        const svod::cost::KernelCost cost =
            svod::cost::cost_of(row.what, how, *level, {.run_bytes = row.run_bytes});
        std::cout << row.file << " " << row.kernel << " " << how.level << " "
                  << cost.total * 1e6;
        if (parts) std::cout << " " << print(cost);
        std::cout << "\n";
      }
    std::cout << "end" << std::endl;
  }
  return 0;
}
