// A product and a sum are one instruction where the target has it. What multiplies and
// adds by itself (a reduction's step, a polynomial) is written so from the start; this is
// for the rest: transforms of Winograd, scales with a bias, gates.
#pragma once

#include "compiler/kernel/fused_graph.h"

namespace svod::select {

// Makes a b + c of a product that only a sum reads, which rounds once instead of twice.
// Kernels whose results are rounded to integers stay as they are.
void contract_products(FusedGraph& fused);

} // namespace svod::select
