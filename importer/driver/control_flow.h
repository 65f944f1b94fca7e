// What If, Loop and Scan have in common. Internal to this folder.
#pragma once

#include "importer/driver/graph_import.h"

namespace svod::importer {

// The attribute of this name and type, or null.
const ModelAttribute* find_attribute(const ModelNode& node, std::string_view name,
                                     AttributeType type);

// A loop that makes more nodes than this is a region, when it can be.
inline constexpr int64_t kUnrolledNodes = 2000;

// One list per result of a body, over its iterations.
using Columns = std::vector<std::vector<NodeId>>;

} // namespace svod::importer
