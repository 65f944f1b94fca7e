// Which inputs of the model a value comes from. Inputs of few elements may be fixed to
// one value, so that what they decide is known when packing (driver/fixed_inputs.cpp).
#pragma once

#include "compiler/ir/graph.h"

#include <set>

namespace svod::importer {

// Larger inputs are data, whatever they are used for.
inline constexpr int64_t kMostFixedElements = 64;

// The inputs of the graph that decide the value of `id`, or none where one of them is
// data: then knowing the others would not make the value known.
std::set<std::string> deciding_inputs(const Graph& g, NodeId id);

} // namespace svod::importer
