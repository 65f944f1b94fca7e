#include "compiler/extract/greedy.h"

#include <algorithm>

namespace svod::extract {

namespace {

int64_t tree_cost(const Form& form, const std::vector<int64_t>& cost) {
  int64_t sum = std::min(form.cost, kMostCost);
  for (ClassId input : form.inputs) {
    if (cost[input] == kNever) return kNever;
    sum = std::min(sum + cost[input], kMostCost);
  }
  return sum;
}

// Who reads each class.
std::vector<std::vector<ClassId>> readers_of(const Problem& problem) {
  std::vector<std::vector<ClassId>> readers(problem.classes.size());
  for (ClassId c = 0; c < problem.classes.size(); ++c)
    for (const Form& form : problem.classes[c])
      for (ClassId input : form.inputs)
        if (readers[input].empty() || readers[input].back() != c)
          readers[input].push_back(c);
  return readers;
}

} // namespace

// A form is taken when it is strictly cheaper, and its inputs were cheaper still or had
// their forms before; so nothing comes to read itself.
Trees cheapest_trees(const Problem& problem) {
  const size_t count = problem.classes.size();
  Trees trees{std::vector<int64_t>(count, kNever), Choice(count, kNotTaken)};
  const auto readers = readers_of(problem);
  std::vector<bool> waits(count, true);
  std::vector<ClassId> queue(count);
  for (ClassId c = 0; c < count; ++c) queue[c] = c;
  for (size_t at = 0; at < queue.size(); ++at) {
    const ClassId c = queue[at];
    waits[c] = false;
    bool better = false;
    for (uint32_t f = 0; f < problem.classes[c].size(); ++f) {
      const int64_t cost = tree_cost(problem.classes[c][f], trees.cost);
      if (cost >= trees.cost[c]) continue;
      trees.cost[c] = cost, trees.choice[c] = f, better = true;
    }
    if (!better) continue;
    for (ClassId reader : readers[c])
      if (!waits[reader]) waits[reader] = true, queue.push_back(reader);
  }
  return trees;
}

Problem without_useless(const Problem& problem, const Trees& trees,
                        std::vector<std::vector<uint32_t>>& kept) {
  Problem out{{}, problem.roots};
  out.classes.resize(problem.classes.size());
  kept.assign(problem.classes.size(), {});
  for (ClassId c = 0; c < problem.classes.size(); ++c) {
    std::vector<Form> forms = problem.classes[c];
    std::vector<bool> useless(forms.size());
    for (size_t f = 0; f < forms.size(); ++f) {
      std::vector<ClassId>& in = forms[f].inputs;
      std::ranges::sort(in);
      in.erase(std::unique(in.begin(), in.end()), in.end());
      useless[f] = std::ranges::binary_search(in, c) ||
                   std::ranges::any_of(
                       in, [&](ClassId input) { return trees.cost[input] == kNever; });
    }
    for (size_t f = 0; f < forms.size(); ++f)
      for (size_t other = 0; other < forms.size() && !useless[f]; ++other) {
        if (other == f || useless[other] || forms[other].cost > forms[f].cost) continue;
        if (forms[other].cost == forms[f].cost && other > f) continue;
        useless[f] = std::ranges::includes(forms[f].inputs, forms[other].inputs);
      }
    for (uint32_t f = 0; f < forms.size(); ++f)
      if (!useless[f]) {
        kept[c].push_back(f);
        out.classes[c].push_back(std::move(forms[f]));
      }
  }
  return out;
}

namespace {

// What a class needs whatever is chosen: itself, and what all of its forms come to need.
// The list is cut where it is long, so that all lists together stay linear; a class that
// is missed makes a part larger, nothing else. Numbers of classes grow from inputs to
// readers, so the highest ones are the nearest.
constexpr size_t kMostSure = 64;

class Sure {
public:
  explicit Sure(const Problem& problem)
      : problem_(problem), sure_(problem.classes.size()) {}

  // Ascending.
  const std::vector<ClassId>& of(ClassId start) {
    std::vector<ClassId> stack{start}; // not recursion: graphs are thousands deep
    while (!stack.empty()) {
      const ClassId at = stack.back();
      stack.pop_back();
      if (sure_[at].empty()) {
        sure_[at] = {at}; // as long as it is being found; in a loop that is all
        stack.push_back(at);
        for (const Form& form : problem_.classes[at])
          for (ClassId input : form.inputs)
            if (sure_[input].empty()) stack.push_back(input);
      } else if (sure_[at].size() == 1 && sure_[at][0] == at) {
        sure_[at] = find(at);
      }
    }
    return sure_[start];
  }

private:
  std::vector<ClassId> find(ClassId c) const {
    std::vector<ClassId> common;
    bool first = true;
    for (const Form& form : problem_.classes[c]) {
      std::vector<ClassId> all;
      for (ClassId input : form.inputs) {
        std::vector<ClassId> both;
        std::ranges::set_union(all, sure_[input], std::back_inserter(both));
        all = std::move(both);
      }
      if (!first) {
        std::vector<ClassId> both;
        std::ranges::set_intersection(common, all, std::back_inserter(both));
        all = std::move(both);
      }
      common = std::move(all);
      first = false;
    }
    const auto at = std::ranges::lower_bound(common, c);
    if (at == common.end() || *at != c) common.insert(at, c);
    if (common.size() > kMostSure) common.erase(common.begin(), common.end() - kMostSure);
    return common;
  }

  const Problem& problem_;
  std::vector<std::vector<ClassId>> sure_;
};

} // namespace

std::vector<bool> always_needed(const Problem& problem) {
  Sure sure(problem);
  std::vector<bool> needed(problem.classes.size());
  std::vector<ClassId> open;
  const auto need = [&](ClassId c) {
    if (needed[c]) return;
    needed[c] = true;
    open.push_back(c);
  };
  for (ClassId root : problem.roots) need(root);
  while (!open.empty()) {
    const ClassId at = open.back();
    open.pop_back();
    for (ClassId c : sure.of(at)) need(c);
    // Lists are cut; but what one form reads is needed, however much it is.
    if (problem.classes[at].size() != 1) continue;
    for (ClassId c : problem.classes[at][0].inputs) need(c);
  }
  for (ClassId c = 0; c < needed.size(); ++c) {
    const std::vector<Form>& forms = problem.classes[c];
    const bool free = forms.size() == 1 && forms[0].cost == 0;
    if (free &&
        std::ranges::all_of(forms[0].inputs, [&](ClassId in) { return needed[in]; }))
      needed[c] = true;
  }
  return needed;
}

} // namespace svod::extract
