// Whether fast forms of a contraction are accurate enough for its weights, and whether
// they stay so for other ones.
#pragma once

#include "compiler/ir/value_facts.h"
#include "compiler/select/strassen.h"
#include "compiler/select/winograd.h"

namespace svod::select {

// Whether the error of a form is within bounds, which is noted where it is; it is told
// then how to make its sums.
bool is_accurate(const Graph& g, const Convolution& c, WinogradForm& form);
bool is_accurate(const Graph& g, const MatrixProduct& p);

// Whether what a fact of accuracy says is true of its value in `values`: by the bounds of
// the choice. A form that was not chosen is not asked for again: other weights may miss
// it.
bool stays_accurate(const Graph& values, const ValueFact& fact);

} // namespace svod::select
