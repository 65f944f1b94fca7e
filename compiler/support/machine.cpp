// Reads machine.def.
#include "compiler/support/machine.h"

#include "compiler/support/check.h"

#include <algorithm>
#include <vector>

namespace svod {

// Also a load that the core starts beside every product has an address and fills a
// register. Where products are calls of a library, nothing else keeps tiles small.
static constexpr double kLeastFmas = 0.5;

double Machine::in_fmas(double per_clock) const {
  return std::max(kLeastFmas, fmas_per_clock / per_clock);
}

static std::vector<Machine> all_machines() {
  return {
#define MACHINE(row, ...) {.name = row, __VA_ARGS__},
#include "compiler/support/machine.def"
  };
}

Machine find_machine(const std::string& name) {
  const std::vector<Machine> all = all_machines();
  auto row = std::ranges::find(all, name, &Machine::name);
  SVOD_CHECK(row != all.end()) << "machine.def: no row " << name;
  return *row;
}

} // namespace svod
