#include "compiler/kernel/io_profile.h"

#include "compiler/kernel/stage_work.h"

#include <algorithm>

namespace svod {

std::string_view text_of(MemoryLevel level) {
  constexpr std::string_view kTexts[] = {"first cache", "second cache", "last cache",
                                         "memory"};
  return kTexts[static_cast<size_t>(level)];
}

MemoryLevel level_of(const Machine& m, int64_t bytes) {
  if (bytes <= m.first.bytes) return MemoryLevel::First;
  if (bytes <= m.second.bytes) return MemoryLevel::Second;
  return bytes <= m.far_bytes() ? MemoryLevel::Last : MemoryLevel::Memory;
}

double bytes_per_ns(const Machine& m, MemoryLevel level) {
  switch (level) {
  case MemoryLevel::First:
    return m.first.bytes_per_clock * m.clock_ghz;
  case MemoryLevel::Second:
    return m.second.bytes_per_clock * m.clock_ghz;
  case MemoryLevel::Last:
    return m.last.bytes_per_clock * m.clock_ghz;
  case MemoryLevel::Memory:
    break;
  }
  return m.memory_bytes_per_ns;
}

IoProfile::Traffic IoProfile::all() const {
  Traffic sum;
  for (const Traffic& t : traffic) sum.read += t.read, sum.written += t.written;
  return sum;
}

IoProfile& IoProfile::operator+=(const IoProfile& other) {
  launches += other.launches;
  syncs += other.syncs;
  host_bytes += other.host_bytes;
  for (size_t i = 0; i < kMemoryLevels; ++i) {
    traffic[i].read += other.traffic[i].read;
    traffic[i].written += other.traffic[i].written;
  }
  operations += other.operations;
  return *this;
}

MemoryLevel ReuseDistances::touch(uint64_t tensor, int64_t bytes) {
  int64_t since = bytes;
  auto found = touched_.rbegin();
  for (; found != touched_.rend() && found->tensor != tensor; ++found)
    since += found->bytes;
  const bool first = found == touched_.rend();
  if (!first) touched_.erase(std::next(found).base());
  touched_.push_back({tensor, bytes});
  return first ? MemoryLevel::Memory : level_of(machine_, since);
}

int64_t touched_bytes(const ScheduledKernel& k, uint32_t argument, int64_t whole) {
  if (k.stages.empty()) return whole;
  const int64_t size = byte_size(k.arguments[argument].dtype);
  double bytes = 0;
  auto add = [&](const Index& index) {
    // What is picked by numbers in memory: as much as there are numbers.
    const std::vector<bool> axes = axes_below(k, index);
    double positions = 1;
    for (AxisId axis = 0; axis < axes.size(); ++axis)
      if (axes[axis]) positions *= double(k.indices.extent(axis));
    bytes += positions * double(size);
  };
  for (const Expr& e : k.exprs) {
    if (e.kind == Expr::Kind::Load && e.argument == argument) add(e.index);
    const bool walks = e.kind == Expr::Kind::Descend;
    if (walks && (e.argument == argument || e.table == argument)) return whole;
  }
  for (const Stage& s : k.stages)
    if ((s.kind != StageKind::Reduce || s.keeps) && s.argument == argument) add(s.index);
  return bytes < double(whole) ? static_cast<int64_t>(bytes) : whole;
}

} // namespace svod
