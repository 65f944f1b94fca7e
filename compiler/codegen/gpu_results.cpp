// What becomes of the sums of a tile of products: the stages behind them, at each
// position. Threads that add up products have parts whose neighbours are neighbours in
// memory. Of what tensor cores multiply a thread has two neighbours here and there, so
// the sums go through shared memory, and each thread takes runs of a row.
#include "compiler/codegen/element_text.h"
#include "compiler/codegen/gpu_factor.h"

namespace svod::codegen {

// Whether `row` and `column` are a position of the matrix, where that is not certain.
// Without the question the reads of several runs are begun before the first is waited
// for.
static std::string is_there(const Kernel& k, const ProductTile& t) {
  const std::string all =
      both(bounded("row", positions_along(k, t.rows.axes), t.block_rows),
           bounded("column", positions_along(k, t.columns.axes), t.block_columns));
  return all.empty() ? "" : "if (" + all + ")";
}

void GpuEmitter::emit_thread_results() {
  const ProductTile& t = gpu_.product;
  const DType sum = k_.stages[0].dtype;
  auto place = [&](const char* name, int count, int parts, const char* first,
                   const char* part, const char* i) {
    const int run = run_of(count, sum);
    line("const u32 " + std::string(name) + " = " + first + " + " + part + " * " +
         text_of(run) + " + " + i + " / " + text_of(run) + " * " + text_of(run * parts) +
         " + " + i + " % " + text_of(run) + ";");
  };
  line(kUnrolled);
  open("for (u32 i = 0; i < " + text_of(t.part_rows) + "; ++i)");
  place("row", t.part_rows, t.parts_down(), "first_row", "below", "i");
  line(kUnrolled);
  open("for (u32 j = 0; j < " + text_of(t.part_columns) + "; ++j)");
  place("column", t.part_columns, t.parts_across(), "first_column", "beside", "j");
  open(is_there(k_, t));
  name_axes(t.rows.axes, "row");
  name_axes(t.columns.axes, "column");
  locals_.clear();
  locals_[{0, Point(counts_.size(), 0)}] = {
      "sums[i * " + text_of(t.part_columns) + " + j]", false};
  for (uint32_t s = 1; s < k_.stages.size(); ++s) emit_stage(s);
  close();
  close();
  close();
}

// A thread's sums of 16 rows and 8 columns are two neighbours of two rows, eight apart
// (PTX ISA, "mma", fragments of .m16n8). A warp has squares of 16, one behind the other
// in a row of its part; a group has 64 rows at a time, 16 for each of its warps.
void GpuEmitter::emit_share_of_sums() {
  const ProductTile& t = gpu_.product;
  const bool groups = t.by == Multiplier::Group;
  const std::string side = text_of(kMatrixSide), all = text_of(t.part_columns / 2);
  line("const u32 lane = thread % kWarpThreads;");
  line(kUnrolled);
  open("for (u32 n = 0; n < " + text_of(sums_of_thread(t)) + "; n += 2u)");
  const std::string below = groups ? "n / " + all + " * " + text_of(kGroupRows) +
                                         " + thread / kWarpThreads % 4u * " + side
                                   : "n / " + all + " * " + side;
  line("const u32 r = below * " + text_of(t.part_rows) + " + " + below +
       " + n / 2u % 2u * 8u + lane / 4u;");
  line("const u32 c = beside * " + text_of(t.part_columns) + " + n % " + all +
       " / 4u * 8u + lane % 4u * 2u;");
  const std::string kind = compute_type(k_.stages[0].dtype);
  line("store_run(sum_tile + r * " + text_of(sums_pitch(t)) + " + c, Vector<" + kind +
       ", 2>{sums[n], sums[n + 1u]});");
  close();
}

// The stages behind that of the sums along a run of a row, from the sums `run`.
void GpuEmitter::emit_result(uint32_t sum, const std::vector<AxisId>& columns, int near) {
  const Point p(counts_.size(), 0);
  locals_.clear();
  if (near == 1) {
    locals_[{sum, p}] = {"run[0]", false};
    for (uint32_t s = sum + 1; s < k_.stages.size(); ++s) emit_stage(s);
    return;
  }
  const std::vector<AxisId> axes = axes_of_runs(k_, columns, near);
  for (uint32_t number = sum + 1; number < k_.stages.size(); ++number)
    emit_run_store(k_.stages[number], axes, near, [&](int i) {
      locals_[{sum, p}] = {"run[" + std::to_string(i) + "]", false};
    });
}

// A stage along a run that is written at once. `name_locals`: for each of its elements.
void GpuEmitter::emit_run_store(const Stage& s, const std::vector<AxisId>& axes, int near,
                                const std::function<void(int)>& name_locals) {
  const Point p(counts_.size(), 0);
  const std::string guard = condition(s.domain, p, false), stored = fresh("w");
  open(guard.empty() ? "" : "if (" + guard + ")");
  line("Vector<" + store_type(s.dtype) + ", " + std::to_string(near) + "> " + stored +
       ";");
  load_runs(s.value, axes, near, p);
  for_each_of_run(near, [&](int i) {
    name_locals(i);
    line(stored + "[" + std::to_string(i) +
         "] = " + to_store(s.dtype, eval(s.value, p).name) + ";");
  });
  line("put_run(a" + std::to_string(s.argument) + " + " + index_text(s.index, p, false) +
       ", " + stored + ");");
  close();
}

void GpuEmitter::emit_shared_results() {
  const ProductTile& t = gpu_.product;
  const int near = near_results(k_, t);
  const std::string kind = compute_type(k_.stages[0].dtype);
  line("wait_for_block();");
  line("SVOD_OF_BLOCK " + kind + "* const sum_tile = (SVOD_OF_BLOCK " + kind +
       "*)tiles;");
  emit_share_of_sums();
  line("wait_for_block();");
  const int64_t runs = int64_t{t.block_rows} * t.block_columns / near,
                of_row = t.block_columns / near;
  line("#pragma clang loop unroll_count(4)");
  open("for (u32 n = 0; n < " + text_of(ceil_div(runs, gpu_.threads)) + "; ++n)");
  line("const u32 i = thread + n * " + text_of(gpu_.threads) + ";");
  if (runs % gpu_.threads != 0) line("if (i >= " + text_of(runs) + ") continue;");
  line("const u32 r = i / " + text_of(of_row) + ", c = i % " + text_of(of_row) + " * " +
       text_of(near) + ";");
  line("const u32 row = first_row + r, column = first_column + c;");
  open(is_there(k_, t));
  const std::string at_once = text_of(std::min(near, 4));
  line(kind + " run[" + std::to_string(near) + "];");
  line("take_runs<" + at_once + ", " + at_once + ">(run, sum_tile + r * " +
       text_of(sums_pitch(t)) + " + c);");
  name_axes(t.rows.axes, "row");
  name_axes(t.columns.axes, "column");
  emit_result(0, t.columns.axes, near);
  close();
  close();
}

} // namespace svod::codegen
