// What a graph costs by a roofline, before anything is cut into kernels: operations,
// bytes that have to be read and stored, launches. In picoseconds of one core.
//
// The cost of a graph is the sum of those of its nodes, so that a search may add them up.
// That leaves out what a later stage decides: what shares a kernel, layouts, tiles. It
// tells graphs apart that need different work; it must not be asked about graphs that do
// the same work in another order.
#pragma once

#include "compiler/ir/graph.h"
#include "compiler/support/machine.h"

namespace svod::egraph {

// Whether a view that moves elements is a copy. A reader may read through it as well, so
// that is for a search which is to make fewer of them and asks a better cost afterwards.
enum class Views : uint8_t { Free, Moved };

// Of a node that depends on an input of the graph. Views cost nothing; a scalar function
// its operations; a reduction one for each element, a launch, and the store and load of
// its result. So a sum of products costs two operations for each product.
int64_t node_cost(const Graph& g, NodeId id, const Machine& machine,
                  Views views = Views::Free);
// Of a value that is known when packing, once for all who read it: its bytes.
int64_t known_cost(const Graph& g, NodeId id, const Machine& machine);

int64_t graph_cost(const Graph& graph, const Machine& machine, Views views = Views::Free);

} // namespace svod::egraph
