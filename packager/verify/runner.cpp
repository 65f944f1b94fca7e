// QEMU's user mode runs a static program of another processor as a process of this
// system. Debian has it in two packages whose programs differ in the end of their names.
#include "packager/verify/runner.h"

#include "packager/verify/verify.h"

#include <cstdlib>
#include <sstream>

#include <unistd.h>

namespace svod::packager {

namespace {

// The CPU has all that a level may ask for; programs take the best level it has.
struct EmulatorRow {
  const char* triple; // what it begins with
  const char* program;
  std::vector<std::string> words;
};
const std::vector<EmulatorRow>& emulators() {
  static const std::vector<EmulatorRow> kRows = {
      {"x86_64", "qemu-x86_64", {"-cpu", "max"}},
      {"i686", "qemu-i386", {"-cpu", "max"}},
      {"aarch64", "qemu-aarch64", {"-cpu", "max"}},
      {"armv7", "qemu-arm", {"-cpu", "max"}},
      {"riscv64", "qemu-riscv64", {"-cpu", "rv64,v=true,vext_spec=v1.0"}},
  };
  return kRows;
}

} // namespace

std::string find_on_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string file = folder + "/" + name;
    if (!folder.empty() && access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

std::vector<std::string> runner_words(const std::string& command) {
  std::istringstream text(command);
  std::vector<std::string> words;
  for (std::string word; text >> word;) words.push_back(word);
  if (!words.empty() && words[0].find('/') == std::string::npos)
    if (const std::string found = find_on_path(words[0]); !found.empty())
      words[0] = found;
  return words;
}

std::optional<std::vector<std::string>> find_runner(const Options& options) {
  if (!options.runner.empty()) return runner_words(options.runner);
  if (runs_here(options.target)) return std::vector<std::string>{};
  if (options.target.kind != TargetKind::Linux) return std::nullopt;
  for (const EmulatorRow& row : emulators()) {
    if (!options.target.triple.starts_with(row.triple)) continue;
    for (const char* end : {"", "-static"}) {
      const std::string found = find_on_path(std::string(row.program) + end);
      if (found.empty()) continue;
      std::vector<std::string> words{found};
      words.insert(words.end(), row.words.begin(), row.words.end());
      return words;
    }
  }
  return std::nullopt;
}

} // namespace svod::packager
