// What a self-test runs on and compares with.
#pragma once

#include "packager/firmware/testbench.h"
#include "packager/verify/verify.h"

namespace svod::packager {

// Of the choice's first data set, or random inputs with the evaluator's outputs. None
// when there is no such data or it has other than tensors; why is in `error`.
std::optional<TestVectors> test_vectors(const Options& options, const Front& front,
                                        const VerifyChoice& choice, std::string& error);

// The self-test of --emit=testbench, on random inputs where no data set is named. Its
// header is called as that of a library libNAME.a.
std::string selftest_text(const Options& options, const Front& front,
                          const ImageContents& contents, std::string& error);

} // namespace svod::packager
