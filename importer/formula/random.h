// Random numbers by counting: word i of a stream is a fixed function of the seed, the
// stream and i, so that every run of a program, on every target and with any number of
// threads, draws the same numbers.
//
// The function is Philox2x32 with 10 rounds (Salmon, Moraes, Dror, Shaw: "Parallel Random
// Numbers: As Easy as 1, 2, 3", SC 2011), written in ops of the graph.
#pragma once

#include "importer/formula/expression.h"

namespace svod::importer {

// What tells one sequence of numbers from another.
struct RandomStream {
  uint32_t seed = 0;   // the cipher's key
  uint32_t number = 0; // the upper word of its counter
};

// The stream of a node: its `seed` attribute, or, without one, a seed that no attribute
// can spell and the node's position in the model. In an unrolled loop each iteration
// draws numbers of its own, with a seed too.
RandomStream stream_of(const NodeImport& node);

// The two words of each counter; `shape` has fewer than 2^32 elements.
struct RandomWords {
  Expr first, second;
};
RandomWords random_words(Graph& g, RandomStream stream, const Shape& shape);

// In [0, 1): multiples of 2^-24, for f64 of 2^-53. `dtype` is F32 or F64.
Expr random_uniform(Graph& g, RandomStream stream, const Shape& shape, DType dtype);
// Mean 0, deviation 1, by the transform of Box and Muller over 32 bits of radius and 32
// of angle: no value is further out than 6.7.
Expr random_normal(Graph& g, RandomStream stream, const Shape& shape, DType dtype);

} // namespace svod::importer
