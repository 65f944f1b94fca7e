// The property every kernel has to have: what it computes is what the evaluator computes.
#pragma once

#include "compiler/support/target.h"
#include "tests/support/random_graph.h"

namespace svod::codegen {
struct Kernels;
}

namespace svod::test {

// A target of this machine with one level: of x86-64's levels, or with vectors of other
// lengths, as other targets have them.
struct LevelChoice {
  const char* name; // "native", "x86-64-v2"
  int lanes = 0;    // 0: the level's own
};
// Nothing where this machine cannot run it.
std::optional<Target> target_for(const LevelChoice& choice);

// What goes wrong when the kernels run on the graph's inputs; empty when nothing.
std::string check_answers(const RandomGraph& random, const codegen::Kernels& kernels,
                          const Target& target);

// What goes wrong between the graph and the values of its kernels; empty when nothing.
// `overlaps`: results lie on what their kernels read, where they can; counts them.
// `streams`: kernels take turns row by row, whatever it costs; counts such runs of them.
std::string check_kernels(const RandomGraph& random, const Target& target,
                          size_t* overlaps = nullptr, size_t* streams = nullptr);

} // namespace svod::test
