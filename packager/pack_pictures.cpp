// A model with --image is verified by the data that there is: what was made for the
// model's own input is no picture. So the model is packed once more without --image, and
// that program is tried, before anything is written: it has the same kernels behind the
// pictures.
#include "packager/packing.h"

#include "packager/verify/read_inputs.h"
#include "packager/verify/run_program.h"

namespace svod::packager {

bool Packing::takes_pictures_of(const VerifyChoice& choice) const {
  if (options_.import.images.empty() || choice.name == "random") return true;
  std::string error;
  return read_inputs(first_set(choice.name), *front_, options_.import.limits, error)
      .has_value();
}

Exit Packing::verify_own_inputs(const VerifyChoice& choice) {
  if (!choice.asked) {
    console_.note("not verified, since the test data beside the model are of its own "
                  "input and no pictures; --verify " +
                  choice.name + " verifies the model without --image first");
    return Exit::Done;
  }
  const TemporaryFolder folder;
  if (folder.path().empty()) return file_error("$TMPDIR", "no folder can be made there");
  Options own = options_;
  own.import.images.clear();
  own.emit = Output::Executable;
  own.output = folder.path() + "/model";
  own.weights = WeightPlace::Embed;
  own.verify = choice.name;
  own.json.reset();
  own.report.clear();
  own.deps.clear();
  own.max_ram.reset();
  own.max_flash.reset();
  own.pkg_config = own.self_check = own.explain = false;
  own.tune_minutes.reset();
  own.quiet = true;
  const Console console(own);
  Packing packing(own, console);
  const Exit status = packing.run();
  for (const Diagnostic& said : console.said()) console_.keep(said);
  verified_ = packing.verified_;
  if (status == Exit::Done)
    console_.note("verified without --image, since " + choice.name +
                  " is of the model's own input");
  return status;
}

} // namespace svod::packager
