// Operands of a contraction in the order of axes that an algorithm is written for.
#pragma once

#include "compiler/contraction/contraction.h"

namespace svod::select {

// A node cut into pieces, which are moved and merged again. Where the axes lie in order,
// nothing is moved; where they have the shape, nothing is done.
struct Reading {
  NodeId node = kNoNode;
  Shape cut;     // extents of the pieces
  Payload order; // piece of the node per piece of the result; empty: as they are
  Shape shape;   // of the result
};

// From pieces with these names to the same names in another order.
Reading reading(NodeId node, const std::vector<size_t>& have, Shape extents,
                const std::vector<size_t>& want, Shape shape);

// The operand along the axes `want` of the contraction, outermost first, which are all it
// varies along. nullopt where no view of it has just these: a border lies in the way.
std::optional<Reading> operand_in_order(const Graph& g, const Contraction& c,
                                        const Operand& operand,
                                        const std::vector<size_t>& want, Shape shape);
// A result along the axes `have` as the sum lies. They are all it has.
Reading result_in_order(const Graph& g, const Contraction& c,
                        const std::vector<size_t>& have);

// The reading of `now`, which stands for the reading's node in g.
NodeId arranged(Graph& g, NodeId now, const Reading& reading);
// Of known values, for who notes what they are asked.
std::vector<float> known_values(const Graph& g, const Reading& reading);

} // namespace svod::select
