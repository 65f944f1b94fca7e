// Whether the next run is shared between threads. That pays where there is enough work
// between two meetings of the threads and all of them have a core; a second thread whose
// core is busy elsewhere costs more than it does. Neither is known when packing, so a
// trial asks: a few runs shared, a few alone, and the medians decide until the next one.
//
// Runs that lose a trial cost time, so the next one waits until they are no more than a
// hundredth of it; the first one waits for runs enough to be worth it. Where the caller
// waits for others during much of two runs it does not wait for that, and these are two
// of its shared runs: a large model has few runs in the time that somebody looks at.
#ifndef SVOD_PROGRAM_SHARING_H
#define SVOD_PROGRAM_SHARING_H

#include "runtime_stub/types.h"

namespace packed {

class Sharing {
public:
  bool shares() const { return step_ < kAlone ? true : step_ < kEnd ? false : shares_; }
  // After each run: the ticks that it took, and those of them that the caller waited.
  void took(uint64_t ticks, uint64_t waited);

private:
  static constexpr uint32_t kSamples = 3;
  // Steps of a trial. The workers may sleep when it begins, so the first run, which wakes
  // them, does not count.
  static constexpr uint32_t kShared = 1, kAlone = kShared + kSamples,
                            kEnd = kAlone + kSamples;
  static constexpr uint32_t kRunsBefore = 24, kLeastRuns = 32, kMostRuns = 1 << 20;
  static constexpr uint32_t kCostShare = 100;

  void judge();
  void count_down(uint64_t ticks, uint64_t waited);
  void add_shared(uint32_t number, uint64_t ticks, uint64_t waited);

  uint64_t samples_[2 * kSamples] = {}; // shared, alone
  uint64_t waited_ = 0, shared_ = 0;    // of the trial's shared runs
  uint32_t step_ = kEnd;
  uint32_t left_ = kRunsBefore; // runs until the next trial
  uint32_t waits_ = 0;          // runs in a row in which the caller waited for long
  uint64_t before_ = 0, waited_before_ = 0; // ticks of the first of them
  uint32_t usual_wait_ = 0; // hundredths of a run, where sharing won in spite of it
  bool shares_ = true;
};

} // namespace packed

#endif
