// A schedule is timed where it will run, with cold weights and the kernels next to it:
// each round packs one program that holds another schedule of every kernel, and this
// program and the rules' take turns, so that what disturbs the machine disturbs both. Of
// each kernel the least time counts. Two programs are on the disk at a time, and what a
// round has found stays found whenever measuring ends.
//
// When all that seemed promising is tried and time is left, the neighbours of what was
// faster are next.
//
// The best of many trials looks better than it is: luck had a part in its time. And gains
// of kernels need not add up: code and caches are shared. So the program of all winners
// takes turns with the rules' one in fresh runs, and these decide: kernels that are not
// faster there go back, the times that are kept are those, and unless the rest is no
// slower as a whole, nothing is taken. The rules' kernel in the same round is the unit:
// it feels the same caches, clock and neighbours, which a probe of multiply-adds does
// not.
#include "packager/tune/tune.h"

#include "packager/tune/turns.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

namespace svod::packager {

namespace {

// Of rounds in a row: then the runner is to blame, not a schedule.
constexpr int kMostFailures = 4;
constexpr int kChecks = 2;
// A check runs half as often again as a round does.
constexpr double kRoundsOfCheck = double(kFinalTurns) / kTurns;
// Seconds that whoever pressed Ctrl-C waits for the checks.
constexpr double kMostWaited = 15;

class Tuner {
public:
  Tuner(const TuneMeans& means, const plan::Plan& plan, const Target& target, int threads,
        Shard shard, const std::string& folder)
      : means_(means), plan_(plan), target_(target), threads_(threads), shard_(shard),
        rules_(folder + "/rules"), other_(folder + "/other") {}
  TuneResult tune();

private:
  double seconds_left() const {
    return std::chrono::duration<double>(means_.end - TuneMeans::Clock::now()).count();
  }
  bool stops() const { return means_.interrupted() && !checks_at_once_; }
  bool goes_on(double needed) const { return !stops() && seconds_left() > needed; }
  std::string level_fault(const Profile& first);
  std::vector<Trial> untried(const Profile& first);
  bool run_both(int turns, Turns& pair);
  bool measure_round(std::vector<Trial> round);
  void judge(const Trial& trial, const Turns& pair);
  void check_all();
  void drop_losers(const Turns& pair);
  void take_times(const Turns& pair);
  TunedKernels& kernels() { return result_.found.machines[key_]; }
  TuningFile file_of(const std::vector<Trial>& trials) const;
  void tell(const std::string& what);

  const TuneMeans& means_;
  const plan::Plan& plan_;
  const Target& target_;
  int threads_;
  Shard shard_;
  std::string rules_, other_;
  std::string key_; // machine_key of the level that is measured
  size_t level_ = 0;
  double run_seconds_ = kLeastRun, round_seconds_ = 0;
  bool checks_at_once_ = false; // an interrupt has ended the rounds, not the checks
  std::map<Digest, std::vector<size_t>> programs_; // that have a kernel that won
  std::set<std::pair<Digest, std::string>> tried_;
  TuneResult result_;
};

Least sum_over(const LeastTimes& times, const std::vector<size_t>& programs) {
  Least out{0, 0, INT32_MAX};
  for (size_t program : programs) {
    const auto found = times.kernels.find(program_name(program));
    if (found == times.kernels.end()) return {};
    out.value += found->second.value;
    out.next += found->second.next;
    out.runs = std::min(out.runs, found->second.runs);
  }
  return out;
}

TuningFile Tuner::file_of(const std::vector<Trial>& trials) const {
  TuningFile out;
  for (const Trial& trial : trials)
    out.machines[key_][trial.kernel].schedule = trial.schedule;
  return out;
}

void Tuner::tell(const std::string& what) {
  const int left = std::max(0, int(std::lround(seconds_left())));
  char time[32];
  std::snprintf(time, sizeof(time), ", %d:%02d left", left / 60, left % 60);
  means_.tell("tuning: " + what + ", " + std::to_string(kernels().size()) +
              " kernels faster so far" + time);
}

// Around the best schedules that are known by now.
std::vector<Trial> Tuner::untried(const Profile& first) {
  std::vector<Trial> out =
      trials_of(plan_, target_, level_, threads_, first, kernels(), shard_);
  std::erase_if(out, [&](const Trial& trial) {
    return !tried_.emplace(trial.kernel, print(trial.schedule)).second;
  });
  return out;
}

std::string Tuner::level_fault(const Profile& first) {
  const auto level = std::ranges::find(target_.levels, first.level, &Level::suffix);
  if (level == target_.levels.end())
    return "the profile is of level '" + first.level + "', which " + target_.alias +
           " has not";
  if (!is_unit(first.unit))
    return "the profile's unit '" + first.unit + "' is not a word of up to 31 letters";
  level_ = static_cast<size_t>(level - target_.levels.begin());
  key_ = machine_key(target_, *level);
  result_.level = first.level;
  result_.unit = first.unit;
  run_seconds_ = seconds_of_run(first);
  return "";
}

// Of the rules' program and the other one; two turns say something.
bool Tuner::run_both(int turns, Turns& pair) {
  const std::optional<Turns> taken = take_turns(
      turns, rules_, other_, result_.level,
      [&](const std::string& path) { return means_.run(path, run_seconds_); },
      [&] { return stops(); });
  if (taken) pair = *taken;
  return taken && taken->whole > 1;
}

void Tuner::judge(const Trial& trial, const Turns& pair) {
  const Least now = sum_over(pair.other, trial.programs);
  const Least before = sum_over(pair.now, trial.programs);
  if (now.runs == 0 || !is_faster(now, before, kLeastGain)) return;
  const auto best = kernels().find(trial.kernel);
  // Rounds differ in what disturbs them, shares of the rules' time do not.
  if (best != kernels().end() &&
      best->second.took / best->second.before <= now.value / before.value)
    return;
  kernels().insert_or_assign(
      trial.kernel, TunedKernel{trial.schedule, now.value, before.value, result_.unit});
  programs_[trial.kernel] = trial.programs;
}

// False where the program does not compile or run: such a round is left out.
bool Tuner::measure_round(std::vector<Trial> round) {
  Turns pair;
  ++result_.rounds;
  tell("round " + std::to_string(result_.rounds) + ", " + std::to_string(round.size()) +
       " kernels");
  if (!means_.build(file_of(round), other_) || !run_both(kTurns, pair)) return false;
  result_.tried += round.size();
  for (const Trial& trial : round) judge(trial, pair);
  return true;
}

// Nothing was selected by the runs of `pair`, so no margin is left for luck: a gain that
// is larger than runs differ counts.
void Tuner::drop_losers(const Turns& pair) {
  std::erase_if(kernels(), [&](const auto& entry) {
    const std::vector<size_t>& programs = programs_.at(entry.first);
    const Least now = sum_over(pair.other, programs);
    return now.runs == 0 || !is_faster(now, sum_over(pair.now, programs), 0);
  });
}

void Tuner::take_times(const Turns& pair) {
  for (auto& [digest, kernel] : kernels()) {
    kernel.took = sum_over(pair.other, programs_.at(digest)).value;
    kernel.before = sum_over(pair.now, programs_.at(digest)).value;
  }
}

void Tuner::check_all() {
  checks_at_once_ =
      means_.interrupted() && kChecks * kRoundsOfCheck * round_seconds_ < kMostWaited;
  bool slower = false;
  for (int check = 0; check < kChecks && !kernels().empty() && !stops(); ++check) {
    tell("all of them together");
    Turns pair;
    const bool measured =
        means_.build(result_.found, other_) && run_both(kFinalTurns, pair);
    if (stops() && !measured) return;
    result_.before = pair.now.total.value;
    result_.after = pair.other.total.value;
    slower = !measured || result_.after > result_.before;
    const size_t taken = kernels().size();
    if (measured && check + 1 < kChecks) drop_losers(pair);
    if (measured) take_times(pair);
    if (kernels().size() == taken && !slower) return;
  }
  if (slower) kernels().clear();
}

TuneResult Tuner::tune() {
  means_.tell("tuning: compiling what is to be compared with");
  if (!means_.build({}, rules_)) {
    result_.fault = "the model does not compile";
    result_.compiles = false;
    return std::move(result_);
  }
  const std::optional<Profile> first = means_.run(rules_, kLeastRun);
  result_.interrupted = means_.interrupted();
  if (result_.interrupted) return std::move(result_);
  if (!first)
    result_.fault = "the program printed no profile";
  else
    result_.fault = level_fault(*first);
  if (!result_.fault.empty()) return std::move(result_);
  std::vector<Trial> left = untried(*first);
  // The check of all winners takes about as long as a round; the first one is always
  // made.
  int failures = 0; // one after the other
  while (!left.empty() && failures < kMostFailures &&
         (result_.rounds == 0 || goes_on(2.5 * round_seconds_))) {
    const auto begin = TuneMeans::Clock::now();
    failures = measure_round(next_round(left)) ? 0 : failures + 1;
    const std::chrono::duration<double> took = TuneMeans::Clock::now() - begin;
    round_seconds_ = std::max(round_seconds_, took.count());
    if (left.empty()) left = untried(*first);
  }
  if (result_.tried == 0 && failures > 0 && !means_.interrupted()) {
    result_.fault = "no program with other schedules printed a profile";
    return std::move(result_);
  }
  result_.faster = kernels().size();
  check_all();
  result_.interrupted = means_.interrupted();
  if (kernels().empty()) {
    result_.found.machines.clear();
    result_.before = result_.after = 0;
  }
  return std::move(result_);
}

} // namespace

TuneResult tune(const TuneMeans& means, const plan::Plan& plan, const Target& target,
                int threads, Shard shard, const std::string& folder) {
  return Tuner(means, plan, target, threads, shard, folder).tune();
}

} // namespace svod::packager
