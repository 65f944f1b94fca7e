// Which version of an operator a node was written for.
#pragma once

#include "importer/model/model.h"

namespace svod::importer {

// `opset` where its form of the operator fits the node's attributes and number of inputs;
// else the nearest version of the domain whose form does; 0 when none does, or when the
// operator is none of the table.
int64_t fitting_version(const ModelNode& node, const std::string& domain, int64_t opset);

} // namespace svod::importer
