// Random graphs in the manner of real models: convolutions, poolings, normalisations,
// attention, concats and residuals over channels and images wide enough that vectors,
// register tiles, blocked layouts, borders and chunks all occur. Every step goes through
// the operator rules of importer, so the graphs look as imported ones do.
#pragma once

#include "tests/support/random_graph.h"

namespace svod::test {

struct ModelGraphOptions {
  int steps = 6; // operators drawn, each with what follows it
  // One large picture, and only layers that make pictures of it row by row.
  bool pictures = false;
  int64_t max_products = 400000; // of one contraction: the evaluator makes them all
};

// Values stay of the order of one, and only functions without jumps are drawn; so one
// tolerance suits every element of every output.
RandomGraph model_graph(uint64_t seed, const ModelGraphOptions& options = {});

} // namespace svod::test
