#include "compiler/kernel/cut_search.h"

#include <cstdio>

namespace svod {

std::string_view text_of(CutSearch::End end) {
  constexpr std::string_view kTexts[] = {"off", "done", "budget"};
  return kTexts[static_cast<size_t>(end)];
}

static std::string microseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.3f us", seconds * 1e6);
  return text;
}

std::string print(const CutSearch& s) {
  std::string out = std::string(text_of(s.end)) + ", " + std::to_string(s.candidates) +
                    " candidates of " + std::to_string(s.choices) + " choices in " +
                    std::to_string(s.regions) + " regions, " + microseconds(s.before) +
                    " -> " + microseconds(s.after) + "\n";
  for (const CutSearch::Taken& taken : s.taken) {
    for (NodeId n : taken.stored) out += "store %" + std::to_string(n) + " ";
    for (NodeId n : taken.inlined) out += "inline %" + std::to_string(n) + " ";
    out += microseconds(taken.before) + " -> " + microseconds(taken.after);
    if (taken.gate) out += taken.gate->agrees ? ", gate agrees" : ", gate objects";
    out += "\n";
  }
  return out;
}

} // namespace svod
