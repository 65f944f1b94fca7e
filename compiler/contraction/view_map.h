// Which element of a tensor is read at each position of a loop nest, through views.
//
// The positions are a box, the domain: one axis per loop. A view maps a position to one
// coordinate per axis of its result, a constant plus a step per axis of the domain.
// Every view composes with such a map: an expand drops a coordinate's steps, a slice
// scales and shifts it, a window adds two coordinates, a pad shifts one and leaves a
// guard. A reshape that merges axes adds their coordinates up; one that splits an axis
// takes a coordinate apart, and the axes of the domain with it where their steps fall on
// both sides.
#pragma once

#include "compiler/ir/graph.h"

namespace svod {

// An axis of the domain: a shape's axis, or a part of one.
struct DomainAxis {
  int64_t extent;
  size_t whole;   // the axis of the shape
  int64_t stride; // one step here is so many along `whole`
};
using Domain = std::vector<DomainAxis>;

// constant + sum of steps[i] * position along axis i. Axes of extent 1 have step 0.
struct Coordinate {
  int64_t constant = 0;
  Shape steps;
};

// Where `at` is outside of [0, extent), a pad's element is read instead of the tensor's.
struct Guard {
  Coordinate at;
  int64_t extent;
  uint64_t bits;
};

// One coordinate per axis of a tensor. The first guard that does not hold decides; where
// one does not, the coordinates may be outside of the tensor.
struct ViewMap {
  std::vector<Coordinate> at;
  std::vector<Guard> guards;
};

// Axis `axis` becomes two, of extent / inner and of inner positions.
struct AxisCut {
  size_t axis;
  int64_t inner;
};
void cut_axis(const AxisCut& cut, Domain& domain);
void cut_axis(const AxisCut& cut, ViewMap& map);

Domain domain_of(const Shape& shape);
// The map of a tensor that has the shape the domain was made of.
ViewMap whole_domain(const Domain& domain);

// The map of the input of `view`, given that of its result. The domain is cut where a
// reshape asks for it, and each cut is added to `cuts`, for maps that were made before.
// nullopt, with domain and cuts as they were: no view, or a reshape that splits an axis
// where a coordinate carries from one part into the next.
std::optional<ViewMap> map_below(const Graph& g, NodeId view, ViewMap map, Domain& domain,
                                 std::vector<AxisCut>& cuts);

// Whether positions that differ along `axis` may read different elements, or a pad.
bool varies_along(const ViewMap& map, size_t axis);

// Whether positions that differ along axes the map varies along always read different
// elements. Steps that interleave, as those of dilated taps may, count as overlapping.
bool reads_apart(const ViewMap& map, const Domain& domain);

// The axes of the domain, outermost first, that a coordinate runs through from 0 to
// extent - 1, each position once; none for an extent of 1. nullopt where it does not.
std::optional<std::vector<size_t>> run_of(const Coordinate& at, int64_t extent,
                                          const Domain& domain);

// The smallest and the largest value.
struct CoordinateRange {
  int64_t low, high;
};
CoordinateRange range_of(const Coordinate& at, const Domain& domain);

} // namespace svod
