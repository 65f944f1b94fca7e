// The factor of a product that all lanes share, read as registers of several steps: where
// a multiply-add takes one factor as an element of a register, one load serves as many
// steps as a register has elements.
#pragma once

#include "compiler/kernel/schedule.h"

#include <optional>

namespace svod {

// Floats of a register of 128 bits, the only ones that such instructions take.
inline constexpr int kElements = 4;

// The load of such a factor, and the innermost loop of the reduction, along which its
// elements are neighbours.
struct SharedElements {
  ExprId load;
  AxisId loop;
};

// Nothing where the stage sums no products of floats, some step may not be taken, or the
// elements lie apart.
std::optional<SharedElements> shared_elements(const ScheduledKernel& kernel,
                                              const Stage& stage);

} // namespace svod
