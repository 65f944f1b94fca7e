// A self-test for a device: C source with a model's inputs and expected outputs in it,
// which runs the packed library and says PASS or FAIL.
#pragma once

#include "compiler/ir/evaluate.h"
#include "packager/artefact/image.h"

#include <string>
#include <string_view>

namespace svod::packager {

struct TestVectors {
  std::vector<Tensor> inputs, outputs; // in the order of the entry's
};

// What begins a line of a test that counts; the number of a program and what it took
// follow, both hexadecimal.
constexpr std::string_view kProfileLine = "PROFILE ";

// `prefix`: of the library's names; `header`: the file it is declared in. C99, and
// warning-free as such. Where `programs` of the library are counted, which has to call
// svod_profile(), SVOD_NOW reads a counter of the device.
std::string testbench_text(const std::string& prefix, const std::string& header,
                           const ImageEntry& entry, const TestVectors& vectors,
                           size_t programs = 0);

} // namespace svod::packager
