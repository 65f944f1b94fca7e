#include "runtime_stub/program/sharing.h"

namespace packed {

namespace {

// Hundredths of a run. The ends of regions leave a few; a worker that lost its core, or
// regions of a microsecond, far more.
constexpr uint64_t kLongWait = 15, kMoreThanUsual = 12;
constexpr uint32_t kLongWaits = 2; // the first is remembered

uint64_t median_of_three(const uint64_t* v) {
  const uint64_t low = v[0] < v[1] ? v[0] : v[1], high = v[0] < v[1] ? v[1] : v[0];
  return v[2] < low ? low : v[2] > high ? high : v[2];
}

} // namespace

// What waits for a busy core takes long now and then, which a median does not see; but
// one such run does not decide for long.
void Sharing::judge() {
  const uint64_t shared = median_of_three(samples_),
                 alone = median_of_three(samples_ + kSamples);
  shares_ = shared <= alone && shared_ <= kSamples * alone + alone / 4;
  const uint64_t best = shares_ ? shared : alone;
  const bool agree = shares_ == (shared <= alone);
  const uint64_t lost = !agree    ? 0
                        : shares_ ? kSamples * (alone - shared)
                                  : kSamples * (shared - alone);
  const uint64_t runs = best == 0 ? kMostRuns : kCostShare * lost / best;
  left_ = runs < kLeastRuns  ? kLeastRuns
          : runs > kMostRuns ? kMostRuns
                             : static_cast<uint32_t>(runs);
  usual_wait_ = shared_ == 0 ? 0 : static_cast<uint32_t>(100 * waited_ / shared_);
  waits_ = 0;
}

void Sharing::count_down(uint64_t ticks, uint64_t waited) {
  uint64_t most = usual_wait_ + kMoreThanUsual;
  if (most < kLongWait) most = kLongWait;
  waits_ = shares_ && 100 * waited > most * ticks ? waits_ + 1 : 0;
  if (waits_ == 1) before_ = ticks, waited_before_ = waited;
  if (--left_ != 0 && waits_ != kLongWaits) return;
  step_ = 0;
  waited_ = shared_ = 0;
  if (waits_ != kLongWaits) return;
  add_shared(0, before_, waited_before_);
  add_shared(1, ticks, waited);
  step_ = kShared + kLongWaits;
}

void Sharing::add_shared(uint32_t number, uint64_t ticks, uint64_t waited) {
  samples_[number] = ticks;
  shared_ += ticks;
  waited_ += waited;
}

void Sharing::took(uint64_t ticks, uint64_t waited) {
  if (step_ == kEnd) return count_down(ticks, waited);
  if (step_ >= kShared && step_ < kAlone) add_shared(step_ - kShared, ticks, waited);
  if (step_ >= kAlone) samples_[step_ - kShared] = ticks;
  step_++;
  if (step_ == kEnd) judge();
}

} // namespace packed
