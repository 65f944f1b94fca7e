// The rules of bounded_ops.def, declared from the table.
#pragma once

#include "importer/bounded/bounded.h"

namespace svod::importer {

#define BOUNDED_OP(domain, name, rule) void rule(NodeImport& node, Rule of_operator);
#include "importer/operators/bounded_ops.def"

} // namespace svod::importer
