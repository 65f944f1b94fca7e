// Random valid graphs for property tests: every op of ops.def but call, several dtypes,
// small shapes with extents of 1 and odd ones, and values that keep comparisons
// meaningful (below).
#pragma once

#include "compiler/support/splitmix.h"
#include "tests/support/compare.h"

#include <functional>

namespace svod::test {

// Seeds mean the same everywhere.
class Random {
public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() { return next_splitmix(state_); }
  // In [0, bound).
  int64_t below(int64_t bound) { return static_cast<int64_t>(next() % uint64_t(bound)); }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool chance(int percent) { return below(100) < percent; }

private:
  uint64_t state_;
};

struct RandomGraph {
  Graph graph;
  std::vector<Tensor> inputs;
  // By node: 0 where every rewrite must give the same bits, because every way of
  // computing the value is exact; else how far its elements may move when operations are
  // reordered.
  std::vector<double> tolerance;
};

struct RandomGraphOptions {
  int nodes = 24; // drawn ones; idioms add some
  int64_t max_elements = 400;
  // Extents around the sizes of vectors and tiles, and contractions of real size.
  bool large = false;
};
RandomGraph random_graph(uint64_t seed, const RandomGraphOptions& options = {});

// Few nodes, with extents that leave several tiles and remainders.
inline RandomGraph large_graph(uint64_t seed) {
  RandomGraphOptions options;
  options.nodes = 12;
  options.max_elements = 6000;
  options.large = true;
  return random_graph(seed, options);
}

// The smallest graph found for which `fails` still holds: outputs are dropped, and nodes
// become inputs with the value they had.
RandomGraph shrink(RandomGraph failing,
                   const std::function<bool(const RandomGraph&)>& fails);

// The outputs of `changed` against those of the graph as generated. Empty when they
// agree.
std::string compare_outputs(const RandomGraph& original, const Graph& changed);

} // namespace svod::test
