// Tuning packs the model again and again, with other schedules each time; compiled
// kernels come from the cache where they did not change. What it finds joins the file of
// --tuning, and the model is planned with it as if the file had been there from the
// beginning: so a later pack with the file gives the same bytes.
#include "packager/packing.h"

#include "packager/artefact/link_output.h"
#include "packager/firmware/measure_device.h"
#include "packager/tune/tune.h"
#include "packager/tune/tune_plan.h"
#include "packager/verify/run_program.h"

#include <algorithm>
#include <cstdio>

namespace svod::packager {

namespace {

// What a run may take beyond the seconds that it was asked for: the first inference of a
// large model, a runner that copies the program to its machine.
constexpr double kPatience = 60, kTimesAsked = 10;

std::string outcome(const FoundPlan& found) {
  char text[160];
  std::snprintf(text, sizeof(text), "tuning: the plan '%s' takes %.1f %s, %.1f before",
                name_of(found.plan.choice).c_str(), found.plan.took,
                found.plan.unit.c_str(), found.plan.before);
  return text;
}

// Ends in a note what was found.
std::string outcome(const TuneResult& result) {
  size_t found = 0;
  for (const auto& [machine, kernels] : result.found.machines) found += kernels.size();
  std::string out = "tuning: " + std::to_string(result.tried) + " schedules in " +
                    std::to_string(result.rounds) + " rounds, level " + result.level +
                    ", " + std::to_string(result.faster) + " kernels faster";
  if (found < result.faster)
    out += ", " + std::to_string(found) + " of them also together";
  if (result.before > 0) {
    char text[96];
    std::snprintf(text, sizeof(text), "; a run takes %.1f %s, %.1f before", result.after,
                  result.unit.c_str(), result.before);
    out += text;
  }
  return result.interrupted ? out + "; interrupted, what was found is kept" : out;
}

} // namespace

// By their numbers, by which a profile names them, whatever their schedules are.
static std::vector<Digest> kernels_of(const plan::Plan& plan) {
  std::vector<Digest> out;
  for (const ScheduledKernel& program : plan.programs) out.push_back(digest_of(program));
  return out;
}

bool Packing::build_to_measure(const TuningFile& tuning, const std::string& path,
                               DeviceMeasure* device) {
  return plan_to_measure(tuning) && build_planned(path, device);
}

bool Packing::plan_to_measure(const TuningFile& tuning) {
  const TuningFile known = front_->tuning;
  merge(front_->tuning, tuning);
  const Exit status = compile_graph();
  front_->tuning = known;
  return status == Exit::Done;
}

bool Packing::build_planned(const std::string& path, DeviceMeasure* device) {
  merge_small_kernels();
  std::string error;
  objects_ = build_for(device != nullptr ? StubKind::Firmware : StubKind::Program, error,
                       device != nullptr);
  if (!objects_ || device == nullptr)
    return objects_ && link_program(options_, *objects_, path).ok;
  return device->build(*objects_, header_facts(), kernels_->plan.programs.size(), path);
}

// Of a model with one set of shapes, whose plan is one choice, and where nobody else
// tunes kernels that another plan has not.
std::optional<FoundPlan> Packing::tune_plan(Packing& measured, const TuneMeans& means,
                                            DeviceMeasure* device,
                                            const std::string& folder) {
  // The rest of the time is for kernels.
  constexpr int kShareOfPlans = 4;
  if (!sets_.empty() || options_.shard.count > 1 || !may_choose_plan())
    return std::nullopt;
  const auto begin = TuneMeans::Clock::now();
  const auto until = begin + (means.end - begin) / kShareOfPlans;
  const PlanChoice now = measured.plan_choice();
  std::vector<std::vector<Digest>> known = {kernels_of(kernels_->plan)};
  PlanMeans plans;
  plans.build = [&](const PlanChoice& choice, const std::string& path) {
    measured.tried_plan_ = choice;
    if (!measured.plan_to_measure({})) return false;
    std::vector<Digest> made = kernels_of(measured.kernels_->plan);
    if (choice != now && std::ranges::count(known, made) > 0) return false;
    known.push_back(std::move(made));
    return measured.build_planned(path, device);
  };
  plans.run = means.run;
  plans.interrupted = means.interrupted;
  plans.goes_on = [&] { return !means.interrupted() && TuneMeans::Clock::now() < until; };
  plans.tell = means.tell;
  std::optional<FoundPlan> found = packager::tune_plan(plans, now, folder);
  measured.tried_plan_ = found ? std::optional(found->plan.choice) : std::nullopt;
  return found;
}

// The file may have grown since it was read, by another process that tunes.
Exit Packing::keep_tuned(const TuningFile& found) {
  if (options_.tuning.empty()) {
    merge(front_->tuning, found);
    return Exit::Done;
  }
  Diags diags;
  TuningFile known = read_tuning(options_, diags);
  console_.print(diags, options_.model_name());
  if (diags.failed()) return diags.exit();
  merge(known, found);
  front_->tuning = std::move(known);
  if (options_.dry_run) return Exit::Done;
  std::string error;
  std::optional<OutputFile> file = OutputFile::create(options_.tuning, error);
  if (file && file->write(print(front_->tuning), error) && file->commit(error))
    return Exit::Done;
  return file_error(options_.tuning, error);
}

Exit Packing::tune() {
  if (!options_.tune_minutes) return Exit::Done;
  const auto runner = find_runner(options_);
  const TemporaryFolder folder;
  if (folder.path().empty()) return file_error("--tune", "there is no temporary folder");
  const HeldInterrupt interrupt;
  Options quiet = options_;
  quiet.quiet = true;
  quiet.verbose = false;
  quiet.weights = WeightPlace::Embed;
  quiet.remote.reset(); // nobody else wants kernels that were tried
  std::optional<DeviceMeasure> device;
  if (options_.target.kind == TargetKind::Bare) {
    std::string error;
    device = DeviceMeasure::make(options_, *front_, error);
    if (!device) {
      console_.error("--tune: " + error);
      return Exit::Usage;
    }
  } else {
    quiet.emit = Output::Executable;
  }
  const Console silent(quiet);
  Packing measured(quiet, silent);
  measured.front_ = std::move(front_);
  const int threads = std::max(1, options_.threads);
  TuneMeans means;
  means.build = [&](const TuningFile& tuning, const std::string& path) {
    return measured.build_to_measure(tuning, path, device ? &*device : nullptr) &&
           kernels_of(kernels_->plan) == kernels_of(measured.kernels_->plan);
  };
  means.run = [&](const std::string& path, double seconds) {
    const double limit = kPatience + kTimesAsked * seconds;
    if (device) return device->run(path, limit);
    std::vector<std::string> words = *runner;
    words.insert(words.end(),
                 {path, "--profile=json", "--threads", std::to_string(threads),
                  "--min-time", std::to_string(seconds)});
    const Ran ran = run_program(words, "", limit);
    return ran.code == 0 ? parse_profile(ran.said) : std::nullopt;
  };
  means.interrupted = [&] { return interrupt.came(); };
  means.tell = [&](const std::string& how_far) { console_.progress(how_far); };
  means.end = TuneMeans::Clock::now() +
              std::chrono::duration_cast<TuneMeans::Clock::duration>(
                  std::chrono::duration<double>(*options_.tune_minutes * 60));
  clock_.lap();
  const std::optional<FoundPlan> plan =
      tune_plan(measured, means, device ? &*device : nullptr, folder.path());
  if (plan) {
    tried_plan_ = plan->plan.choice;
    front_ = std::move(measured.front_);
    if (const Exit status = compile_graph(); status != Exit::Done) return status;
    measured.front_ = std::move(front_);
    console_.remark(outcome(*plan));
  }
  TuneResult result = packager::tune(means, kernels_->plan, options_.target, threads,
                                     options_.shard, folder.path());
  note_time("tune", clock_.lap());
  front_ = std::move(measured.front_);
  if (!result.fault.empty()) {
    console_.error("--tune: " + result.fault);
    if (!result.compiles) return Exit::Toolchain;
    return options_.runner.empty() ? Exit::Bug : Exit::Usage;
  }
  console_.remark(outcome(result));
  if (plan) {
    const auto level =
        std::ranges::find(options_.target.levels, plan->level, &Level::suffix);
    if (level != options_.target.levels.end())
      result.found.plans[machine_key(options_.target, *level)][front_->subject] =
          plan->plan;
  }
  tried_plan_.reset();
  if (Exit status = keep_tuned(result.found); status != Exit::Done) return status;
  const bool found = !result.found.machines.empty() || !result.found.plans.empty();
  const bool plans_again = found && options_.verb != Verb::Tune;
  return plans_again ? compile_graph() : Exit::Done;
}

} // namespace svod::packager
