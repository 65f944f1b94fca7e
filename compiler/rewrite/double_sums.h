// Sums of floats in double precision, for networks that quantise. A float beside the
// middle of two steps becomes one byte or the next by its last bit, and every level adds
// with vectors of its own length, in another order. In double such sums differ by 1e-16
// of their largest term, so that the float they are rounded to is the same but in one of
// some hundred millions, and what is quantised is the same byte on every processor.
#pragma once

#include "compiler/ir/graph.h"

namespace svod::rewrite {

// Whether floats of the graph, or of its regions' bodies, are rounded to integers of at
// most 16 bits.
bool quantises(const Graph& graph);

// The graph with every sum of f32 made in f64 and rounded once, the products that it adds
// too: those of floats are exact there. Known factors stay f32 and are widened as they
// are read.
Graph sums_in_double(const Graph& graph);

} // namespace svod::rewrite
