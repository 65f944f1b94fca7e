// Whole graphs that compute what a given one does, a handful of them, to be priced by who
// lowers them.
//
// Each aim asks one question with its own equalities. Where the cost of nodes
// (cost.h) can tell, it has one answer: the cheapest graph that extraction finds. Joined
// and cut sums are the same work to that cost, so there the places that look alike, as
// the layers of a network do, are changed together, and each kind of place is an answer.
#pragma once

#include "compiler/egraph/saturate.h"
#include "compiler/support/machine.h"

namespace svod::egraph {

enum class Aim : uint8_t {
  Factor, // fewer products: common operands, sums that become one
  Scale,  // factors on the other side of sums and views, up to weights
  Views,  // fewer elements moved by permutes
  Join,   // contractions of one input side by side
  Split,  // sums of few results in two parts
};
inline constexpr Aim kAims[] = {Aim::Factor, Aim::Scale, Aim::Views, Aim::Join,
                                Aim::Split};
// "factor", "scale", "views", "join", "split"
std::string_view name_of(Aim aim);

struct AlternativeOptions {
  bool keep_rounding = false;
  size_t most = 3; // graphs; of kinds of places those with most work
  Limits limits = {};
  int64_t candidates = 20000; // of extraction
};

struct Alternative {
  Graph graph;
  size_t places = 0; // that were changed; 0: those that extraction chose
};

struct Alternatives {
  Saturation saturation;
  std::vector<Alternative> graphs; // all differ from the given one
};

Alternatives alternatives(const Graph& graph, Aim aim, const Machine& machine,
                          const AlternativeOptions& options);

} // namespace svod::egraph
