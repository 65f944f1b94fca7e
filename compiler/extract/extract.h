// The cheapest choice of forms: a greedy bound first, then branch and bound.
//
// Minimum DAG cost is NP-hard in general. Graphs of networks are kind: most classes have
// one form, and those that have more lie far apart. A class that every choice needs is
// paid for in any case, so what can be chosen falls into parts that share no other class,
// and each is solved by itself: in nearly all of them a few dozen candidates prove the
// best one.
#pragma once

#include "compiler/extract/problem.h"

namespace svod::extract {

struct ExtractOptions {
  // Forms that may be tried, in all parts together. Not time: the same everywhere.
  int64_t candidates = 200000;
  // A choice that is there already: a bound, kept where nothing is truly cheaper. Empty:
  // none. It takes no cycles.
  Choice given = {};
};

struct Extraction {
  Choice choice;
  int64_t cost = 0;
  int64_t greedy_cost = 0; // of the first bound
  int64_t candidates = 0;  // tried
  size_t parts = 0;        // with something to choose
  bool optimal = true;     // no part ran out of candidates
};

// Some choice without cycles exists.
Extraction extract(const Problem& problem, const ExtractOptions& options = {});

// What a choice costs; the classes it needs. It has a form for each of them.
int64_t cost_of(const Problem& problem, const Choice& choice);
bool has_cycle(const Problem& problem, const Choice& choice);

} // namespace svod::extract
