// The order of a picture's dimensions is chosen before there are kernels, and what turns
// over its rows bring is known when there is a plan. So all pictures are tried with their
// rows outermost, and then those alone that the plan passes on row by row.
#include "compiler/rows_first.h"

#include "compiler/fuse.h"

#include <algorithm>

namespace svod {

namespace {

// A kernel whose result is shorter has its turns in few calls, and little to save.
constexpr int64_t kFewestRows = 8;

select::RowsFirst all_pictures(const FusedGraph& fused) {
  select::RowsFirst out;
  for (const Buffer& b : fused.buffers)
    if (b.input < 0 && b.outputs.empty() && b.shape.size() == 4 && b.shape[0] == 1 &&
        b.shape[2] >= kFewestRows)
      out.insert(b.node);
  return out;
}

select::RowsFirst passed_by_rows(const FusedGraph& fused, const plan::Plan& plan) {
  select::RowsFirst out;
  const auto add = [&](plan::SlotId id) {
    out.insert(fused.buffers[plan.slots[id].source].node);
  };
  for (const plan::Stream& stream : plan.streams) {
    for (const plan::Stream::Window& w : stream.windows) add(w.slot);
    for (const plan::Stream::Whole& w : stream.wholes)
      if (std::ranges::any_of(plan.overlaps, [&](const plan::Overlap& o) {
            return w.slot == (w.written ? o.written : o.read);
          }))
        add(w.slot);
  }
  return out;
}

} // namespace

select::RowsFirst choose_rows_first(const Graph& simple, const FusedGraph& fused,
                                    const Target& target, bool direct_only,
                                    const plan::PlanOptions& options) {
  select::RowsFirst chosen = all_pictures(fused);
  uint64_t arena = plan::plan(fused, target.machine(), options).arena_bytes;
  const auto try_rows = [&] {
    if (chosen.empty()) return false;
    Passes quiet;
    const FusedGraph by_rows = fuse(simple, target, direct_only, quiet, chosen);
    const plan::Plan plan = plan::plan(by_rows, target.machine(), options);
    chosen = passed_by_rows(by_rows, plan);
    return !chosen.empty() && plan.arena_bytes < arena;
  };
  return try_rows() && try_rows() ? chosen : select::RowsFirst();
}

} // namespace svod
