// Operators that take tensors whose sizes depend on data: the rows of bounded_ops.def.
#pragma once

#include "importer/bounded/bounded.h"

namespace svod::importer {

// Null for an operator without a row.
BoundedRule find_bounded_rule(std::string_view domain, std::string_view name);

} // namespace svod::importer
