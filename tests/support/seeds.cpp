#include "tests/support/seeds.h"
#include "tests/support/sweep.h"

#include <algorithm>
#include <cstdlib>

namespace svod::test {

static uint64_t number_of(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}

Seeds part_of(Seeds all) {
  const uint64_t parts = number_of("SVOD_SEED_PARTS", 1);
  if (parts < 2) return all;
  const uint64_t part = number_of("SVOD_SEED_PART", 0) % parts;
  const uint64_t count = all.last - all.first + 1;
  // The last part of fewer seeds than parts would be empty: it has the last seed.
  const uint64_t begin = all.first + count * part / parts,
                 end = all.first + count * (part + 1) / parts;
  return {begin, end > begin ? end - 1 : begin};
}

uint64_t swept(uint64_t all, uint64_t quick) {
  return number_of("SVOD_SWEEP", 0) != 0 ? all : std::min(all, quick);
}

Seeds swept(Seeds all, uint64_t quick) {
  return {all.first, all.first + swept(all.last - all.first + 1, quick) - 1};
}

} // namespace svod::test
