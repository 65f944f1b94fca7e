// --tune: which plan of the whole model is faster, before kernels are.
#pragma once

#include "packager/tune/profile.h"
#include "packager/tune/tuning_file.h"

#include <functional>

namespace svod::packager {

struct PlanMeans {
  // Writes a program of the plan to the path; false: it does not compile, or has the
  // kernels of one that is known.
  std::function<bool(const PlanChoice&, const std::string& path)> build;
  // Of a run of at least so many seconds; nothing when it failed or took too long.
  std::function<std::optional<Profile>(const std::string& path, double seconds)> run;
  std::function<bool()> interrupted; // ends all of it: what was not checked is not found
  std::function<bool()> goes_on;     // whether there is time for another plan
  std::function<void(const std::string&)> tell;
};

struct FoundPlan {
  TunedPlan plan; // the faster one
  std::string level;
};

// `now` is the choice that is to be beaten, `folder` where programs are written. Nothing
// where no other plan is faster. Plans take turns with that one; the fastest does so once
// more in runs that did not choose it, and these decide.
std::optional<FoundPlan> tune_plan(const PlanMeans& means, const PlanChoice& now,
                                   const std::string& folder);

} // namespace svod::packager
