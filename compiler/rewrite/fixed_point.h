// Quantisations of integers without floats. A layer of a quantised network ends in
// round(scale * sum + bias) + zero, clamped to a byte, where `sum` is an integer; a
// maximum of bytes is one of floats that are bytes times a scale; an addition of two
// layers is one of bytes, each times a scale. On a core without floats those conversions
// are most of its instructions, and on a small one with them still a third. Here each
// becomes a multiplication of 32 bits, an addition and a shift (fixed_multiplier.h).
#pragma once

#include "compiler/ir/graph.h"

namespace svod::rewrite {

struct FixedPointReport {
  int64_t quantisations = 0; // that became integers
  // The names of ONNX nodes of which some values may fall one step aside.
  std::vector<std::string> one_step;
  int64_t in_floats = 0; // quantisations left as they are
};

struct FixedPointOptions {
  bool exact = false; // only where every value stays what it is
};

// The graph with quantisations of integers computed in integers, as far as they are
// monotone and their numbers are known when packing.
Graph fixed_point(const Graph& graph, const FixedPointOptions& options = {},
                  FixedPointReport* report = nullptr);

} // namespace svod::rewrite
