// The file of --tuning: schedules that were faster than those chosen by rule, by machine
// and by the digest of the kernel that they are for, and plans of whole models.
//
//   svod-pack tuning 1
//   machine x86_64-linux-gnu v4 skylake -march=x86-64-v4
//   plan rules of 07d1... took 312.000 us, 330.500 us before
//   kernel took 12.340 us, 14.020 us before
//   schedule 5f3c...           as in a file of --schedule
//     loops
//       ...
//   end
//
// Files grow by merging, so that one serves several models and machines.
#pragma once

#include "compiler/kernel/schedule_file.h"
#include "compiler/support/target.h"
#include "packager/tune/plan_choice.h"

namespace svod::packager {

struct TunedKernel {
  KernelSchedule schedule; // with one level
  double took = 0;         // in `unit`, of all its launches
  double before = 0;       // under the schedule that it replaced
  std::string unit = "us"; // or what the runner counts; a word
};
using TunedKernels = std::map<Digest, TunedKernel>;

// Whether a file can hold it.
bool is_unit(std::string_view text);

struct TunedPlan {
  PlanChoice choice;
  double took = 0, before = 0; // in `unit`, of a run
  std::string unit = "us";
};
using TunedPlans = std::map<Digest, TunedPlan>; // by what is planned (Front::subject)

struct TuningFile {
  std::map<std::string, TunedKernels> machines; // by machine_key
  std::map<std::string, TunedPlans> plans;      // likewise
};

// What a schedule was measured for: the level of a target, the row of the machine table
// that it is scheduled by, and the flags it is compiled with.
std::string machine_key(const Target& target, const Level& level);

// Nothing when the text is damaged or cut off; `fault` names the line.
std::optional<TuningFile> parse_tuning_file(std::string_view text, TextFault& fault);
std::string print(const TuningFile& file);

// Entries of `more` take the place of those of the same kernel and machine; all others
// stay.
void merge(TuningFile& into, const TuningFile& more);
// Of two entries of the same kernel and machine that which has gained the larger share
// stays, whatever the order in which files are merged.
void merge_faster(TuningFile& into, const TuningFile& more);

// What the file has for the levels of a target. All levels share a kernel's loops: those
// of the strongest one that it has them for, and only levels that were tuned with these.
ScheduleFile schedules_for(const TuningFile& file, const Target& target);
// The plan that it has for the strongest of them.
PlanChoice plan_for(const TuningFile& file, const Target& target, const Digest& subject);

} // namespace svod::packager
