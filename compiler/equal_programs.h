// Graph -> an equal graph whose kernels are predicted to take clearly less time, where
// the e-graph has one.
//
// The alternatives (egraph/alternatives.h) are lowered as any graph is, cut by the rules,
// and priced by the cost of their kernels. Unlike a cost of nodes that sees what a kernel
// makes of a view, a sum or a scale.
#pragma once

#include "compiler/egraph/alternatives.h"
#include "compiler/support/pass_end.h"
#include "compiler/support/target.h"

namespace svod {

struct EqualOptions {
  size_t budget = 0;          // graphs that are priced, the given one included
  bool direct_only = false;   // as of fuse()
  bool keep_rounding = false; // --accuracy exact
  // Of what the kernels take that an alternative replaces: what it has to save. The model
  // is trusted as far as with schedules (search_schedules.h).
  double least_gain = 0.25;
  // Of what all kernels take: smaller gains are not measured.
  double least_share = 0.002;
  double least_seconds = 0; // likewise, whatever the run takes
};

// What came of one aim, each time it was asked.
struct AskedAim {
  egraph::Aim aim = egraph::Aim::Factor;
  egraph::Stop stop = egraph::Stop::Saturated;
  int iterations = 0;
  size_t nodes = 0, classes = 0; // of the e-graph
  size_t priced = 0;             // graphs
  // Of the one that saves most: kernels that it replaces, and those in their place.
  double before = 0, after = 0; // seconds; 0 where none could be priced
  size_t places = 0;            // that it changes; 0: those that extraction chose
  bool taken = false;
};

struct EqualSearch {
  enum class End : uint8_t {
    Off,
    Done,   // all that was found was priced
    Budget, // there was more
  } end = End::Off;
  size_t priced = 0; // graphs, the given one included
  double before = 0,
         after = 0; // seconds of all kernels; 0 where there was nothing to price
  std::vector<AskedAim> aims; // in order
};
// "off", "done", "budget"
std::string_view text_of(EqualSearch::End end);
PassEnd end_of(const EqualSearch& found);

// Equal arguments give equal results: graphs are counted, not timed.
Graph search_equal(const Graph& graph, const Target& target, const EqualOptions& options,
                   EqualSearch& found);

} // namespace svod
