#include "compiler/optimize/io_gate.h"

#include "compiler/support/check.h"

#include <algorithm>

namespace svod::optimize {

IoBenefit io_benefit(const IoProfile& before, const IoProfile& after) {
  IoBenefit saved;
  saved.launches = before.launches - after.launches;
  saved.syncs = before.syncs - after.syncs;
  saved.host_bytes = before.host_bytes - after.host_bytes;
  for (size_t i = 0; i < kMemoryLevels; ++i)
    saved.traffic[i] = before.traffic[i].read + before.traffic[i].written -
                       after.traffic[i].read - after.traffic[i].written;
  saved.operations = before.operations - after.operations;
  return saved;
}

IoGate io_gate(const Machine& m) {
  SVOD_CHECK(m.shared_memory || m.host_bytes_per_ns > 0)
      << m.name << " copies from its host at no rate";
  IoGate gate;
  gate.launch_ns = m.launch_ns;
  gate.sync_ns = m.sync_ns;
  gate.added_sync_ns = m.added_sync_ns;
  gate.shared_memory = m.shared_memory;
  gate.host_bytes_per_ns = m.host_bytes_per_ns;
  for (size_t i = 0; i < kMemoryLevels; ++i)
    gate.bytes_per_ns[i] = bytes_per_ns(m, static_cast<MemoryLevel>(i));
  // A multiply-add, which the peak counts as two, is one here.
  gate.operations_per_ns = m.flops_per_clock * m.clock_ghz / 2;
  gate.least_gain_ns = m.least_fusion_ns;
  return gate;
}

double IoGate::score_ns(const IoBenefit& saved) const {
  double ns = double(saved.launches) * launch_ns + double(saved.syncs) * sync_ns;
  ns -= double(std::max<int64_t>(-saved.syncs, 0)) * added_sync_ns;
  if (!shared_memory) ns += double(saved.host_bytes) / host_bytes_per_ns;
  for (size_t i = 0; i < kMemoryLevels; ++i)
    ns += double(saved.traffic[i]) / bytes_per_ns[i];
  return ns + saved.operations / operations_per_ns;
}

} // namespace svod::optimize
