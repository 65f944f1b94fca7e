// --verify of a firmware library: the self-test, run on an emulated board or by the
// user's runner.
#pragma once

#include "packager/artefact/header_file.h"
#include "packager/artefact/objects.h"
#include "packager/verify/verify.h"

namespace svod::packager {

struct PackedFirmware {
  const Options& options;
  const Front& front;
  const Objects& objects;
  const HeaderFacts& header;
  const codegen::Kernels& kernels;
};

// Done also where nothing can run it, after a note that says so.
Exit verify_firmware(const PackedFirmware& packed, const VerifyChoice& choice,
                     const Console& console);

} // namespace svod::packager
