// The axes of a reduction, as the rules and their bounded forms read them.
#pragma once

#include "importer/formula/rule.h"

namespace svod::importer {

// From the attribute or the input, as the opset has it; all axes where none are named.
std::vector<int64_t> reduction_axes(NodeImport& node);

} // namespace svod::importer
