// The best choice within one part.
#pragma once

#include "compiler/extract/parts.h"

namespace svod::extract {

class PartSearch {
public:
  // `loops` of find_loops; `tree_cost` by class, for the order in which forms are tried.
  // `fixed` are the choices outside of all parts, of classes that have one form. Each
  // form that is tried takes one of the candidates that are left.
  PartSearch(const Problem& problem, const std::vector<uint32_t>& loops,
             const std::vector<int64_t>& tree_cost, Choice fixed, int64_t& candidates);

  // Writes the best choice of the part that costs less than `bound`, where there is one,
  // into `best` (entries of other classes stay) and lowers `bound` to its cost. Whether
  // all was looked at.
  bool run(const Part& part, Choice& best, int64_t& bound);

private:
  void add(ClassId c);
  void need(ClassId c);
  void forget(ClassId c);
  bool closes_loop(ClassId c, const Form& form) const;
  void keep();
  bool decide();
  bool try_forms(ClassId c);

  const Problem& problem_;
  const std::vector<uint32_t>& loops_;
  const std::vector<int64_t>& tree_cost_;
  Choice choice_;
  int64_t& candidates_;

  // Of the part at hand.
  const Part* part_ = nullptr;
  Choice* best_ = nullptr;
  int64_t* bound_ = nullptr;
  std::vector<bool> mine_;
  std::vector<int64_t> least_;
  std::vector<std::vector<uint32_t>> order_;
  std::vector<uint32_t> readers_;
  std::vector<ClassId> waiting_; // needed, without a form yet
  int64_t cost_ = 0;             // of what is taken, and at least of what waits
};

} // namespace svod::extract
