#include "packager/report/explain.h"

#include "compiler/toolchain/compile.h"
#include "packager/command/words.h"

#include <iomanip>
#include <sstream>

namespace svod::packager {

std::vector<std::string> choices_of(const Options& options) {
  const Target& target = options.target;
  std::vector<std::string> out{
      "target " + target.alias + ": " + target.triple + ", " +
      std::to_string(target.levels.size()) +
      (target.levels.size() == 1 ? " CPU level" : " CPU levels")};
  for (const Level& level : target.levels) {
    std::string flags;
    for (const std::string& flag : toolchain::Compiler::flags(target, level, {}))
      flags += " " + flag;
    out.push_back("level " + level.name + ": clang" + flags);
  }
  std::string linker = "linker: ld.lld";
  for (const std::string& flag : target.linker_flags) linker += " " + flag;
  out.push_back(linker);
  const int threads = options.threads >= 0 ? options.threads : target.default_threads;
  out.push_back("threads: " + (threads == 0 ? "those of the machine that runs it"
                                            : "at most " + std::to_string(threads)));
  out.push_back(
      "accuracy: " + std::string(word_of(kAccuracies, options.accuracy)) +
      ", optimization: " +
      (options.target.is_small() ? "for size" : "-O" + std::to_string(options.level)));
  out.push_back("cache: " +
                (options.cache_folder.empty() ? "none" : options.cache_folder));
  return out;
}

std::vector<std::string> fixed_point_lines(const rewrite::FixedPointReport& report) {
  std::vector<std::string> out{"quantisations: " + std::to_string(report.quantisations) +
                               " in integers, " + std::to_string(report.in_floats) +
                               " in floats"};
  for (const std::string& node : report.one_step)
    out.push_back("quantisation of " + node +
                  ": a value in the middle of two steps may fall on the other one; "
                  "--accuracy exact keeps its floats");
  return out;
}

std::string pass_line(std::string_view name, const PassRun& run) {
  std::ostringstream line;
  line << "pass " << name << ": " << run.runs << (run.runs == 1 ? " run, " : " runs, ")
       << std::fixed << std::setprecision(1) << run.ms << " ms";
  if (run.end)
    line << ", ended after " << run.end->rounds << " rounds and " << run.end->steps
         << " changes: " << reason_text(run.end->reason);
  return line.str();
}

} // namespace svod::packager
