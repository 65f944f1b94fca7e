// What a kernel takes when it computes one value of a graph from those that are stored:
// the currency in which two cuts of a graph are compared, before either has a kernel.
#pragma once

#include "compiler/ir/graph.h"

#include <functional>
#include <map>

namespace svod::explain {

// Of one value.
struct CutWork {
  double operations = 0; // of scalars and of guards; a costly function counts as several
  // Bytes of what is read: stored values, and weights.
  std::map<NodeId, int64_t> reads;
  // How often each value is evaluated that is computed on the way, of all its elements.
  std::map<NodeId, double> evaluations;
  int64_t result_bytes = 0;

  int64_t touched_bytes() const; // reads and result
};

// Work to compute `root`. The walk ends at values that are `stored`, root aside.
// A value is evaluated for every position of the reader that has the most, as the cut
// counts it. `by_rows`: what does not depend on an inner axis is there once for all of
// it.
CutWork cut_work(const Graph& graph, NodeId root, bool by_rows,
                 const std::function<bool(NodeId)>& stored);

int64_t bytes_of(const Graph& graph, NodeId node);
// Whether the elements of a view lie in memory as those of what it views do, one by one:
// a reshape, a permutation that moves no elements, a slice of the outermost axis. Others
// that somebody stores are copies.
bool lies_as_viewed(const Graph& graph, NodeId view);
// Whether a kernel of its own could compute it: no view, no number known when packing.
bool is_computed(const Graph& graph, NodeId node);
// Whether it is the product of a sum of products, which is one operation with its sum.
bool is_product_of_sum(const Graph& graph, NodeId sum, NodeId product);

} // namespace svod::explain
