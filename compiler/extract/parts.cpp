#include "compiler/extract/parts.h"

#include <algorithm>
#include <map>

namespace svod::extract {

namespace {

class Sets {
public:
  explicit Sets(size_t count) : parents_(count) {
    for (ClassId c = 0; c < count; ++c) parents_[c] = c;
  }
  ClassId find(ClassId c) {
    while (parents_[c] != c) c = parents_[c] = parents_[parents_[c]];
    return c;
  }
  void join(ClassId a, ClassId b) {
    a = find(a), b = find(b);
    parents_[std::max(a, b)] = std::min(a, b);
  }

private:
  std::vector<ClassId> parents_;
};

} // namespace

std::vector<Part> find_parts(const Problem& problem, const std::vector<bool>& needed,
                             const std::vector<std::vector<ClassId>>& together) {
  const size_t count = problem.classes.size();
  Sets sets(count);
  std::vector<bool> reached(count);
  std::vector<ClassId> stack;
  for (ClassId point = 0; point < count; ++point) {
    if (!needed[point] || problem.classes[point].size() < 2) continue;
    reached[point] = true;
    stack.push_back(point);
    while (!stack.empty()) {
      const ClassId at = stack.back();
      stack.pop_back();
      for (const Form& form : problem.classes[at])
        for (ClassId input : form.inputs) {
          if (needed[input]) continue;
          sets.join(at, input);
          if (reached[input]) continue;
          reached[input] = true;
          stack.push_back(input);
        }
    }
  }
  for (const std::vector<ClassId>& list : together)
    for (ClassId c : list) sets.join(list[0], c);
  std::map<ClassId, Part> parts;
  for (ClassId c = 0; c < count; ++c) {
    if (!reached[c]) continue;
    Part& part = parts[sets.find(c)];
    (needed[c] ? part.points : part.others).push_back(c);
  }
  std::vector<Part> out;
  for (auto& [first, part] : parts) out.push_back(std::move(part));
  std::ranges::stable_sort(
      out, {}, [](const Part& part) { return part.points.size() + part.others.size(); });
  return out;
}

// Tarjan's algorithm with a stack of its own: graphs are thousands of classes deep.
std::vector<uint32_t> find_loops(const Problem& problem) {
  const size_t count = problem.classes.size();
  std::vector<std::vector<ClassId>> reads(count);
  for (ClassId c = 0; c < count; ++c)
    for (const Form& form : problem.classes[c])
      reads[c].insert(reads[c].end(), form.inputs.begin(), form.inputs.end());
  std::vector<uint32_t> loops(count), order(count), low(count);
  std::vector<bool> open(count);
  std::vector<ClassId> found;
  struct Visit {
    ClassId at;
    size_t next;
  };
  uint32_t time = 0, loop = 0;
  const auto enter = [&](std::vector<Visit>& visits, ClassId c) {
    order[c] = low[c] = ++time;
    open[c] = true;
    found.push_back(c);
    visits.push_back({c, 0});
  };
  for (ClassId start = 0; start < count; ++start) {
    std::vector<Visit> visits;
    if (order[start] == 0) enter(visits, start);
    while (!visits.empty()) {
      Visit& visit = visits.back();
      const ClassId at = visit.at;
      if (visit.next < reads[at].size()) {
        const ClassId input = reads[at][visit.next++];
        if (order[input] == 0)
          enter(visits, input);
        else if (open[input])
          low[at] = std::min(low[at], order[input]);
        continue;
      }
      visits.pop_back();
      if (!visits.empty())
        low[visits.back().at] = std::min(low[visits.back().at], low[at]);
      if (low[at] != order[at]) continue;
      const bool several = found.back() != at;
      loop += several;
      for (bool last = false; !last; found.pop_back()) {
        last = found.back() == at;
        open[found.back()] = false;
        if (several) loops[found.back()] = loop;
      }
    }
  }
  return loops;
}

} // namespace svod::extract
