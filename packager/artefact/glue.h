// The one source that a package has beside the stub and its kernels: where image and
// weights are, which CPU levels are packed, and the switch that calls a kernel by number.
#pragma once

#include "compiler/codegen/kernels.h"

#include <optional>
#include <string>
#include <vector>

namespace svod::packager {

// What there is for a GPU of an entry: bytes of its image and kernels, and of the weights
// of all entries; and the numbers that programs of its plan have in the processor's,
// where the processor runs them.
struct DeviceSizes {
  uint64_t image = 0, weights = 0, programs = 0;
};
using ProgramsHere = std::vector<std::pair<uint32_t, uint32_t>>;

struct GlueData {
  uint64_t image_bytes = 0;
  uint64_t weight_bytes = 0;
  std::string weights;                   // symbol; empty: none are embedded
  bool far = false;                      // only the weights' end lies near the code
  std::vector<std::string> entries = {}; // names, of a program with several
  std::vector<DeviceSizes> devices = {}; // by entry; none without --device
  std::vector<ProgramsHere> programs_here = {}; // of the devices' plans
  std::optional<uint64_t> stored = {}; // bytes of weights that are in another form
};

std::string glue_text(const Target& target, const codegen::Kernels& kernels,
                      const GlueData& data);

} // namespace svod::packager
