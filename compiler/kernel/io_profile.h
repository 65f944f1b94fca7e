// What a run, or a kernel, moves: launches, waits of a host, bytes to and from it, and
// the bytes that kernels read and write, by the memory that they come from or go to.
#pragma once

#include "compiler/kernel/schedule.h"
#include "compiler/support/machine.h"

#include <array>
#include <map>

namespace svod {

enum class MemoryLevel : uint8_t { First, Second, Last, Memory };
inline constexpr size_t kMemoryLevels = 4;
// "second cache"
std::string_view text_of(MemoryLevel level);
// The nearest one that holds so many bytes.
MemoryLevel level_of(const Machine& machine, int64_t bytes);
double bytes_per_ns(const Machine& machine, MemoryLevel level); // of one core

struct IoProfile {
  struct Traffic { // bytes
    int64_t read = 0, written = 0;
    bool operator==(const Traffic&) const = default;
  };

  int64_t launches = 0;
  int64_t syncs = 0;      // the host waits for the device, or the device for the host
  int64_t host_bytes = 0; // from one's memory to the other's
  std::array<Traffic, kMemoryLevels> traffic{}; // by MemoryLevel
  double operations = 0; // of scalars, as often as they are computed

  Traffic& at(MemoryLevel level) { return traffic[static_cast<size_t>(level)]; }
  Traffic all() const;
  IoProfile& operator+=(const IoProfile& other);
  bool operator==(const IoProfile&) const = default;
};

// Where tensors are found when they are read: in the nearest memory that holds all that
// was touched since they were touched last. A run follows another one, so the accesses of
// one run are told twice, and those of the second time count.
class ReuseDistances {
public:
  explicit ReuseDistances(const Machine& machine) : machine_(machine) {}
  MemoryLevel touch(uint64_t tensor, int64_t bytes);

private:
  struct Touched {
    uint64_t tensor = 0;
    int64_t bytes = 0;
  };
  const Machine& machine_;
  std::vector<Touched> touched_; // the last one at the end
};

// Bytes of an argument, of `whole` in all, that the kernel reads or writes: a part, where
// it is a slice or writes its share of a join.
int64_t touched_bytes(const ScheduledKernel& kernel, uint32_t argument, int64_t whole);

} // namespace svod
