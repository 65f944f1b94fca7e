// Whether a fusion is worth it by what it saves in launches, waits, copies and traffic.
// After the gate of RLX (fusion_benefit), with three things put right: where host and
// device share their memory a copy costs nothing, traffic costs what the memory that it
// comes from costs, and what a fusion computes again counts against it.
#pragma once

#include "compiler/kernel/io_profile.h"

namespace svod::optimize {

// What a fusion saves: before less after. Below zero: it adds.
struct IoBenefit {
  int64_t launches = 0, syncs = 0, host_bytes = 0;
  std::array<int64_t, kMemoryLevels> traffic{}; // bytes read and written, by MemoryLevel
  double operations = 0;
};
IoBenefit io_benefit(const IoProfile& before, const IoProfile& after);

// What each of these costs on one machine: columns of its row.
struct IoGate {
  double launch_ns = 0, sync_ns = 0;
  double added_sync_ns = 0; // beside sync_ns, of each sync that is added
  bool shared_memory = true;
  double host_bytes_per_ns = 0;                     // where memory is not shared
  std::array<double, kMemoryLevels> bytes_per_ns{}; // by MemoryLevel
  double operations_per_ns = 0;
  double least_gain_ns = 0;

  // What the benefit is worth.
  double score_ns(const IoBenefit& benefit) const;
  double gain_ns(const IoProfile& before, const IoProfile& after) const {
    return score_ns(io_benefit(before, after));
  }
  bool should_fuse(const IoProfile& before, const IoProfile& after) const {
    return gain_ns(before, after) >= least_gain_ns;
  }
};
IoGate io_gate(const Machine& machine);

} // namespace svod::optimize
