// A firmware library's run: the plan as C++ that calls one kernel after the other, with
// all offsets as constants, and the functions of the library's header around it.
#pragma once

#include "compiler/codegen/kernels.h"
#include "packager/artefact/image.h"

#include <map>
#include <string>

namespace svod::packager {

struct StraightRun {
  std::string prefix; // of the library's names
  const codegen::Kernels& kernels;
  const ImageContents& contents; // one entry
  bool alone = false; // in one file behind all that it calls, which nothing declares
  // Kernels that others there are the same as, by symbol.
  std::map<std::string, std::string> same = {};
  // It calls svod_profile(program) behind each kernel, and with ~0 where it begins.
  bool profile = false;
  // Launches are words (call_table.h) where reading those is at most this share of the
  // work.
  double words = 0;
};

std::string straight_run_text(const StraightRun& run);

// NAME_self_check: compares the checksums of weights and manifest.
std::string self_check_text(const std::string& prefix, const ImageContents& contents);

} // namespace svod::packager
