// A self-test for a device: C source with a model's inputs and expected outputs in it,
// which runs the packed library and says PASS or FAIL.
#pragma once

#include "compiler/ir/evaluate.h"
#include "packager/artefact/image.h"

#include <string>

namespace svod::packager {

struct TestVectors {
  std::vector<Tensor> inputs, outputs; // in the order of the entry's
};

// `prefix`: of the library's names; `header`: the file it is declared in. C99, and
// warning-free as such.
std::string testbench_text(const std::string& prefix, const std::string& header,
                           const ImageEntry& entry, const TestVectors& vectors);

} // namespace svod::packager
