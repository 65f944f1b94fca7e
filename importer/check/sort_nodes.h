// Nodes in an order in which every value is made before it is used.
#pragma once

#include "importer/model/model.h"

namespace svod::importer {

// The specification asks for sorted nodes, and tools that edit graphs often leave them
// unsorted. A graph that is in order, or that has a cycle, stays as it is; check_model()
// reports the latter. True: nodes of this graph or of one in its attributes were moved.
bool sort_nodes(ModelGraph& graph);

} // namespace svod::importer
