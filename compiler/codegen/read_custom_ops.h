// Reads the operators that a C++ file of the user's defines.
#pragma once

#include "compiler/ir/custom_op.h"

namespace svod::codegen {

// The file's operators in the order of their functions. What is wrong with the file is in
// `faults`, each with file, line and column: text that does not compile, an annotation or
// parameter outside the contract (docs/custom-operators.md), or more than a computation
// (check_cpp.h). A file without an operator is a fault.
std::vector<CustomOp> read_custom_ops(const std::string& path, const std::string& text,
                                      std::vector<std::string>& faults);

} // namespace svod::codegen
