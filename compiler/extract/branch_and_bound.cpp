// Depth first over the classes that are needed and have no form yet. What is taken so
// far, plus the cheapest form of each class that waits, is what any completion costs at
// least; where that is no less than the best one known, the branch is cut.
#include "compiler/extract/branch_and_bound.h"

#include "compiler/extract/greedy.h"

#include <algorithm>

namespace svod::extract {

PartSearch::PartSearch(const Problem& problem, const std::vector<uint32_t>& loops,
                       const std::vector<int64_t>& tree_cost, Choice fixed,
                       int64_t& candidates)
    : problem_(problem), loops_(loops), tree_cost_(tree_cost), choice_(std::move(fixed)),
      candidates_(candidates), mine_(problem.classes.size()), least_(mine_.size()),
      order_(mine_.size()), readers_(mine_.size()) {}

bool PartSearch::run(const Part& part, Choice& best, int64_t& bound) {
  part_ = &part, best_ = &best, bound_ = &bound;
  const auto each = [&](auto&& work) {
    for (const auto* classes : {&part.points, &part.others})
      for (ClassId c : *classes) work(c);
  };
  each([&](ClassId c) { mine_[c] = true; });
  each([&](ClassId c) { add(c); });
  for (ClassId c : part.points) need(c);
  const bool whole = decide();
  for (ClassId c : part.points) forget(c);
  waiting_.clear();
  each([&](ClassId c) { mine_[c] = false; });
  return whole;
}

void PartSearch::add(ClassId c) {
  const std::vector<Form>& forms = problem_.classes[c];
  least_[c] = std::ranges::min(forms, {}, &Form::cost).cost;
  order_[c].clear();
  for (uint32_t f = 0; f < forms.size(); ++f) order_[c].push_back(f);
  std::ranges::stable_sort(order_[c], {}, [&](uint32_t f) {
    int64_t cost = forms[f].cost;
    for (ClassId input : forms[f].inputs)
      if (mine_[input]) cost = std::min(cost + tree_cost_[input], kMostCost);
    return cost;
  });
}

void PartSearch::need(ClassId c) {
  if (!mine_[c] || readers_[c]++ != 0) return;
  waiting_.push_back(c);
  cost_ += least_[c];
}

void PartSearch::forget(ClassId c) {
  if (mine_[c] && --readers_[c] == 0) cost_ -= least_[c];
}

// Whether taking the form would let the class read itself.
bool PartSearch::closes_loop(ClassId c, const Form& form) const {
  if (loops_[c] == 0) return false;
  std::vector<ClassId> reached;
  const auto visit = [&](const Form& of) {
    for (ClassId input : of.inputs)
      if (loops_[input] == loops_[c] &&
          std::ranges::find(reached, input) == reached.end())
        reached.push_back(input);
  };
  visit(form);
  for (size_t at = 0; at < reached.size(); ++at) {
    const ClassId read = reached[at];
    if (read == c) return true;
    if (choice_[read] != kNotTaken) visit(problem_.classes[read][choice_[read]]);
  }
  return false;
}

void PartSearch::keep() {
  *bound_ = cost_;
  for (const auto* classes : {&part_->points, &part_->others})
    for (ClassId c : *classes) (*best_)[c] = choice_[c];
}

bool PartSearch::decide() {
  if (cost_ >= *bound_) return true;
  if (waiting_.empty()) {
    keep();
    return true;
  }
  const std::vector<ClassId> waited = waiting_;
  const ClassId c = waiting_.back();
  waiting_.pop_back();
  const bool whole = try_forms(c);
  waiting_ = waited;
  return whole;
}

bool PartSearch::try_forms(ClassId c) {
  const std::vector<ClassId> others = waiting_;
  bool whole = true;
  for (uint32_t f : order_[c]) {
    if (candidates_ == 0) return false;
    --candidates_;
    const Form& form = problem_.classes[c][f];
    const int64_t more = form.cost - least_[c];
    if (cost_ + more >= *bound_ || closes_loop(c, form)) continue;
    cost_ += more;
    choice_[c] = f;
    for (ClassId input : form.inputs) need(input);
    whole = decide() && whole;
    for (ClassId input : form.inputs) forget(input);
    choice_[c] = kNotTaken;
    cost_ -= more;
    waiting_ = others;
  }
  return whole;
}

} // namespace svod::extract
