// Bounds of numbers that are only known when the program runs. A buffer for a size that
// depends on data must be as large as that size can get.
#pragma once

#include "compiler/ir/graph.h"

#include <map>

namespace svod::importer {

struct ValueRange {
  double low = 0, high = 0; // one of them may be infinite
};

// What a range rests on. A float may be NaN, or rounded: of an integer that comes from
// one the arithmetic proves nothing, and a run must look whether it lies within.
enum class Trust : uint8_t { Integers, Floats };

// What is known of nodes whose graph does not show it: inputs of a body, results of a
// region.
class RangeTable {
public:
  static constexpr int64_t kMostElements = 16; // that have ranges of their own
  // One range, or one per element.
  void add(NodeId id, Trust trust, std::vector<std::optional<ValueRange>> ranges) {
    ranges_[{id, trust}] = std::move(ranges);
  }
  std::optional<ValueRange> find(NodeId id, Trust trust, int64_t element) const;

private:
  std::map<std::pair<NodeId, Trust>, std::vector<std::optional<ValueRange>>> ranges_;
};

// The range of one element (row-major number) of a node; none when nothing is known.
inline constexpr int64_t kAnyElement = -1;
std::optional<ValueRange> range_of(const Graph& g, NodeId id, int64_t element = 0,
                                   Trust trust = Trust::Integers,
                                   const RangeTable* table = nullptr);

// a - b of two integers of one element, where their arithmetic shows it.
std::optional<int64_t> difference(const Graph& g, NodeId a, NodeId b);

// What a - b of two numbers is meant to be at most, where a is the smallest of several of
// which one is b and a known number: the end of a part that may be cut short, as in
// min(n, b + 1). Counted in floats it may come out as more: a run must look.
std::optional<double> most_beyond(const Graph& g, NodeId a, NodeId b);

} // namespace svod::importer
