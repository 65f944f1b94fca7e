// The self-test of a WebAssembly module, for Node.
#pragma once

#include "packager/firmware/testbench.h"

namespace svod::packager {

// The test as a file, the vectors as files beside it: it loads model.mjs of that folder,
// runs it once and prints PASS or what is wrong. The test's name.
std::string write_module_test(const std::string& folder, const TestVectors& vectors);

} // namespace svod::packager
