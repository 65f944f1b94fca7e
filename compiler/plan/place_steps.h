// Which steps of a GPU's plan the processor runs, and what is copied between them.
#pragma once

#include "compiler/plan/plan.h"

namespace svod::plan {

// Whether every step can run on either side: no loop and no condition is left to the run,
// since their bodies have kernels for one side alone.
bool is_straight(const Plan& plan);

// Functions of the user's and of our own in C++ run on the processor, all else on the
// GPU. What the processor's steps read is copied down in front of the first of them in a
// row, and what they write up behind the last, each once, and only what a step of the
// other side needs. Inputs and weights lie on both sides, and so need no copy; an output
// that no step of the GPU touches is where the caller gets it. Temporaries that the
// processor touches get a place in its memory. A plan without such functions, or one that
// is not straight, stays as it is.
void place_steps(Plan& plan);

// Of a run: the graphs that it is, each as long as the GPU's steps follow each other, and
// what is copied between them, beside the inputs before and the outputs behind.
struct Crossings {
  int64_t graphs = 0, copies = 0, bytes = 0;
};
Crossings crossings_of(const Plan& plan);

// Whether steps of the processor touch an input or output, and no others: it is not
// copied.
bool is_only_here(const Plan& plan, SlotId port);

} // namespace svod::plan
