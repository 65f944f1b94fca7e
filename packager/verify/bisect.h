// --bisect: which kernel is the first whose result is not the evaluator's?
#pragma once

#include "packager/artefact/objects.h"
#include "packager/front.h"
#include "packager/report/console.h"
#include "packager/verify/verify.h"

namespace svod::packager {

struct BisectTask {
  const Options& options;
  const Front& front;
  const codegen::Kernels& kernels;
  const FusedGraph& fused; // that the plan was made from
  const ObjectOptions& build;
  const ImageContents& contents;
  const VerifyChoice& data;  // what is not random is read from a folder
  bool wrong_answer = false; // the packed program's
  // Asked for: what Judge::json says of the run, empty where there is no judge.
  std::string* accuracy = nullptr;
};

// Done when no kernel differs, VerifyMismatch after naming the first that does, or what
// went wrong.
Exit bisect(const BisectTask& task, const Console& console);

} // namespace svod::packager
