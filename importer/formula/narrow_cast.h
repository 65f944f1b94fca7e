// Casts to the floats of eight bits and less, whose rules for what is too large are
// attributes of Cast, CastLike and QuantizeLinear.
#pragma once

#include "importer/formula/expression.h"

namespace svod::importer {

enum class RoundMode { Up, Down, Nearest };
struct CastRules {
  bool saturate = true;
  RoundMode round = RoundMode::Up; // to f8e8m0; the others round to nearest even
};

// The attributes of a node that is known to have them.
CastRules cast_rules(NodeImport& node, bool has_saturate, bool has_round_mode);
Expr narrow_cast(Expr x, DType to, const CastRules& rules);

} // namespace svod::importer
