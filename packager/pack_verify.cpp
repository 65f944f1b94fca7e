// A pack is tried before it has its name.
#include "packager/packing.h"

#include "packager/artefact/link_output.h"
#include "packager/firmware/verify_firmware.h"
#include "packager/verify/bisect.h"

#include <filesystem>

namespace svod::packager {

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

// Random data is made for each entry; data in files is for the entry that it fits.
Exit Packing::verify_with(const std::vector<std::string>& runner,
                          const std::vector<std::string>& program,
                          const VerifyChoice& choice) {
  Exit status = verify_program(runner, program, choice, *front_, console_, verified_);
  if (choice.name != "random") return status;
  for (size_t i = 0; i < sets_.size() && status == Exit::Done; i++)
    status =
        verify_program(runner, program, choice, *sets_[i]->front_, console_, verified_);
  return status;
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
  if (!takes_pictures_of(choice)) return verify_own_inputs(choice);
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
    return verify_with(*runner, program, choice);
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
  return verify_with(*runner, {program->temporary()}, choice);
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
  ObjectOptions build = object_options(StubKind::Library);
  build.place = WeightPlace::Embed; // kernels are called one by one, on the processor
  build.device = nullptr;
  BisectTask task{options_, *front_,   *kernels_, fused_,
                  build,    contents_, data,      verified == Exit::VerifyMismatch};
  if (options_.json || !options_.report.empty()) task.accuracy = &accuracy_;
  const Exit status = bisect(task, console_);
  return status == Exit::Done ? verified : status;
}

} // namespace svod::packager
