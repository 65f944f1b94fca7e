// How a reduction combines two values, in the text of kernels.
#pragma once

#include "compiler/ir/graph.h"

#include <string>

namespace svod::codegen {

// The struct of the prelude that combines, and the value that changes no other.
std::string combine_of(Op op);
std::string identity(Op op, DType dtype);

} // namespace svod::codegen
