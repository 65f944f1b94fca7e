// A knapsack with one choice for each contraction. Step by step the change is made that
// saves most time for each byte and still fits: to a first form, or from one form to a
// larger one. What is left at the end is less than the smallest change would take, so the
// result is as good as any but for one step.
#include "compiler/select/forms/weight_budget.h"

#include <optional>

namespace svod::select {

namespace {

struct Change {
  size_t contraction = 0;
  FormPrice to;
  double saved_ns = 0;
  uint64_t bytes = 0;
  // Whether more time is saved for each byte than by the other; without division, as
  // bytes may be none.
  bool beats(const Change& other) const {
    return saved_ns * double(other.bytes) > other.saved_ns * double(bytes);
  }
};

} // namespace

std::vector<uint64_t> spend(const std::vector<std::vector<FormPrice>>& forms,
                            uint64_t budget) {
  std::vector<FormPrice> chosen(forms.size());
  for (;;) {
    std::optional<Change> best;
    for (size_t i = 0; i < forms.size(); ++i)
      for (const FormPrice& form : forms[i]) {
        const FormPrice& now = chosen[i];
        if (form.saved_ns <= now.saved_ns || form.more_bytes < now.more_bytes) continue;
        const Change change{i, form, form.saved_ns - now.saved_ns,
                            form.more_bytes - now.more_bytes};
        if (change.bytes <= budget && (!best || change.beats(*best))) best = change;
      }
    if (!best) break;
    budget -= best->bytes;
    chosen[best->contraction] = best->to;
  }
  std::vector<uint64_t> out;
  for (const FormPrice& form : chosen) out.push_back(form.more_bytes);
  return out;
}

} // namespace svod::select
