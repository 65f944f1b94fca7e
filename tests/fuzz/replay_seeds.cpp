// Runs every target on its committed seeds, and on each with some damage: what the quick
// tests have of fuzzing.
//   replay_seeds FOLDER
#include "tests/fuzz/target.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

namespace {

using namespace svod::fuzz;

struct Target {
  const char* name;
  size_t bytes;
  void (*run)(Bytes);
};

// Those that need libraries of the system are in builds for libFuzzer alone.
#define SVOD_FUZZ_ROW(name, bytes) {#name, bytes, fuzz_##name},
#define SVOD_FUZZ_files SVOD_FUZZ_ROW
#define SVOD_FUZZ_models SVOD_FUZZ_ROW
#define SVOD_FUZZ_peers(...)
constexpr Target kTargets[] = {
#define FUZZ_TARGET(part, name, bytes, share, reads) SVOD_FUZZ_##part(name, bytes)
#include "tests/fuzz/targets.def"
};

std::vector<uint8_t> bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// In memory of its own size.
void run(const Target& target, const std::vector<uint8_t>& bytes) {
  const std::vector<uint8_t> exact(bytes.begin(), bytes.end());
  target.run(exact);
}

// Cut at some places, and with a byte changed at others.
int damage(const Target& target, const std::vector<uint8_t>& seed) {
  constexpr size_t kPlaces = 16;
  int cases = 0;
  for (size_t i = 0; i < kPlaces && !seed.empty(); ++i) {
    const size_t at = i * seed.size() / kPlaces;
    run(target, {seed.begin(), seed.begin() + static_cast<std::ptrdiff_t>(at)});
    std::vector<uint8_t> changed = seed;
    changed[at] ^= static_cast<uint8_t>(1u << i % 8);
    run(target, changed);
    cases += 2;
  }
  return cases;
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  int without = 0;
  for (const Target& target : kTargets) {
    std::vector<std::filesystem::path> paths;
    const auto folder = std::filesystem::path(argv[1]) / target.name;
    if (std::filesystem::is_directory(folder))
      for (const auto& entry : std::filesystem::directory_iterator(folder))
        paths.push_back(entry.path());
    std::ranges::sort(paths);
    int cases = 0;
    for (const auto& path : paths) {
      // The last line of the output names the case at fault.
      std::printf("%s %s:", target.name, path.filename().c_str());
      std::fflush(stdout);
      const std::vector<uint8_t> seed = bytes_of(path);
      run(target, seed);
      const int here = 1 + damage(target, seed);
      std::printf(" %d cases\n", here);
      cases += here;
    }
    std::printf("%-12s %3zu seeds, %5d cases\n", target.name, paths.size(), cases);
    if (paths.empty()) ++without;
  }
  if (without != 0) std::printf("NOT TRUE: every target has seeds\n");
  return without == 0 ? 0 : 1;
}
