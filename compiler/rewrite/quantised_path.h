// What lies between integers and a byte that is made of them by way of floats: maps with
// one known operand, views and reductions, as one function of the integers. The path
//
//   byte = cast(round(window_max((x - zero) * scale) / other_scale) + other_zero)
//
// is a function of window_max(x), since everything else rises with x and is the same for
// all elements of a window.
#pragma once

#include "compiler/ir/graph.h"

#include <array>
#include <optional>

namespace svod::rewrite {

// One step of such a function, with the operand of every channel.
struct QuantisedStep {
  enum Kind : uint8_t { AddInteger, ToFloat, Mul, Div, Add, Sub, Min, Max, Round } kind;
  NodeId operand = kNoNode; // known, extent 1 along axes where it repeats
};

// For one channel.
struct QuantisedFunction {
  struct Step {
    QuantisedStep::Kind kind;
    float number;
    int32_t integer;
  };
  std::vector<std::vector<Step>> own; // of each source
  std::vector<Step> joint;            // of their sum
  bool minus = false;                 // their difference
  int low = 0, high = 0;              // of the byte's type
  // About slopes[0] * a + slopes[1] * b + offset between clamps.
  std::array<double, 2> slopes = {};
  double offset = 0;

  // Of the sources' values, b that of the second one: before it becomes a byte, and then.
  float float_at(int64_t a, int64_t b) const;
  int at(int64_t a, int64_t b) const;
};

struct QuantisedPath {
  struct Source {
    NodeId node;         // integers of the byte's shape
    int64_t first, last; // what they can be
  };
  std::vector<Source> sources; // one, or two that are added or subtracted
  std::vector<std::vector<QuantisedStep>> own;
  std::vector<QuantisedStep> joint;
  bool minus = false;
  std::vector<std::vector<std::vector<double>>> values; // by list, step and channel

  Shape channels; // the axes along which operands differ, 1 elsewhere
  // Nothing where it is not monotone. `to` is U8 or I8.
  std::optional<QuantisedFunction> function(int64_t channel, DType to) const;
};

// Of a cast of floats to bytes. Makes the sources' nodes.
std::optional<QuantisedPath> quantised_path(Graph& g, NodeId cast);

// A concat below maps of `cast` with one operand for all elements; kNoNode: there is
// none.
NodeId joined_below(const Graph& g, NodeId cast);
// The maps from `join` to `cast`, over one of its parts.
NodeId over_part(Graph& g, NodeId cast, NodeId join, NodeId part);

} // namespace svod::rewrite
