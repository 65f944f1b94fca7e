// How a kernel runs on one level and which of the schedules that were priced lost, for
// --explain and --json.
#pragma once

#include "compiler/search_schedules.h"
#include "packager/tune/tuning_file.h"

namespace svod::packager {

struct LostSchedule {
  double seconds = 0;               // predicted
  bool rules = false;               // the rules' one
  std::vector<std::string> differs; // its lines that what runs has not, "no ..." else
};

// Predictions are of one launch, on one thread, as the search compares them.
struct ScheduleAccount {
  enum class By : uint8_t { Rules, Search, Tuning, Given } by = By::Rules;
  std::optional<size_t> part; // of a sequence
  double seconds = 0;         // predicted, of what runs
  // What the tuning file says of it: of all launches of the programs that have it.
  const TunedKernel* tuned = nullptr;
  std::vector<LostSchedule> lost; // the cheapest first
};
std::string_view chooser_name(ScheduleAccount::By by);

class ScheduleAccounts {
public:
  ScheduleAccounts(const plan::Plan& plan, const Target& target,
                   const ScheduleSearch& search, const TuningFile& tuning)
      : plan_(plan), target_(target), search_(search), tuning_(tuning) {}

  // Of a program, or of each of its parts, by the level's number in the target.
  std::vector<ScheduleAccount> of(uint32_t program, size_t level) const;

private:
  ScheduleAccount of(const ScheduledKernel& kernel, bool joined, size_t level) const;
  bool was_changed(const Digest& kernel, const Level& level) const;

  const plan::Plan& plan_;
  const Target& target_;
  const ScheduleSearch& search_;
  const TuningFile& tuning_;
};

} // namespace svod::packager
