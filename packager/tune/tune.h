// --tune: which of a kernel's schedules are faster inside the model's own run.
#pragma once

#include "packager/tune/trials.h"
#include "packager/tune/tuning_file.h"

#include <chrono>
#include <functional>

namespace svod::packager {

// What measuring needs of a pack.
struct TuneMeans {
  using Clock = std::chrono::steady_clock;
  // Compiles the model with these schedules in place of those chosen and writes a program
  // to the path; false: it does not compile.
  std::function<bool(const TuningFile&, const std::string& path)> build;
  // Of a run of at least so many seconds; nothing when it failed or took too long.
  std::function<std::optional<Profile>(const std::string& path, double seconds)> run;
  std::function<bool()> interrupted;
  std::function<void(const std::string&)> tell; // how far it is
  Clock::time_point end;                        // of the time for all of it
};

struct TuneResult {
  std::string fault;    // nothing could be measured
  bool compiles = true; // with `fault`: what failed are runs
  TuningFile found;     // schedules that were faster, for one machine
  std::string level, unit;
  double before = 0, after = 0; // of a run; 0: not measured as a whole
  size_t rounds = 0, tried = 0;
  size_t faster = 0; // kernels, each by itself; `found` has those that are taken
  bool interrupted = false;
};

// `plan` is what a build without schedules has, `target` what it is for. Of its kernels
// those of the shard are tuned. Programs are written into `folder`.
TuneResult tune(const TuneMeans& means, const plan::Plan& plan, const Target& target,
                int threads, Shard shard, const std::string& folder);

} // namespace svod::packager
