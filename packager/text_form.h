// Text forms, as --emit prints them.
#pragma once

#include "compiler/codegen/kernels.h"
#include "packager/options.h"

namespace svod::packager {

// The pass whose result the form is the text of; null: it is that of the kernels.
const char* pass_of_form(Output form);

// C++ or assembly. What the compiler refused is in `error`.
std::string kernels_text(const Options& options, const codegen::Kernels& kernels,
                         std::string& error);

} // namespace svod::packager
