// The conditions and helper functions that the rows of rules.def name.
// The words of a rule are constants, written small so that a row reads as algebra.
// NOLINTBEGIN(readability-identifier-naming)
#pragma once

#include "compiler/rewrite/rule.h"

namespace svod::rewrite {

// Conditions (rules_algebra.cpp). Types are those of the root's elements.
extern const Condition always, numbers, integers, floats, f32, f32_or_f64, booleans,
    unsigned_integers;
// The last bits of a float may change here. Rules without this condition give the same
// bits, but for the sign of zeros.
extern const Condition rounds;
Condition known(pattern::Letter letter); // when packing
Condition is_product(pattern::Letter letter);
Condition same_axes(pattern::Letter a, pattern::Letter b);
// Of every element of a known node.
Condition positive(pattern::Letter c);
Condition powers_of_two(pattern::Letter c); // whose inverses the type holds
// Every value of x's type is one of y's, and none changes on its way to the root's.
Condition loses_nothing(pattern::Letter x, pattern::Letter y);
// A cast of an f32 to the root's type, of 8 or 16 bits, cuts at least as low as a minimum
// with c, or as high as a maximum with it.
extern const Condition cuts_below_c, cuts_above_c;
// A sum of products, one factor of which is known (rules_weights.cpp).
Condition is_contraction(pattern::Letter y);
extern const Condition worth_folding;

// e / sum(e) with e = exp(x - max(x)): z is e, y the sum, w the maximum.
pattern::Pattern exp_over_sum();

// min(max(x + c, y), z), neither of which is used elsewhere.
pattern::Pattern clamped_sum();

// Its argument, where no element is infinite, NaN, 0 or so small that it has fewer bits.
extern const pattern::Helper normal;
// clamped_sum() / d as a clamp of x / d + c / d, where y and z are known and c
// is smaller than what lies between them: then x / d rounds by no more than a result
// does.
extern const pattern::Helper clamp_of_quotients;
// simple_power of the first argument to the second, a number.
extern const pattern::Helper power;
// The root view of an argument that y, an expand, repeats (rules_views.cpp).
extern const pattern::Helper reshaped_small, permuted, sliced_small;
// The root slice, of what it reads of its input.
extern const pattern::Helper part_of_concat, inside_of_pad;
// The root concat, with fewer inputs.
extern const pattern::Helper without_inner_concats, with_slices_joined;
// What gather(x, y) reads, where that is a slice.
extern const pattern::Helper regular_slice;
// scatter(x, y, z) as z between two parts of x, where its rows replace neighbours.
extern const pattern::Helper with_rows_between;
// The root reduction, over the axes of y as well; before an expand repeats.
extern const pattern::Helper over_axes_of_both, reduced_small;
// A contraction times c, as a contraction with other weights (rules_weights.cpp).
extern const pattern::Helper with_scaled_weights;
// What a known node evaluates to.
extern const pattern::Helper folded;

} // namespace svod::rewrite
// NOLINTEND(readability-identifier-naming)
