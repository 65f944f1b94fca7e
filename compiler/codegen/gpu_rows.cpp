// A block for each position of the outer loops. Its threads take turns along the loops of
// each stage: thread t has the positions t, t + threads, .., sums its own, and a fixed
// tree adds up what the threads have, by shuffles within a warp and shared memory between
// warps, so that a run repeats the bits of the one before. Where rows are few, blocks
// share each (`splits`): they leave what they have summed in memory, and the last of them
// to be done combines these parts in the same tree.
#include "compiler/codegen/element_text.h"
#include "compiler/codegen/gpu_emitter.h"
#include "compiler/codegen/gpu_text.h"
#include "compiler/codegen/reduction_text.h"
#include "compiler/kernel/stage_work.h"
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

// Among the threads of all blocks that share a row.
std::string GpuEmitter::worker() const { return gpu_.splits == 1 ? "thread" : "worker"; }

// Opens the loop over this thread's positions of the stage, or over its runs of `near`.
// Where these are few the loop is written out: then what one stage has read the next one
// has in registers.
void GpuEmitter::open_share(const Stage& s, int near) {
  constexpr int64_t kFewTurns = 8;
  const std::string at = fresh("n");
  const int64_t count = positions_along(k_, k_.inner(s)) / near,
                workers = int64_t{gpu_.threads} * gpu_.splits,
                turns = ceil_div(count, workers);
  if (turns <= kFewTurns) {
    const std::string turn = fresh("n");
    line(kUnrolled);
    open("for (u32 " + turn + " = 0; " + turn + " < " + text_of(turns) + "; ++" + turn +
         ")");
    line("const u32 " + at + " = " + worker() + " + " + turn + " * " + text_of(workers) +
         ";");
    if (count % workers != 0) line("if (" + at + " >= " + text_of(count) + ") continue;");
  } else {
    open("for (u32 " + at + " = " + worker() + "; " + at + " < " + text_of(count) + "; " +
         at + " += " + text_of(workers) + ")");
  }
  name_axes(k_.inner(s), near == 1 ? at : "(" + at + " * " + text_of(near) + ")");
}

// What the threads of the block have, combined.
std::string GpuEmitter::sum_of_block(const Stage& s, const std::string& sum) {
  const std::string kind = compute_type(s.dtype),
                    room = shared("room_" + kind, kind, of_warps());
  return "across_block<" + combine_of(s.op) + ", " + std::to_string(gpu_.threads) + ">(" +
         sum + ", " + room + ")";
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
  const std::string kind = compute_type(s.dtype), all = sum_of_block(s, sum);
  if (gpu_.splits > 1) return leave_part(number, declare(kind, all));
  locals_[{number, p}] = {declare(kind, rounded(s.dtype, all)), false};
}

static std::string which_wins(const Stage& s) {
  return std::string(s.op == Op::ArgMax ? "true" : "false") + ", " +
         (s.flag ? "true" : "false");
}

// The place of a thread that met no element loses against any.
static std::string no_place(const Stage& s) {
  return s.flag ? "kLowest<i64>" : "kHighest<i64>";
}

std::string GpuEmitter::best_of_block(const Stage& s, const std::string& best,
                                      const std::string& at) {
  const std::string kind = compute_type(s.dtype),
                    room = shared("room_" + kind, kind, of_warps()),
                    places = shared("places", "i64", of_warps());
  return "best_of_block<" + std::to_string(gpu_.threads) + ">(" + best + ", " + at +
         ", " + which_wins(s) + ", " + room + ", " + places + ")";
}

void GpuEmitter::emit_row_best(uint32_t number) {
  const Stage& s = k_.stages[number];
  const Point p(counts_.size(), 0);
  const std::string kind = compute_type(s.dtype), best = fresh("c"), at = fresh("c");
  line(kind + " " + best + " = " + identity(s.op, s.dtype) + ";");
  line("i64 " + at + " = " + no_place(s) + ";");
  open_share(s, 1);
  const std::string guard = condition(s.domain, p, false);
  if (!guard.empty()) open("if (" + guard + ")");
  const Value value = eval(s.value, p);
  open("if (beats(" + value.name + ", " + best + ", " + which_wins(s) + ") || " + at +
       " == " + no_place(s) + ")");
  line(best + " = " + value.name + ";");
  line(at + " = i64(" + index_text(s.position, p, false) + ");");
  close();
  if (!guard.empty()) close();
  close();
  const std::string place = declare("i64", best_of_block(s, best, at));
  if (gpu_.splits > 1) return leave_part(number, best, place);
  locals_[{number, p}] = {place, false};
}

// Where the blocks of a row leave what they have of a stage.
static std::string parts_of(uint32_t stage) { return "parts" + std::to_string(stage); }
static std::string places_of(uint32_t stage) { return "places" + std::to_string(stage); }

void GpuEmitter::name_parts() {
  const std::string of_row = "room + u64(row) * " + text_of(part_bytes_of_row(k_, gpu_));
  int64_t offset = 0;
  auto name = [&](const std::string& type, const std::string& list) {
    line(type + "* const " + list + " = reinterpret_cast<" + type + "*>(" + of_row +
         (offset == 0 ? "" : " + " + text_of(offset)) + ");");
    offset += gpu_.splits * kPartBytes;
  };
  for (uint32_t i = 0; i < k_.stages.size(); ++i) {
    const Stage& s = k_.stages[i];
    if (s.kind != StageKind::Reduce) continue;
    name(compute_type(s.dtype), parts_of(i));
    if (is_arg_reduce(s)) name("i64", places_of(i));
  }
}

// `place`: of the best value, if the stage asks for it.
void GpuEmitter::leave_part(uint32_t number, const std::string& value,
                            const std::string& place) {
  std::string text = "if (thread == 0) " + parts_of(number) + "[share] = " + value;
  if (!place.empty()) text += ", " + places_of(number) + "[share] = " + place;
  line(text + ";");
}

// A part for each of the first threads.
void GpuEmitter::join_parts(uint32_t number) {
  const Stage& s = k_.stages[number];
  const std::string kind = compute_type(s.dtype), part = fresh("c"), at = fresh("c"),
                    there = "if (thread < " + text_of(gpu_.splits) + ") ",
                    first = there + part + " = " + parts_of(number) + "[thread]";
  const Point p(counts_.size(), 0);
  line(kind + " " + part + " = " + identity(s.op, s.dtype) + ";");
  if (!is_arg_reduce(s)) {
    line(first + ";");
    locals_[{number, p}] = {declare(kind, rounded(s.dtype, sum_of_block(s, part))),
                            false};
    return;
  }
  line("i64 " + at + " = " + no_place(s) + ";");
  line(first + ", " + at + " = " + places_of(number) + "[thread];");
  locals_[{number, p}] = {declare("i64", best_of_block(s, part, at)), false};
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

// The threads of the block take as many neighbours at a time, which follow what is summed
// up before them.
void GpuEmitter::emit_row_scan(const Stage& s) {
  const Point p(counts_.size(), 0);
  const std::string kind = compute_type(s.dtype), threads = text_of(gpu_.threads),
                    before = fresh("c"), mine = fresh("c"), sum = fresh("c");
  const int64_t count = positions_along(k_, k_.inner(s));
  const std::string there =
      count % gpu_.threads == 0 ? "" : "if (at < " + text_of(count) + ")";
  line(kind + " " + before + " = " + identity(s.op, s.dtype) + ";");
  open("for (u32 first = 0; first < " + text_of(count) + "; first += " + threads + ")");
  line("const u32 at = first + thread;");
  line(kind + " " + mine + " = " + identity(s.op, s.dtype) + ";");
  open(there);
  name_axes(k_.inner(s), "at");
  line(mine + " = " + eval(s.value, p).name + ";");
  close();
  line("const " + kind + " " + sum + " = running<" + combine_of(s.op) + ", " +
       std::to_string(gpu_.threads) + ">(" + mine + ", " + before + ", " +
       shared("room_" + kind, kind, of_warps()) + ");");
  open(there);
  name_axes(k_.inner(s), "at");
  emit_write(s, {sum, false}, p);
  close();
  close();
}

void GpuEmitter::emit_row_stage(uint32_t number) {
  const Stage& s = k_.stages[number];
  if (s.kind == StageKind::Store) return emit_row_store(s);
  if (s.kind == StageKind::Scan) return emit_row_scan(s);
  if (is_arg_reduce(s)) return emit_row_best(number);
  emit_row_reduce(number);
}

// Sums first, of which the last block of the row has all; it alone stores.
void GpuEmitter::emit_shared_rows() {
  const std::string splits = text_of(gpu_.splits);
  line("const u32 row = block_number() / " + splits + ", share = block_number() % " +
       splits + ", worker = share * " + text_of(gpu_.threads) + " + thread;");
  name_axes(gpu_.positions, "row");
  name_parts();
  for (uint32_t i = 0; i < k_.stages.size(); ++i)
    if (k_.stages[i].kind == StageKind::Reduce) emit_row_stage(i);
  shared("is_last", "u32", "1");
  open("if (is_last_share<" + std::to_string(gpu_.splits) + ">(arrived + row, is_last))");
  for (uint32_t i = 0; i < k_.stages.size(); ++i)
    k_.stages[i].kind == StageKind::Reduce ? join_parts(i) : emit_row_store(k_.stages[i]);
  close();
}

void GpuEmitter::emit_rows() {
  line("const u32 thread = thread_number();");
  locals_.clear();
  if (gpu_.splits > 1) return emit_shared_rows();
  if (positions_along(k_, gpu_.positions) > 1) {
    line("const u32 row = block_number();");
    name_axes(gpu_.positions, "row");
  }
  for (uint32_t i = 0; i < k_.stages.size(); ++i) {
    if (k_.stages[i].nested) continue;
    emit_row_stage(i);
    // What this stage has written the next may read, by other threads.
    if (k_.stages[i].kind == StageKind::Store && i + 1 < k_.stages.size())
      line("wait_for_block();");
  }
}

} // namespace svod::codegen
