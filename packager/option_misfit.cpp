// A rule is a row: when it is broken, and what is said then.
#include "packager/option_misfit.h"

#include "importer/images/image_spec.h"
#include "packager/firmware/device_test.h"
#include "packager/firmware/emulated_board.h"
#include "packager/verify/verify.h"

#include <initializer_list>

namespace svod::packager {

namespace {

struct Rule {
  bool broken;
  std::string what;
};

std::string first_broken(std::initializer_list<Rule> rules) {
  for (const Rule& rule : rules)
    if (rule.broken) return rule.what;
  return "";
}

bool is_program(const Options& options) { return options.emit == Output::Executable; }

bool runs_data(const Options& options) {
  return !options.verify.empty() && options.verify != "off";
}

// What says how it is found out or told what was packed.
std::string of_reports(const Options& o) {
  const bool both_to_stdout = o.verb == Verb::Pack && o.is_text() && o.output.empty() &&
                              o.json == "-" && !o.dry_run;
  return first_broken({
      {o.bisect && o.is_text(), "--bisect is for programs and libraries"},
      {o.bisect && o.verify == "off", "--bisect needs what --verify=off denies"},
      {both_to_stdout, "--json and the text of --emit would both go to stdout; give one "
                       "of them a file (--json=FILE, -o FILE)"},
      {o.explain && o.emit != Output::Fused && !o.json,
       "--explain is for --emit=fused, or for a pack's --json"},
      {!o.report.empty() && o.is_text(), "--report is for programs and libraries"},
      {o.profile &&
           (o.target.kind != TargetKind::Bare || !runs_data(o) || !o.runner.empty()),
       "--profile is for firmware libraries with --verify in an emulator; a program has "
       "it as an option"},
  });
}

// What is for some artefacts alone.
std::string of_artefacts(const Options& o) {
  const bool in_folder = o.layout != FolderLayout::None;
  return first_broken({
      {!o.pools.empty() && !(o.emits_run() && o.is_library()),
       "--pool is for firmware libraries (--target cortex-m7 -o libNAME.a)"},
      {!o.pools.empty() && (runs_data(o) || in_folder),
       "--pool: --verify and folders for build systems call a library that has one "
       "arena; pack without --pool for them"},
      {o.pkg_config && (!o.is_library() || o.emit >= Output::Module || in_folder),
       "--pkg-config is for libraries (-o libNAME.a)"},
      {o.self_check && (!o.is_library() || o.emit == Output::Source),
       "--self-check is for libraries (-o libNAME.a); a program has it as an option"},
      {o.self_check && o.weights == WeightPlace::Expand,
       "--self-check reads a library's weights as they lie in it, which with "
       "--weights=expand they do not; a program has it as an option"},
      {o.weights == WeightPlace::File && !is_program(o),
       "--weights=file is for executables"},
      {o.weights == WeightPlace::Expand &&
           (o.target.kind != TargetKind::Linux || o.emit == Output::Source || in_folder),
       "--weights=expand is for programs and libraries of Linux, which have memory to "
       "make weights in; firmware, modules and source take embed, and --max-weights or "
       "--accuracy exact bounds what fast forms add there"},
      {o.weights == WeightPlace::Zstd && !is_program(o),
       "--weights=zstd is for executables, which have memory to expand weights into; a "
       "library takes embed or expand"},
  });
}

// What stays from run to run has one place.
std::string of_kept(const Options& o, const std::string& option) {
  return first_broken({
      {o.device.has_value(), option + " is for the processor: leave out --device"},
      {!o.pools.empty(), option + " goes with one arena: leave out --pool"},
  });
}

// The run begins in C.
std::string of_changes(const Options& o) {
  if (!o.skip_unchanged) return "";
  if (!o.is_library() || o.emit >= Output::Module || o.layout != FolderLayout::None)
    return "--skip-unchanged is for libraries (-o libNAME.a), neither modules, source "
           "nor folders for build systems";
  return first_broken({
      {!o.sets.empty(), "--skip-unchanged goes with one set of shapes: give each --shape "
                        "once, and neither --entry nor --dim"},
      {!o.import.sizes.empty(),
       "--skip-unchanged goes with fixed sizes: --shape instead of --dim"},
      {true, of_kept(o, "--skip-unchanged")},
  });
}

std::string of_states(const Options& o) {
  if (o.import.states.empty()) return "";
  if (std::string misfit = of_kept(o, "--state"); !misfit.empty()) return misfit;
  return first_broken({
      {!o.sets.empty() && o.import.sizes.empty(),
       "--state goes with one set of shapes: give each --shape once, and no --entry; "
       "--dim NAME=0..N/STEP makes sets for less of what a run decides"},
      {o.target.kind == TargetKind::Wasm,
       "--state is for programs, libraries and source, not for modules"},
      {o.bisect,
       "--state is left out to look for a wrong kernel: --bisect gives each run "
       "all inputs"},
  });
}

// A picture is decoded where there is memory for it, and has one size.
std::string of_images(const Options& o) {
  if (o.import.images.empty()) return "";
  return first_broken({
      {o.target.kind != TargetKind::Linux || o.emit == Output::Source ||
           o.layout != FolderLayout::None,
       "--image: it is for programs and libraries of Linux, which have memory to decode "
       "a picture in; firmware, modules, source and folders for a build system take the "
       "model's own input"},
      {o.device.has_value(), "--image is for the processor: leave out --device"},
      {!o.sets.empty(), "--image goes with one set of shapes: give each --shape once, "
                        "and no --entry"},
      {!o.import.sizes.empty(),
       "--image goes with fixed sizes: --shape instead of --dim"},
      {!o.import.states.empty(), "--image does not go with --state"},
      {o.bisect, "--bisect is for the model's own inputs: leave out --image to look for "
                 "a wrong kernel"},
      {o.import.picture_height > importer::kMostPicturePixels / o.import.picture_width,
       "--limit-image: with --image height times width must be at most " +
           std::to_string(importer::kMostPicturePixels)},
  });
}

std::string of_tuning(const Options& o) {
  if (!o.tune_minutes) return "";
  if (o.is_text() || o.emit == Output::Source)
    return "--tune is for programs and libraries; --tuning FILE shows in a text what it "
           "found";
  const Target& target = o.target;
  if (target.kind == TargetKind::Wasm)
    return "--tune: " + target.alias + " modules are not measured";
  if (!o.runner.empty()) return "";
  if (target.kind == TargetKind::Bare && board_emulator(target).empty()) {
    const EmulatedBoard* board = find_board(target);
    return "--tune: " + target.alias + " runs in " +
           (board ? board->emulator : "no emulator") +
           ", which is not here; --runner CMD names a command that is given a folder "
           "with "
           "a self-test and prints what the device does";
  }
  if (target.kind == TargetKind::Linux && !runs_here(target))
    return "--tune: " + target.alias +
           " programs do not run here; --runner CMD names a command that is given one "
           "with '--profile=json' and prints what that prints, as 'ssh' to such a "
           "machine "
           "does from a script";
  return "";
}

} // namespace

std::string option_misfit(const Options& options) {
  for (std::string (*const of)(const Options&) :
       {of_reports, of_artefacts, of_changes, of_states, of_images, of_tuning,
        sets_fault})
    if (std::string fault = of(options); !fault.empty()) return fault;
  return "";
}

} // namespace svod::packager
