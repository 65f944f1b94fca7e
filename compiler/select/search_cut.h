// Which values are stored and which are computed where they are read, by what the kernels
// that come of it are predicted to cost. The rules' cut (group.h) is where the search
// starts and its first bound: what it returns never costs more.
//
// Kernels come from lowering and prices from the cost model, which this folder does not
// see: the caller gives them as a CutPricer.
#pragma once

#include "compiler/kernel/cut_search.h"
#include "compiler/kernel/io_profile.h"
#include "compiler/select/group.h"

#include <functional>
#include <optional>

namespace svod::select {

// A kernel of some cut.
struct CutKernelPrice {
  double seconds = 0;
  uint32_t program = 0;        // equal where the code is
  std::vector<NodeId> touched; // nodes that it computes or reads, ascending
  IoProfile io;
};

class CutPricer {
public:
  virtual ~CutPricer() = default;
  // The kernels of a cut by number, ascending; equal kernels of two cuts have the same.
  // Nothing where no kernel can be made of a group.
  virtual std::optional<std::vector<uint32_t>> price(const CutDecisions& decisions) = 0;
  virtual const CutKernelPrice& kernel(uint32_t number) const = 0;
};

// Of what the kernels take that a change replaces: what it has to save. The model ranks
// what differs by less as often wrongly as rightly: a layer norm of minilm_l6 cut in two,
// predicted 15 % faster, took 3 % longer.
inline constexpr double kLeastCutGain = 0.2;
// Of what all kernels take: what a region has to save. Smaller gains are not measured.
inline constexpr double kLeastShareOfRun = 0.0002;

struct CutSearchOptions {
  size_t budget = 0; // cuts that are priced
  double least_gain = kLeastCutGain;
  double least_share = kLeastShareOfRun;
  double least_seconds = 0; // likewise, whatever the run takes
  // Where it is given, it decides in place of the search, whatever that costs.
  std::function<CutDecisions(const std::vector<CutChoice>&)> decide = {};
  // What the gate says of kernels and those in their place. A region that computes values
  // where they are read is only taken where it agrees; empty: nobody is asked.
  using Gate = std::function<CutSearch::Gate(const IoProfile&, const IoProfile&)>;
  Gate gate = {};
};

struct SearchedCut {
  CutDecisions decisions;
  CutSearch search;
};

// `choices`: those of the rules' cut. Equal arguments give equal results.
SearchedCut search_cut(const std::vector<CutChoice>& choices, CutPricer& pricer,
                       const CutSearchOptions& options);

// Of all kernels of a cut, one by one.
std::optional<double> seconds_of(const CutDecisions& decisions, CutPricer& pricer);

} // namespace svod::select
