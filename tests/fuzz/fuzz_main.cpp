// One program for all targets of a part, for libFuzzer:
//
//   fuzz_files npy [OPTIONS OF LIBFUZZER] [FOLDERS AND CASES]
//   fuzz_files                              lists them
//
// libFuzzer runs itself again to make a case smaller, without the name: it is in the
// environment then.
#include "tests/fuzz/target.h"

#include <cstring>

namespace {

using namespace svod::fuzz;

struct Target {
  const char* name;
  const char* reads;
  unsigned bytes, share;
  void (*run)(Bytes);
};

// Rows of this program's part are targets here.
#define SVOD_FUZZ_ROW(name, bytes, share, reads)                                         \
  {#name, reads, bytes, share, fuzz_##name},
#ifdef SVOD_FUZZ_PART_files
#define SVOD_FUZZ_files SVOD_FUZZ_ROW
#else
#define SVOD_FUZZ_files(...)
#endif
#ifdef SVOD_FUZZ_PART_models
#define SVOD_FUZZ_models SVOD_FUZZ_ROW
#else
#define SVOD_FUZZ_models(...)
#endif
#ifdef SVOD_FUZZ_PART_peers
#define SVOD_FUZZ_peers SVOD_FUZZ_ROW
#else
#define SVOD_FUZZ_peers(...)
#endif
constexpr Target kTargets[] = {
#define FUZZ_TARGET(part, name, bytes, share, reads)                                     \
  SVOD_FUZZ_##part(name, bytes, share, reads)
#include "tests/fuzz/targets.def"
};

constexpr const char* kVariable = "SVOD_FUZZ_TARGET";
const Target* chosen = nullptr;

const Target* find(const char* name) {
  for (const Target& target : kTargets)
    if (name != nullptr && std::strcmp(target.name, name) == 0) return &target;
  return nullptr;
}

} // namespace

// Names are libFuzzer's.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  char** words = *argv;
  chosen = *argc > 1 ? find(words[1]) : nullptr;
  if (chosen != nullptr) {
    for (int i = 1; i < *argc; ++i) words[i] = words[i + 1];
    --*argc;
    setenv(kVariable, chosen->name, 1);
    return 0;
  }
  chosen = find(std::getenv(kVariable));
  if (chosen != nullptr && *argc > 1) return 0;
  for (const Target& target : kTargets)
    std::printf("%s %u %u %s\n", target.name, target.bytes, target.share, target.reads);
  std::exit(*argc > 1 ? 2 : 0);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  chosen->run({data, size});
  return 0;
}
// NOLINTEND(readability-identifier-naming)
