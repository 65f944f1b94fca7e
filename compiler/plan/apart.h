// How far a result has to lie from what its kernel reads, so that it may take the place
// of that while it is read.
#pragma once

#include "compiler/plan/plan.h"

#include <optional>

namespace svod::plan {

// In bytes: the result begins at least `below` before what is read, or at least `above`
// behind it. As long as they share none, these are their sizes.
struct Apart {
  uint64_t below = 0, above = 0;
};

// Of two arguments of a kernel that has its levels. None where they have to share no
// byte.
std::optional<Apart> least_apart(const ScheduledKernel& kernel, uint32_t read,
                                 uint32_t written);

// Likewise of the temporaries that a stream's launches read and write, each of them one.
std::optional<Apart> least_apart(const Stream& stream, SlotId read, SlotId written);

// Whether the kernel, launched by this step, reads all that it writes over before it does
// so, where the plan has its arguments now.
bool stays_apart(const Plan& plan, const ScheduledKernel& kernel, const Step& step);

} // namespace svod::plan
