// Reads machine.def.
#include "compiler/support/machine.h"

#include "compiler/support/check.h"

#include <algorithm>
#include <optional>
#include <utility>
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

static std::optional<Machine> row_of(std::string_view name) {
  const std::vector<Machine> all = all_machines();
  auto row = std::ranges::find(all, name, &Machine::name);
  return row == all.end() ? std::nullopt : std::optional(*row);
}

Machine find_machine(const std::string& name) {
  const std::optional<Machine> row = row_of(name);
  SVOD_CHECK(row) << "machine.def: no row " << name;
  return *row;
}

std::optional<Machine> machine_of_cpu(std::string_view cpu) {
  static constexpr std::pair<std::string_view, std::string_view> kCpus[] = {
#define CPU(name, machine) {name, machine},
#include "compiler/support/machine.def"
  };
  const auto named = std::ranges::find(kCpus, cpu, [](auto& c) { return c.first; });
  return row_of(named == std::end(kCpus) ? cpu : named->second);
}

} // namespace svod
