// Convolutions that read the model's picture where it lies, past its edges too.
#pragma once

#include "compiler/contraction/contraction.h"

namespace svod::select {

// Whether windows over the operand leave what `pad`, one of its views, has padded at the
// first and last position of each axis only, and these positions are few: loops then emit
// them apart (ends_apart), and no padded copy is needed.
bool edges_apart(const Graph& g, const Contraction& c, const Operand& operand, NodeId pad,
                 int lanes);

} // namespace svod::select
