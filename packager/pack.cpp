// The driver. Nothing is written under its final name before everything has gone well:
// the output lives in a temporary file beside it, is verified there, and is renamed as
// the last act.
#include "packager/pack.h"

#include "compiler/rewrite/integer_contractions.h"
#include "compiler/support/bytes.h"
#include "compiler/support/nearest.h"
#include "packager/artefact/contents.h"
#include "packager/artefact/link_output.h"
#include "packager/budget.h"
#include "packager/firmware/source_file.h"
#include "packager/firmware/test_vectors.h"
#include "packager/firmware/verify_firmware.h"
#include "packager/front.h"
#include "packager/headers.h"
#include "packager/make_rule.h"
#include "packager/max_flash.h"
#include "packager/output_file.h"
#include "packager/report/clock.h"
#include "packager/report/explain.h"
#include "packager/report/summary.h"
#include "packager/schedules.h"
#include "packager/text_form.h"
#include "packager/verify/bisect.h"
#include "packager/verify/runner.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>

namespace svod::packager {

namespace {

// One pack: each method is a stage and may end the run with its exit code.
class Packing {
public:
  Packing(const Options& options, const Console& console)
      : options_(options), console_(console) {}
  Exit run();

private:
  Exit open_outputs();
  Exit open_headers();
  Exit read();
  Exit compile_graph();
  void show(std::string_view pass, const std::string& place, const std::string& text);
  void note_passes(const Passes& passes);
  Exit write_text_form();
  Exit build();
  Exit build_once();
  Exit build_for_flash();
  Exit check_budget();
  Exit link();
  Exit write_headers();
  Exit write_source();
  Exit replace_kernels();
  Exit verify();
  Exit verify_library(const VerifyChoice& choice);
  Exit verify_or_bisect();
  Exit commit();
  Exit write_deps();
  void tell(Exit status);
  Exit file_error(const std::string& path, const std::string& reason) const;
  Exit toolchain_error(const std::string& diagnostics) const;
  Exit open(const std::string& path);
  void open_cache();
  StubKind library_stub() const {
    return options_.emits_run() ? StubKind::Firmware : StubKind::Library;
  }
  ObjectOptions object_options(StubKind stub);
  std::optional<Objects> build_for(StubKind stub, std::string& error,
                                   bool profile = false);
  ArenaBytes arena() const;
  HeaderFacts header_facts() const;
  uint32_t threads() const;
  Summary summary() const;
  void note_time(const std::string& stage, double ms) {
    const auto known = std::ranges::find(times_, stage, [](auto& t) { return t.first; });
    if (known == times_.end())
      times_.emplace_back(stage, ms);
    else
      known->second += ms;
  }

  Options options_; // the target loses levels that the model has no use for
  const Console& console_;
  Clock clock_, total_;
  std::vector<OutputFile> files_; // the output first, then what lies beside it
  std::vector<std::pair<std::string, double>> times_;
  std::optional<Front> front_;
  std::optional<toolchain::ObjectCache> cache_;
  FusedGraph fused_;           // with --bisect
  std::set<Digest> for_speed_; // with --max-flash: kernels that need not be small
  std::optional<codegen::Kernels> kernels_;
  std::map<std::string, std::string> pass_texts_;
  std::map<std::string_view, PassRun> passes_;
  std::optional<rewrite::FixedPointReport> fixed_point_;
  Digest key_;
  ImageContents contents_;
  std::optional<Objects> objects_;
  std::string verified_; // JSON
};

Exit Packing::file_error(const std::string& path, const std::string& reason) const {
  console_.error(path + ": " + reason);
  return Exit::File;
}

Exit Packing::toolchain_error(const std::string& diagnostics) const {
  console_.error("the compiler or linker failed\n" + diagnostics);
  return Exit::Toolchain;
}

Exit Packing::open(const std::string& path) {
  std::string error;
  std::optional<OutputFile> file = OutputFile::create(path, error);
  if (!file) return file_error(path, error);
  files_.push_back(std::move(*file));
  return Exit::Done;
}

// First of all, so that a wrong folder is known before the long work.
Exit Packing::open_outputs() {
  if (options_.output.empty()) options_.weights = WeightPlace::Embed;
  if (options_.output.empty() || (options_.dry_run && options_.is_text()))
    return Exit::Done;
  std::error_code error;
  if (std::filesystem::equivalent(options_.output, options_.model, error)) {
    return file_error(options_.output, "is the model itself");
  }
  make_folders(options_);
  Exit status = open(options_.output);
  if (status != Exit::Done) return status;
  if (options_.is_library()) return open_headers();
  if (options_.weights == WeightPlace::File) return open(options_.output + ".weights");
  return Exit::Done;
}

Exit Packing::open_headers() {
  for (const std::string& path : header_paths(options_)) {
    if (Exit status = open(path); status != Exit::Done) return status;
  }
  return Exit::Done;
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
  Diags diags;
  front_ = read_front(options_, diags);
  console_.print(diags, options_.model_name());
  if (!front_) {
    if (!diags.failed()) return Exit::Bug;
    return diags.exit();
  }
  note_time("import", front_->import_ms);
  return Exit::Done;
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
  console_.progress("planning " + options_.model_name());
  GivenSchedules schedules(options_, console_);
  if (Exit status = schedules.read(front_->schedules); status != Exit::Done)
    return status;
  key_ = plan_key(*front_, options_);
  if (!rewrite::multiplies_bytes(front_->graph))
    options_.target = without_dot_levels(std::move(options_.target));
  CompileOptions options{options_.target, options_.exact, options_.emits_run()};
  options.for_speed = for_speed_;
  for (const Options::Pool& pool : options_.pools) options.pools.push_back(pool.bytes);
  schedules.hand_to(options);
  if (options_.bisect) options.fused = &fused_;
  options.fixed_point = &fixed_point_;
  std::vector<std::string> printed = {options_.print_after};
  if (const char* pass = pass_of_form(options_.emit)) printed.push_back(pass);
  for (const std::string& line : choices_of(options_)) console_.verbose(line);
  Passes passes(printed, [&](std::string_view pass, const std::string& place,
                             const std::string& text) { show(pass, place, text); });
  kernels_ = compile(front_->graph, options, passes);
  if (Exit status = schedules.report(); status != Exit::Done) return status;
  if (Exit status = replace_kernels(); status != Exit::Done) return status;
  for (const char* phase : {"simplify", "fuse", "plan", "schedule", "emit"})
    note_time(phase, passes.phase_ms(phase));
  note_passes(passes);
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

// What one call needs; a program adds scratch for more threads when it runs.
ArenaBytes Packing::arena() const {
  return arena_bytes(contents_, contents_.entries.front(), 1,
                     options_.target.pointer_bits / 8);
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
  out.verify = verified_;
  if (objects_) {
    out.sizes = objects_->sizes;
    out.compiled = objects_->compiled;
    out.reused = objects_->reused;
    out.spills = objects_->spills;
  }
  std::error_code error;
  if (!options_.output.empty()) {
    uint64_t bytes = std::filesystem::file_size(options_.output, error);
    out.output = error ? 0 : bytes;
  }
  return out;
}

Exit Packing::write_text_form() {
  std::string error;
  const char* pass = pass_of_form(options_.emit);
  std::string text;
  if (pass)
    text = pass_texts_.at(pass);
  else if (options_.emit == Output::Testbench)
    text = selftest_text(options_, *front_, contents_, error);
  else
    text = kernels_text(options_, *kernels_, error);
  if (!error.empty())
    return options_.emit == Output::Testbench ? file_error("--emit=testbench", error)
                                              : toolchain_error(error);
  if (files_.empty()) {
    return options_.dry_run ? Exit::Done : console_.print_out(text);
  }
  if (!files_[0].write(text, error) || !files_[0].commit(error)) {
    return file_error(options_.output, error);
  }
  return Exit::Done;
}

void Packing::open_cache() {
  cache_.emplace(options_.cache_folder);
  if (const std::string why = cache_->why_not_writable(); !why.empty())
    console_.warning("the cache " + options_.cache_folder + " cannot be written (" + why +
                     "), so every kernel is compiled again; say --cache-dir with another "
                     "folder, or --no-cache");
}

ObjectOptions Packing::object_options(StubKind stub) {
  if (!options_.cache_folder.empty() && !cache_) open_cache();
  ObjectOptions build;
  build.stub = stub;
  build.prefix = options_.name;
  build.self_check = options_.self_check;
  build.weights_embedded = options_.weights == WeightPlace::Embed;
  build.cache = cache_ ? &*cache_ : nullptr;
  build.on_done = [this](const toolchain::JobDone& job) {
    console_.kernel_done(job.job.name, job.ms, job.compiled, job.done, job.all);
  };
  if (!options_.small && options_.level < 2) {
    build.flags = {"-O" + std::to_string(options_.level)};
  }
  return build;
}

std::optional<Objects> Packing::build_for(StubKind stub, std::string& error,
                                          bool profile) {
  ObjectOptions build = object_options(stub);
  build.profile = profile;
  auto manifest = [&](const SizeFacts& sizes) {
    Summary facts = summary();
    facts.sizes = sizes;
    return manifest_json(facts);
  };
  return build_objects(options_.target, *kernels_, build, contents_, manifest, error);
}

Exit Packing::build_once() {
  console_.progress("compiling " + options_.model_name());
  clock_.lap();
  std::string error;
  objects_ = build_for(options_.is_library() ? library_stub() : StubKind::Program, error);
  if (!objects_) return toolchain_error(error);
  for (const std::string& remedy : objects_->remedies) console_.warning(remedy);
  note_time("compile", clock_.lap());
  return Exit::Done;
}

Exit Packing::build() {
  const Exit status = build_once();
  const bool fits = status != Exit::Done || !options_.max_flash || options_.small ||
                    flash_bytes(contents_, objects_->sizes) <= *options_.max_flash;
  return fits ? status : build_for_flash();
}

Exit Packing::build_for_flash() {
  Exit status = Exit::Done;
  const uint64_t asked = flash_bytes(contents_, objects_->sizes);
  options_.small = true;
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

Exit Packing::check_budget() {
  return packager::check_budget(options_, contents_, arena(), objects_->sizes, console_);
}

Exit Packing::link() {
  clock_.lap();
  std::string output = files_.empty() ? "" : files_[0].temporary();
  if (output.empty()) return Exit::Done;
  if (options_.emit == Output::Source) return write_source();
  const toolchain::LinkResult linked = link_output(options_, *objects_, output);
  if (!linked.ok) return toolchain_error(linked.diagnostics);
  Exit status = options_.is_library() ? write_headers() : Exit::Done;
  if (status != Exit::Done) return status;
  if (objects_->weight_file && !write_weights(*objects_, files_[1].temporary()))
    status = file_error(files_[1].temporary(), "cannot be written");
  note_time("link", clock_.lap());
  return status;
}

HeaderFacts Packing::header_facts() const {
  const bool source = options_.emit == Output::Source;
  return {
      options_.name,         &contents_,          arena(),
      objects_->sizes.stack, options_.self_check, source ? options_.target.triple : ""};
}

Exit Packing::write_source() {
  const StraightRun run{options_.name, *kernels_, contents_, true};
  std::string error;
  const std::string text = source_text({run, options_}, error);
  if (!error.empty()) {
    console_.error("--emit=source: " + error);
    return Exit::Unsupported;
  }
  return files_[0].write(text, error) ? write_headers()
                                      : file_error(options_.output, error);
}

Exit Packing::write_headers() {
  const HeaderFacts facts = header_facts();
  size_t file = 1;
  for (const std::string& text : header_texts(options_, facts)) {
    std::string error;
    if (!files_[file++].write(text, error)) return file_error("header", error);
  }
  return Exit::Done;
}

// What counts instructions is told of each kernel by a run of its own, which is not the
// one that is packed.
Exit Packing::verify_library(const VerifyChoice& choice) {
  const HeaderFacts facts = header_facts();
  if (!options_.profile || options_.target.kind != TargetKind::Bare)
    return verify_firmware({options_, *front_, *objects_, facts, *kernels_}, choice,
                           console_);
  std::string error;
  const ImageContents packed = contents_;
  const std::optional<Objects> counted = build_for(StubKind::Firmware, error, true);
  contents_ = packed;
  if (!counted) return toolchain_error(error);
  return verify_firmware({options_, *front_, *counted, facts, *kernels_}, choice,
                         console_);
}

Exit Packing::verify() {
  VerifyChoice choice = verify_choice(options_);
  if (choice.name.empty()) return Exit::Done;
  if (options_.verify.empty() && front_->interface.sizes_replaced) {
    console_.note("not verified, since the test data beside the model has the sizes "
                  "that it states");
    return Exit::Done;
  }
  const auto runner = find_runner(options_);
  if (!runs_here(options_.target) && !choice.asked) return Exit::Done;
  if (options_.emit == Output::Source) {
    console_.note("not verified, since another compiler builds it; --emit=testbench "
                  "writes a self-test that it can build, too");
    return Exit::Done;
  }
  console_.progress("verifying " + options_.model_name());
  if (options_.target.kind != TargetKind::Linux) return verify_library(choice);
  if (!runner) {
    console_.note(
        "not verified, since " + options_.target.alias +
        " programs do not run here; --runner CMD names a command that runs them");
    return Exit::Done;
  }
  if (options_.emit == Output::Executable && !files_.empty()) {
    std::vector<std::string> program{files_[0].temporary()};
    if (options_.weights == WeightPlace::File) {
      program.insert(program.end(), {"--weights", files_[1].temporary()});
    }
    return verify_program(*runner, program, choice, *front_, console_, verified_);
  }
  // A library cannot run by itself: a program of the same kernels does it in its place.
  std::string error, place = options_.output;
  if (place.empty())
    place = (std::filesystem::temp_directory_path() / "svod-program").string();
  ImageContents library = contents_;
  std::optional<Objects> objects = build_for(StubKind::Program, error);
  contents_ = library;
  if (!objects) return toolchain_error(error);
  std::optional<OutputFile> program = OutputFile::create(place + ".verify", error);
  if (!program) return file_error(place + ".verify", error);
  toolchain::LinkResult linked = link_program(options_, *objects, program->temporary());
  if (!linked.ok) return toolchain_error(linked.diagnostics);
  return verify_program(*runner, {program->temporary()}, choice, *front_, console_,
                        verified_);
}

// What the packed program answers is not needed to find a kernel that is wrong, but says
// whether there is reason to look for one.
Exit Packing::verify_or_bisect() {
  if (!options_.bisect) return verify();
  if (!runs_here(options_.target)) {
    console_.error("--bisect: " + options_.target.alias + " programs do not run here");
    return Exit::Usage;
  }
  VerifyChoice data = verify_choice(options_);
  if (data.name.empty()) data = {"random", true};
  const Exit verified = verify();
  const bool ran = verified == Exit::Done || verified == Exit::VerifyMismatch;
  if (!ran && verified != Exit::Bug) return verified; // a crash is looked into, too
  const ObjectOptions build = object_options(StubKind::Library);
  const Exit status = bisect({options_, *front_, *kernels_, fused_, build, contents_,
                              data, verified == Exit::VerifyMismatch},
                             console_);
  return status == Exit::Done ? verified : status;
}

Exit Packing::commit() {
  if (options_.dry_run) return Exit::Done;
  std::string error;
  for (size_t i = files_.size(); i-- > 0;) {
    if (!files_[i].commit(error)) return file_error(options_.output, error);
  }
  return Exit::Done;
}

Exit Packing::write_deps() {
  if (options_.deps.empty()) return Exit::Done;
  std::string error;
  std::optional<OutputFile> file = OutputFile::create(options_.deps, error);
  if (file && file->write(make_rule(options_, *front_), error) && file->commit(error))
    return Exit::Done;
  return file_error(options_.deps, error);
}

// A pack that failed late tells what it found out until then.
void Packing::tell(Exit status) {
  if (contents_.entries.empty()) return;
  note_time("total", total_.lap());
  const Summary facts = summary();
  console_.tell(summary_json(facts));
  for (const auto& [stage, ms] : times_)
    console_.verbose("time " + stage + ": " + std::to_string(std::lround(ms)) + " ms");
  if (status == Exit::Done && !options_.is_text()) console_.remark(summary_text(facts));
}

Exit Packing::run() {
  using Stage = Exit (Packing::*)();
  std::vector<Stage> stages{&Packing::open_outputs, &Packing::read,
                            &Packing::compile_graph};
  if (options_.is_text()) {
    stages.push_back(&Packing::write_text_form);
  } else {
    stages.insert(stages.end(),
                  {&Packing::build, &Packing::check_budget, &Packing::link,
                   &Packing::verify_or_bisect, &Packing::commit, &Packing::write_deps});
  }
  Exit status = Exit::Done;
  for (Stage stage : stages)
    if (status == Exit::Done) status = (this->*stage)();
  tell(status);
  return status;
}

} // namespace

Exit pack(const Options& options, const Console& console) {
  return Packing(options, console).run();
}

} // namespace svod::packager
