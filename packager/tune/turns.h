// How two programs take turns, so that what disturbs the machine disturbs both.
#pragma once

#include "packager/tune/profile.h"

#include <algorithm>

namespace svod::packager {

inline constexpr int kTurns = 4, kFinalTurns = 6;
// A gain below this share is none, however alike the runs are.
inline constexpr double kLeastGain = 0.02;
// Of one run of a program, in seconds.
inline constexpr double kLeastRun = 0.25, kMostRun = 3;

// What a run of a program takes that has such a profile: some inferences.
inline double seconds_of_run(const Profile& first) {
  constexpr double kInferences = 8;
  const double inferences = first.unit == "us" ? kInferences * first.total * 1e-6 : 0;
  return std::clamp(inferences, kLeastRun, kMostRun);
}

} // namespace svod::packager
