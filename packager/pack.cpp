// The driver: what is read, compiled and built, and in which order a pack does it all.
#include "packager/packing.h"

#include "compiler/support/bytes.h"
#include "compiler/support/nearest.h"
#include "packager/budget.h"
#include "packager/max_flash.h"
#include "packager/report/explain.h"
#include "packager/report/explanation.h"
#include "packager/report/searched.h"
#include "packager/schedules.h"
#include "packager/text_form.h"

#include <algorithm>
#include <cmath>
#include <iostream>

namespace svod::packager {

Exit Packing::toolchain_error(const std::string& diagnostics) const {
  console_.error("the compiler or linker failed\n" + diagnostics);
  return Exit::Toolchain;
}

Exit Packing::read() {
  if (options_.emit_guessed && !options_.is_text())
    console_.note(options_.output + " becomes a " +
                  (options_.emit == Output::Module
                       ? "module, which is all that " + options_.target.alias +
                             " has; a name that ends in .wasm, or --emit=module, says so"
                       : "static library, since " + options_.target.alias +
                             " runs no programs by themselves; a name that ends in .a, "
                             "or --emit=static, says so"));
  console_.progress("reading " + options_.model_name());
  if (Exit status = read_largest(); status != Exit::Done) return status;
  Diags diags;
  front_ = read_front(options_, diags);
  console_.print(diags, options_.model_name());
  if (!front_) {
    if (!diags.failed()) return Exit::Bug;
    return diags.exit();
  }
  note_time("import", front_->import_ms);
  return read_sets();
}

Exit Packing::replace_kernels() {
  for (const auto& [symbol, text] : front_->kernel_texts) {
    auto source =
        std::ranges::find(kernels_->sources, symbol, &codegen::KernelSource::symbol);
    if (source == kernels_->sources.end()) {
      std::vector<std::string_view> names;
      for (const codegen::KernelSource& kernel : kernels_->sources)
        names.push_back(kernel.symbol);
      console_.error("--replace-kernel: no kernel of this model is " + symbol +
                     "; the nearest is '" + std::string(nearest(symbol, names)) + "'");
      return Exit::Usage;
    }
    source->text = text;
    source->prelude_bytes = 0;
  }
  return Exit::Done;
}

Exit Packing::compile_graph() {
  packed_with_.reset();
  if (!multiplies_bytes())
    options_.target = without_dot_levels(std::move(options_.target));
  if (Exit status = compile_set(); status != Exit::Done) return status;
  return sets_.empty() ? Exit::Done : merge_sets();
}

// A faster plan may take more memory than is allowed.
bool Packing::may_choose_plan() const { return !options_.max_ram && !options_.max_flash; }

PlanChoice Packing::plan_choice() const {
  if (tried_plan_) return *tried_plan_;
  if (!may_choose_plan()) return {};
  return plan_for(front_->tuning, options_.target, front_->subject);
}

Exit Packing::compile_set() {
  console_.progress("planning " + options_.model_name());
  GivenSchedules schedules(options_, console_);
  if (Exit status = schedules.read(front_->schedules,
                                   schedules_for(front_->tuning, options_.target));
      status != Exit::Done)
    return status;
  CompileOptions options{options_.target, options_.exact(), options_.emits_run()};
  options.for_speed = for_speed_;
  options.most_arena = most_arena(options_);
  options.most_weights = options_.max_weights;
  for (const Options::Pool& pool : options_.pools) options.pools.push_back(pool.bytes);
  options.changes = options_.skip_unchanged;
  options.search_budget = options_.search_budget;
  options.fusion_budget = options_.cut_budget;
  options.equal_budget = options_.equal_budget;
  const PlanChoice choice = plan_choice();
  if (choice.by_rules) options.fusion_budget = options.equal_budget = 0;
  options.as_written = choice.as_written;
  if (choice != PlanChoice())
    console_.verbose("plan: " + name_of(choice) + ", which was measured as faster");
  options.equal = &equal_;
  options.unsearched = unsearched_;
  options.searched = &searched_;
  schedules.hand_to(options);
  if (options_.bisect || options_.explain) options.fused = &fused_;
  options.fixed_point = &fixed_point_;
  std::vector<std::string> printed = {options_.print_after};
  if (const char* pass = pass_of_form(options_.emit)) printed.push_back(pass);
  for (const std::string& line : choices_of(options_)) console_.verbose(line);
  Passes passes(printed, [&](std::string_view pass, const std::string& place,
                             const std::string& text) { show(pass, place, text); });
  if (!take_plan(options)) {
    if (plan_state_ == PlanState::Miss && traces_values(front_->graph))
      options.facts = std::make_shared<ValueFacts>();
    kernels_ = compile(front_->graph, options, passes);
    remember_plan(options.facts);
  }
  key_ = plan_key(*front_, schedules.tuned(), choice);
  if (options_.explain)
    account_ = explain::explain(fused_, kernels_->plan, options_.target.machine());
  if (Exit status = schedules.report(); status != Exit::Done) return status;
  if (Exit status = replace_kernels(); status != Exit::Done) return status;
  for (const char* phase : {"simplify", "fuse", "plan", "schedule", "emit"})
    note_time(phase, passes.phase_ms(phase));
  note_passes(passes);
  for (const std::string& line : equal_lines(equal_)) console_.verbose(line);
  for (const std::string& line : search_lines(searched_)) console_.verbose(line);
  for (const std::string& line : arena_lines(kernels_->plan)) console_.verbose(line);
  if (fixed_point_)
    for (const std::string& line : fixed_point_lines(*fixed_point_))
      console_.verbose(line);
  contents_ =
      image_contents(kernels_->plan, front_->interface, front_->model.digest, key_);
  contents_.threads = threads();
  contents_.straight = options_.emits_run();
  const std::vector<uint64_t>& pools = kernels_->plan.pool_bytes;
  for (size_t i = 0; i < pools.size(); i++) {
    const bool last = i + 1 == pools.size(); // scratch lies behind it
    contents_.pools.push_back(
        {options_.pools[i].name, pools[i] + (last ? kernels_->plan.scratch_bytes : 0)});
  }
  return Exit::Done;
}

void Packing::show(std::string_view pass, const std::string& place,
                   const std::string& text) {
  if (means_pass(options_.print_after, pass))
    std::cerr << "# after " << pass << (place.empty() ? "" : ", ") << place << "\n"
              << text;
  pass_texts_.insert_or_assign(std::string(pass), text);
}

// What the passes did; a pass that stopped at its limit left something undone.
void Packing::note_passes(const Passes& passes) {
  passes_ = passes.runs();
  for (const PassName& pass : pass_names()) {
    const auto found = passes_.find(pass.name);
    if (found == passes_.end()) continue;
    const PassRun& run = found->second;
    console_.verbose(pass_line(pass.name, run));
    if (run.end && run.end->reason == PassEnd::Limit)
      console_.note("pass " + std::string(pass.name) + " stopped at its limit of " +
                    std::to_string(run.end->rounds) +
                    " rounds; the result is right, but may be slower than it could be");
  }
}

uint32_t Packing::threads() const {
  int chosen = options_.threads >= 0 ? options_.threads : options_.target.default_threads;
  return static_cast<uint32_t>(chosen);
}

// What one call needs, of the entry that needs most; a program adds scratch for more
// threads when it runs.
ArenaBytes Packing::arena() const {
  ArenaBytes most;
  const bool for_gpu = device_ && options_.is_library();
  for (const ImageEntry& entry : contents_.entries) {
    const ArenaBytes bytes =
        arena_bytes(contents_, entry, 1, options_.target.pointer_bits / 8);
    if (bytes.all() > most.all()) most = bytes;
  }
  if (for_gpu) most.device = device_->arena_bytes;
  return most;
}

Summary Packing::summary() const {
  Summary out{.front = *front_,
              .options = options_,
              .plan = kernels_->plan,
              .contents = contents_,
              .key = key_};
  out.arena = arena();
  out.time_ms = times_;
  out.passes = passes_;
  out.fixed_point = fixed_point_;
  out.equal = equal_;
  out.search = searched_;
  out.spilled_schedules = unsearched_.size();
  if (options_.device) out.device = device_facts_;
  if (account_) out.explanation = explanation_json(*account_);
  if (options_.emit == Output::Executable) {
    if (!packed_with_) packed_with_ = packed_with(options_, *kernels_, unsearched_);
    out.packed = packed_with_;
  }
  out.verify = verified_;
  out.accuracy = accuracy_;
  out.plan_state = plan_state();
  if (remote_) out.remote = remote_facts(*remote_);
  if (objects_) {
    out.sizes = objects_->sizes;
    out.compiled = objects_->compiled;
    out.reused = objects_->reused;
    out.spills = objects_->spills;
    out.merged = merged_;
  }
  std::error_code error;
  if (!options_.output.empty()) {
    uint64_t bytes = std::filesystem::file_size(options_.output, error);
    out.output = error ? 0 : bytes;
  }
  return out;
}

ObjectOptions Packing::object_options(StubKind stub) {
  if (!options_.cache_folder.empty() && !cache_) open_cache();
  ObjectOptions build;
  build.stub = stub;
  build.prefix = options_.name;
  build.self_check = options_.self_check;
  build.parts = options_.parts;
  build.place = weight_place();
  if (entries_) build.plans = plans(), build.shared = &entries_->weights;
  build.cache = cache_ ? &*cache_ : nullptr;
  build.device = device_ ? &*device_ : nullptr;
  build.on_done = [this](const toolchain::JobDone& job) {
    console_.kernel_done(job.job.name, job.ms, job.compiled, job.done, job.all);
  };
  if (!options_.target.is_small() && options_.level < 2) {
    build.flags = {"-O" + std::to_string(options_.level)};
  }
  return build;
}

std::optional<Objects> Packing::build_for(StubKind stub, std::string& error, bool profile,
                                          bool leaves_room) {
  ObjectOptions build = object_options(stub);
  build.profile = profile;
  build.leaves_room = leaves_room;
  auto manifest = [&](const SizeFacts& sizes) {
    Summary facts = summary();
    facts.sizes = sizes;
    return manifest_json(facts);
  };
  return build_objects(options_.target, *kernels_, build, contents_, manifest, error);
}

// A file of source has no linker that keeps one of equal parts; a module keeps all.
void Packing::merge_small_kernels() {
  if (options_.target.kind == TargetKind::Wasm) return;
  merged_ = merge_kernels(options_.target, *kernels_, object_options(library_stub()),
                          options_.emit != Output::Source);
  for (const MergedGroup& group : merged_) console_.verbose(merged_line(group));
}

Exit Packing::build_once() {
  console_.progress("compiling " + options_.model_name());
  clock_.lap();
  merge_small_kernels();
  std::string error;
  objects_ = build_for(options_.is_library() ? library_stub() : StubKind::Program, error,
                       false, fills_program());
  if (!objects_) return toolchain_error(error);
  for (const std::string& remedy : objects_->remedies) console_.warning(remedy);
  note_time("compile", clock_.lap());
  return Exit::Done;
}

// Whether vectors fit the registers only the compiled code tells. Kernels whose schedules
// were found by their cost and do not keep to registers take the rules' ones. `programs`:
// the numbers that this plan's programs were built with; empty: its own.
bool Packing::drop_spilling(const KernelSpills& spills,
                            const std::vector<uint32_t>& programs) {
  const size_t known = unsearched_.size();
  for (const codegen::KernelSource& source : kernels_->sources) {
    const std::string symbol =
        programs.empty()
            ? source.symbol
            : codegen::program_symbol(programs[source.program], source.level);
    const auto facts = std::ranges::find(spills, symbol,
                                         [](const auto& kernel) { return kernel.first; });
    if (facts == spills.end() || facts->second.spilling == 0) continue;
    for (const ChangedSchedule& changed : searched_.changed)
      if (changed.program == source.program && changed.level == source.level)
        unsearched_.insert(changed.kernel);
  }
  return unsearched_.size() > known;
}

// A plan of the cache is what came of this when it was made.
bool Packing::drop_spilling() {
  const bool is_new = plan_state_ != PlanState::Hit;
  bool any = is_new && drop_spilling(objects_->spills, {});
  for (size_t i = 0; i < sets_.size(); i++)
    if (sets_[i]->plan_state_ != PlanState::Hit)
      any |= sets_[i]->drop_spilling(objects_->spills, entries_->programs[i]);
  return any;
}

Exit Packing::build() {
  clock_.lap();
  program_taken_ = take_program();
  if (program_taken_) {
    note_time("compile", clock_.lap());
    note_time("link", 0);
    return Exit::Done;
  }
  Exit status = build_once();
  if (status == Exit::Done && drop_spilling()) {
    status = compile_graph();
    if (status == Exit::Done) status = build_once();
  }
  if (status == Exit::Done) keep_plan();
  const bool fits = status != Exit::Done || !options_.max_flash ||
                    options_.target.is_small() ||
                    flash_bytes(contents_, objects_->sizes) <= *options_.max_flash;
  return fits ? status : build_for_flash();
}

Exit Packing::build_for_flash() {
  Exit status = Exit::Done;
  const uint64_t asked = flash_bytes(contents_, objects_->sizes);
  repeats_ = true;
  options_.target = for_size(std::move(options_.target));
  const auto attempt = [&](const std::set<Digest>& for_speed) {
    for_speed_ = for_speed;
    status = compile_graph();
    if (status == Exit::Done) status = build_once();
    if (status != Exit::Done) return std::optional<FlashAttempt>();
    return std::optional(flash_attempt(*kernels_, contents_, *objects_));
  };
  const std::string given_up = fit_flash(*options_.max_flash, asked, attempt);
  if (!given_up.empty()) console_.note(given_up);
  return status;
}

// What fast forms add is within the bound, but what is as it is written may not be.
Exit Packing::check_weights() {
  const uint64_t needed = kernels_->plan.weight_bytes;
  if (!options_.max_weights || options_.max_weights->factor > 0 ||
      needed <= options_.max_weights->bytes)
    return Exit::Done;
  console_.error("--max-weights: " + std::to_string(needed) +
                 " bytes are needed without any fast form, " +
                 std::to_string(options_.max_weights->bytes) + " are allowed");
  return Exit::Budget;
}

Exit Packing::check_budget() {
  return packager::check_budget(options_, kernels_->plan, contents_, arena(),
                                objects_->sizes, console_);
}

// What --json and the page say, which is the same. It predicts what each kernel takes, so
// it is made only if somebody reads it.
void Packing::sum_up() {
  finish_remote();
  note_time("total", total_.lap());
  if (options_.json || page_) console_.tell(summary_json(summary()));
}

// A pack that failed late tells what it found out until then.
void Packing::tell(Exit status) {
  if (contents_.entries.empty()) return;
  if (console_.result().empty()) sum_up();
  for (const auto& [stage, ms] : times_)
    console_.verbose("time " + stage + ": " + std::to_string(std::lround(ms)) + " ms");
  if (status == Exit::Done && !options_.is_text() && options_.verb != Verb::Tune)
    console_.remark(summary_text(summary()));
}

Exit Packing::run() {
  using Stage = Exit (Packing::*)();
  std::vector<Stage> stages{&Packing::open_outputs, &Packing::read,
                            &Packing::compile_graph, &Packing::check_weights};
  if (options_.verb == Verb::Tune) {
    stages.push_back(&Packing::tune);
  } else if (options_.is_text()) {
    stages.push_back(&Packing::write_text_form);
  } else {
    stages.insert(stages.end(),
                  {&Packing::compile_device, &Packing::tune, &Packing::build,
                   &Packing::check_budget, &Packing::link, &Packing::verify_or_bisect,
                   &Packing::write_page, &Packing::commit, &Packing::write_deps});
  }
  Exit status = Exit::Done;
  for (Stage stage : stages)
    if (status == Exit::Done) status = (this->*stage)();
  finish_remote();
  tell(status);
  return status;
}

Exit Packing::find_key(Digest& key) {
  if (Exit status = read(); status != Exit::Done) return status;
  if (Exit status = compile_graph(); status != Exit::Done) return status;
  key = key_;
  return Exit::Done;
}

Exit pack(const Options& options, const Console& console) {
  return Packing(options, console).run();
}

Exit find_key(const Options& options, const Console& console, Digest& key) {
  return Packing(options, console).find_key(key);
}

} // namespace svod::packager
