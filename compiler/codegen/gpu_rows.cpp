// A block for each position of the outer loops. Its threads take turns along the loops of
// each stage: thread t has the positions t, t + threads, .., sums its own, and a fixed
// tree adds up what the threads have, by shuffles within a warp and shared memory between
// warps, so that a run repeats the bits of the one before.
#include "compiler/codegen/element_text.h"
#include "compiler/codegen/gpu_emitter.h"
#include "compiler/codegen/gpu_text.h"
#include "compiler/codegen/reduction_text.h"
#include "compiler/support/divide.h"

#include <algorithm>

namespace svod::codegen {

std::string GpuEmitter::shared(const std::string& name, const std::string& type,
                               const std::string& count) {
  shared_[name] = "SVOD_SHARED " + type + " " + name + "[" + count + "];\n";
  return name;
}

// An element for each warp of a block.
std::string GpuEmitter::of_warps() const {
  return "kWarpsOf<" + std::to_string(gpu_.threads) + ">";
}

// Opens the loop over this thread's positions of the stage, or over its runs of `near`.
// Where these are few the loop is written out: then what one stage has read the next one
// has in registers.
void GpuEmitter::open_share(const Stage& s, int near) {
  constexpr int64_t kFewTurns = 8;
  const std::string at = fresh("n");
  const int64_t count = positions_along(k_, k_.inner(s)) / near,
                turns = ceil_div(count, gpu_.threads);
  if (turns <= kFewTurns) {
    const std::string turn = fresh("n");
    line(kUnrolled);
    open("for (u32 " + turn + " = 0; " + turn + " < " + text_of(turns) + "; ++" + turn +
         ")");
    line("const u32 " + at + " = thread + " + turn + " * " + text_of(gpu_.threads) + ";");
    if (count % gpu_.threads != 0)
      line("if (" + at + " >= " + text_of(count) + ") continue;");
  } else {
    open("for (u32 " + at + " = thread; " + at + " < " + text_of(count) + "; " + at +
         " += " + text_of(gpu_.threads) + ")");
  }
  name_axes(k_.inner(s), near == 1 ? at : "(" + at + " * " + text_of(near) + ")");
}

void GpuEmitter::emit_row_reduce(uint32_t number) {
  const Stage& s = k_.stages[number];
  const Point p(counts_.size(), 0);
  const std::string sum = open_sums(number, false)[0];
  const int near = positions_along(k_, k_.inner(s)) == 1 ? 1 : gpu_.near;
  open_share(s, near);
  for (uint32_t nested : nested_below(k_, number)) {
    const Sums around = sums_;
    sums_ = {};
    emit_stage(nested);
    sums_ = around;
  }
  if (near > 1) {
    load_runs(s.value, axes_of_runs(k_, k_.inner(s), near), near, p);
    for_each_of_run(near, [&](int) { accumulate(s, sum, p, false); });
  } else {
    accumulate(s, sum, p, false);
  }
  close();
  sums_ = {};
  const std::string kind = compute_type(s.dtype),
                    room = shared("room_" + kind, kind, of_warps());
  const std::string all = "across_block<" + combine_of(s.op) + ", " +
                          std::to_string(gpu_.threads) + ">(" + sum + ", " + room + ")";
  locals_[{number, p}] = {declare(kind, rounded(s.dtype, all)), false};
}

void GpuEmitter::emit_row_best(uint32_t number) {
  const Stage& s = k_.stages[number];
  const Point p(counts_.size(), 0);
  const std::string kind = compute_type(s.dtype), best = fresh("c"), at = fresh("c"),
                    which = std::string(s.op == Op::ArgMax ? "true" : "false") + ", " +
                            (s.flag ? "true" : "false");
  line(kind + " " + best + " = " + identity(s.op, s.dtype) + ";");
  // A thread that meets no element loses against any that does.
  line("i64 " + at + " = " + (s.flag ? "kLowest<i64>" : "kHighest<i64>") + ";");
  open_share(s, 1);
  const std::string guard = condition(s.domain, p, false);
  if (!guard.empty()) open("if (" + guard + ")");
  const Value value = eval(s.value, p);
  open("if (beats(" + value.name + ", " + best + ", " + which + ") || " + at +
       " == " + (s.flag ? "kLowest<i64>" : "kHighest<i64>") + ")");
  line(best + " = " + value.name + ";");
  line(at + " = i64(" + index_text(s.position, p, false) + ");");
  close();
  if (!guard.empty()) close();
  close();
  const std::string room = shared("room_" + kind, kind, of_warps()),
                    places = shared("places", "i64", of_warps());
  locals_[{number, p}] = {declare("i64", "best_of_block<" + std::to_string(gpu_.threads) +
                                             ">(" + best + ", " + at + ", " + which +
                                             ", " + room + ", " + places + ")"),
                          false};
}

void GpuEmitter::emit_row_store(const Stage& s) {
  const Point p(counts_.size(), 0);
  const bool one = positions_along(k_, k_.inner(s)) == 1;
  if (one)
    open("if (thread == 0)");
  else
    open_share(s, gpu_.near);
  if (!one && gpu_.near > 1) {
    emit_run_store(s, axes_of_runs(k_, k_.inner(s), gpu_.near), gpu_.near, [](int) {});
    return close();
  }
  const std::string guard = condition(s.domain, p, false);
  const bool skips = !guard.empty() && !s.pad_lanes;
  if (skips) open("if (" + guard + ")");
  emit_writes(s, {p});
  if (skips) close();
  close();
}

void GpuEmitter::emit_row_stage(uint32_t number) {
  const Stage& s = k_.stages[number];
  if (s.kind == StageKind::Store) return emit_row_store(s);
  if (s.op == Op::ArgMin || s.op == Op::ArgMax) return emit_row_best(number);
  emit_row_reduce(number);
}

void GpuEmitter::emit_rows() {
  line("const u32 thread = thread_number();");
  if (positions_along(k_, gpu_.positions) > 1) {
    line("const u32 row = block_number();");
    name_axes(gpu_.positions, "row");
  }
  locals_.clear();
  for (uint32_t i = 0; i < k_.stages.size(); ++i) {
    if (k_.stages[i].nested) continue;
    emit_row_stage(i);
    // What this stage has written the next may read, by other threads.
    if (k_.stages[i].kind == StageKind::Store && i + 1 < k_.stages.size())
      line("wait_for_block();");
  }
}

} // namespace svod::codegen
