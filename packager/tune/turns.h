// How two programs take turns, so that what disturbs the machine disturbs both.
#pragma once

#include "packager/tune/profile.h"

#include <algorithm>
#include <functional>

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

// Of a program that is there and another one.
struct Turns {
  LeastTimes now, other;
  int whole = 0; // of which both have run
};

// `run` runs the program at a path, `level` is the one that both are to run on. Fewer
// turns where `stops` says so between two runs; nothing where a run failed.
std::optional<Turns>
take_turns(int turns, const std::string& now, const std::string& other,
           const std::string& level,
           const std::function<std::optional<Profile>(const std::string&)>& run,
           const std::function<bool()>& stops);

} // namespace svod::packager
