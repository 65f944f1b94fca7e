#include "compiler/extract/extract.h"

#include "compiler/extract/branch_and_bound.h"
#include "compiler/extract/greedy.h"
#include "compiler/support/check.h"

#include <algorithm>

namespace svod::extract {

namespace {

std::vector<ClassId> needed_by(const Problem& problem, const Choice& choice) {
  std::vector<bool> seen(problem.classes.size());
  std::vector<ClassId> out;
  const auto need = [&](ClassId c) {
    if (seen[c]) return;
    seen[c] = true;
    out.push_back(c);
  };
  for (ClassId root : problem.roots) need(root);
  for (size_t at = 0; at < out.size(); ++at)
    for (ClassId input : problem.classes[out[at]][choice[out[at]]].inputs) need(input);
  return out;
}

// Without the forms of classes that are not needed.
Choice only_needed(const Problem& problem, const Choice& choice) {
  Choice out(choice.size(), kNotTaken);
  for (ClassId c : needed_by(problem, choice)) out[c] = choice[c];
  return out;
}

// The classes that read themselves in a choice, each list one loop; none: no cycle.
std::vector<std::vector<ClassId>> loops_of(const Problem& problem, const Choice& choice) {
  Problem taken{std::vector<std::vector<Form>>(problem.classes.size()), problem.roots};
  std::vector<std::vector<ClassId>> loops;
  for (ClassId c : needed_by(problem, choice)) {
    taken.classes[c] = {problem.classes[c][choice[c]]};
    if (std::ranges::find(taken.classes[c][0].inputs, c) !=
        taken.classes[c][0].inputs.end())
      loops.push_back({c});
  }
  const std::vector<uint32_t> numbers = find_loops(taken);
  const size_t self = loops.size();
  for (ClassId c = 0; c < numbers.size(); ++c) {
    if (numbers[c] == 0) continue;
    loops.resize(std::max(loops.size(), self + numbers[c]));
    loops[self + numbers[c] - 1].push_back(c);
  }
  return loops;
}

class Extractor {
public:
  Extractor(const Problem& problem, const ExtractOptions& options)
      : whole_(problem), options_(options), trees_(cheapest_trees(problem)),
        problem_(without_useless(problem, trees_, kept_)), loops_(find_loops(problem_)),
        needed_(always_needed(problem_)) {}

  Extraction run();

private:
  void solve(PartSearch& search, const Part& part);
  int64_t cost_within(const Part& part, const Choice& choice) const;
  Choice in_whole(const Choice& choice) const;
  Choice in_kept(const Choice& choice) const;
  uint32_t kept_form(ClassId c, uint32_t form) const;

  const Problem& whole_;
  const ExtractOptions& options_;
  const Trees trees_;
  std::vector<std::vector<uint32_t>> kept_; // forms of problem_, as of whole_
  const Problem problem_;
  const std::vector<uint32_t> loops_;
  const std::vector<bool> needed_;
  std::vector<Choice> bounds_; // choices of problem_ without cycles
  Choice best_;
  Extraction out_;
  int64_t left_ = 0; // candidates
};

// The form, or the one that made it useless: that reads no class more.
uint32_t Extractor::kept_form(ClassId c, uint32_t form) const {
  const auto at = std::ranges::find(kept_[c], form);
  if (at != kept_[c].end()) return static_cast<uint32_t>(at - kept_[c].begin());
  const Form& old = whole_.classes[c][form];
  for (uint32_t f = 0; f < problem_.classes[c].size(); ++f) {
    const Form& kept = problem_.classes[c][f];
    const bool reads_no_more = std::ranges::all_of(kept.inputs, [&](ClassId input) {
      return std::ranges::find(old.inputs, input) != old.inputs.end();
    });
    if (kept.cost <= old.cost && reads_no_more) return f;
  }
  SVOD_CHECK(false) << "form " << form << " of class " << c << " takes a cycle";
  return 0;
}

Choice Extractor::in_kept(const Choice& choice) const {
  Choice out(choice.size(), kNotTaken);
  std::vector<ClassId> open = problem_.roots;
  while (!open.empty()) {
    const ClassId c = open.back();
    open.pop_back();
    if (out[c] != kNotTaken) continue;
    out[c] = kept_form(c, choice[c]);
    const Form& form = problem_.classes[c][out[c]];
    open.insert(open.end(), form.inputs.begin(), form.inputs.end());
  }
  return out;
}

Choice Extractor::in_whole(const Choice& choice) const {
  Choice out(choice.size(), kNotTaken);
  for (ClassId c = 0; c < choice.size(); ++c)
    if (choice[c] != kNotTaken) out[c] = kept_[c][choice[c]];
  return out;
}

// Of the classes of the part that the choice needs.
int64_t Extractor::cost_within(const Part& part, const Choice& choice) const {
  int64_t cost = 0;
  for (const auto* classes : {&part.points, &part.others})
    for (ClassId c : *classes)
      if (choice[c] != kNotTaken) cost += problem_.classes[c][choice[c]].cost;
  return cost;
}

// Beside its own forms a part depends on nothing that another part chooses, but for
// cycles through both.
void Extractor::solve(PartSearch& search, const Part& part) {
  int64_t bound = kNever;
  for (const Choice& known : bounds_) {
    const int64_t cost = cost_within(part, known);
    if (cost >= bound) continue;
    bound = cost;
    for (const auto* classes : {&part.points, &part.others})
      for (ClassId c : *classes) best_[c] = known[c];
  }
  if (!search.run(part, best_, bound)) out_.optimal = false;
}

Extraction Extractor::run() {
  if (!options_.given.empty()) bounds_.push_back(in_kept(options_.given));
  bounds_.push_back(only_needed(problem_, cheapest_trees(problem_).choice));
  out_.greedy_cost = cost_of(problem_, bounds_.back());
  left_ = options_.candidates;
  Choice fixed(problem_.classes.size(), kNotTaken);
  for (ClassId c = 0; c < fixed.size(); ++c)
    if (needed_[c] && problem_.classes[c].size() == 1) fixed[c] = 0;
  PartSearch search(problem_, loops_, trees_.cost, fixed, left_);
  std::vector<std::vector<ClassId>> together;
  for (;;) {
    const std::vector<Part> parts = find_parts(problem_, needed_, together);
    out_.parts = parts.size();
    out_.optimal = true;
    best_ = fixed;
    for (const Part& part : parts) solve(search, part);
    const auto loops = loops_of(problem_, best_);
    if (loops.empty()) break;
    if (left_ == 0) {
      out_.optimal = false;
      best_ = *std::ranges::min_element(
          bounds_, {}, [&](const Choice& c) { return cost_of(problem_, c); });
      break;
    }
    // Parts that read each other are one.
    together.insert(together.end(), loops.begin(), loops.end());
  }
  out_.choice = only_needed(whole_, in_whole(best_));
  out_.cost = cost_of(whole_, out_.choice);
  if (!options_.given.empty() && cost_of(whole_, options_.given) <= out_.cost)
    out_.choice = only_needed(whole_, options_.given);
  out_.candidates = options_.candidates - left_;
  return out_;
}

} // namespace

int64_t cost_of(const Problem& problem, const Choice& choice) {
  int64_t cost = 0;
  for (ClassId c : needed_by(problem, choice)) cost += problem.classes[c][choice[c]].cost;
  return cost;
}

bool has_cycle(const Problem& problem, const Choice& choice) {
  return !loops_of(problem, choice).empty();
}

Extraction extract(const Problem& problem, const ExtractOptions& options) {
  return Extractor(problem, options).run();
}

} // namespace svod::extract
