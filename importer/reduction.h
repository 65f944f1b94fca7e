// The axes of a reduction, for rules_reduce.cpp and bounded_reduce.cpp.
#pragma once

#include "importer/rule.h"

namespace svod {

// From the attribute or the input, as the opset has it; all axes where none are named.
std::vector<int64_t> reduction_axes(NodeImport& node);

} // namespace svod
