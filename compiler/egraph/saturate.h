// Applies equalities to an e-graph until nothing is new or a limit is reached.
#pragma once

#include "compiler/egraph/egraph.h"
#include "compiler/egraph/equality.h"

namespace svod::egraph {

struct Limits {
  // Nodes beside those of the graph, for each of them and in any case.
  double more_nodes = 3;
  size_t free_nodes = 500;
  int iterations = 12;
  size_t more_bytes = size_t{64} << 20; // of weights that folding makes
  // Asked between steps; for tools that people wait for. What it decides is not
  // reproducible, so no pack has one.
  std::function<bool()> out_of_time = {};
};

enum class Stop : uint8_t { Saturated, Nodes, Iterations, Bytes, Time };
std::string_view text_of(Stop stop);

struct Saturation {
  Stop stop = Stop::Saturated;
  int iterations = 0; // the last one included
  size_t nodes = 0, classes = 0;
  std::vector<int64_t> fired; // by row of equalities(): that joined two classes
  int64_t joined = 0;         // contractions that became slices of one
  std::vector<Site> sites;    // in the order in which forms were found
};

struct SaturateOptions {
  std::set<Family> families = {Family::Rules, Family::Reversed,  Family::Factor,
                               Family::Scale, Family::Transpose, Family::Split,
                               Family::Join};
  bool keep_rounding = false; // everywhere
  Limits limits = {};
};

Saturation saturate(EGraph& e, const SaturateOptions& options);

} // namespace svod::egraph
