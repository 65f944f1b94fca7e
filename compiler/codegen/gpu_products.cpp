// Sums of products by tiles. A block computes a part of a matrix: some steps of the sum
// of all its rows and columns are brought to shared memory by all threads, whatever the
// factors are computed from, and each thread multiplies the rows and columns of its own
// small part, which is in registers. A thread's rows and columns lie apart by as many
// threads as there are along them, so that neighbouring threads read neighbouring
// columns. Each sum adds its products one after the other, in the order of the loops.
#include "compiler/codegen/element_text.h"
#include "compiler/codegen/gpu_emitter.h"

namespace svod::codegen {

static std::string text_of(int64_t number) { return std::to_string(number) + "u"; }

// Elements of a step are followed by one that nobody reads: where threads fill the tile
// along steps, neighbours would meet in one bank.
static int64_t pitch(int64_t positions) { return positions + 1; }

// One factor of `steps` steps from `step` on, in turns of all threads.
void GpuEmitter::emit_fill(bool rows) {
  const ProductTile& t = gpu_.product;
  const Stage& s = k_.stages[0];
  const int64_t size = rows ? t.block_rows : t.block_columns;
  const bool by_steps = rows ? t.rows_by_steps : t.columns_by_steps;
  const std::vector<AxisId>& axes = rows ? t.rows : t.columns;
  const std::string kind = compute_type(s.dtype),
                    tile = rows ? "row_tile" : "column_tile",
                    base = rows ? "first_row" : "first_column";
  shared(tile, kind, std::to_string(t.steps * pitch(size)));
  line("#pragma clang loop unroll(full)");
  open("for (u32 i = thread; i < " + text_of(t.steps * size) +
       "; i += " + text_of(gpu_.threads) + ")");
  const std::string inner = text_of(by_steps ? t.steps : size);
  line("const u32 " + std::string(by_steps ? "s" : "p") + " = i % " + inner + ", " +
       (by_steps ? "p" : "s") + " = i / " + inner + ";");
  line("const u32 position = " + base + " + p, at = step + s;");
  line(kind + " value = " + kind + "(0);");
  open("if (position < " + text_of(positions_along(k_, axes)) + " && at < " +
       text_of(positions_along(k_, k_.inner(s))) + ")");
  name_axes(axes, "position");
  name_axes(k_.inner(s), "at");
  const Point p(counts_.size(), 0);
  const std::string guard = condition(s.domain, p, false);
  if (!guard.empty()) open("if (" + guard + ")");
  const uint32_t factor = rows ? t.row_factor : 1 - t.row_factor;
  line("value = " + eval(k_.exprs[s.value].inputs[factor], p).name + ";");
  if (!guard.empty()) close();
  close();
  line(tile + "[s * " + text_of(pitch(size)) + " + p] = value;");
  close();
}

// What each thread adds of the steps that are there.
void GpuEmitter::emit_sums() {
  const ProductTile& t = gpu_.product;
  const Stage& s = k_.stages[0];
  const std::string kind = compute_type(s.dtype);
  const int across = t.block_columns / t.thread_columns,
            down = t.block_rows / t.thread_rows;
  line("#pragma clang loop unroll(full)");
  open("for (u32 s = 0; s < " + text_of(t.steps) + "; ++s)");
  line(kind + " rows[" + std::to_string(t.thread_rows) + "], columns[" +
       std::to_string(t.thread_columns) + "];");
  line("#pragma clang loop unroll(full)");
  line("for (u32 i = 0; i < " + text_of(t.thread_rows) +
       "; ++i) rows[i] = row_tile[s * " + text_of(pitch(t.block_rows)) +
       " + below + i * " + text_of(down) + "];");
  line("#pragma clang loop unroll(full)");
  line("for (u32 j = 0; j < " + text_of(t.thread_columns) +
       "; ++j) columns[j] = column_tile[s * " + text_of(pitch(t.block_columns)) +
       " + beside + j * " + text_of(across) + "];");
  line("#pragma clang loop unroll(full)");
  open("for (u32 i = 0; i < " + text_of(t.thread_rows) + "; ++i)");
  line("#pragma clang loop unroll(full)");
  open("for (u32 j = 0; j < " + text_of(t.thread_columns) + "; ++j)");
  line(is_float(s.dtype) ? "sums[i][j] = ma_(rows[i], columns[j], sums[i][j]);"
                         : "sums[i][j] += rows[i] * columns[j];");
  close();
  close();
  close();
}

// The other stages, at each position of the thread's part that exists.
void GpuEmitter::emit_results() {
  const ProductTile& t = gpu_.product;
  const int across = t.block_columns / t.thread_columns,
            down = t.block_rows / t.thread_rows;
  line("#pragma clang loop unroll(full)");
  open("for (u32 i = 0; i < " + text_of(t.thread_rows) + "; ++i)");
  line("const u32 row = first_row + below + i * " + text_of(down) + ";");
  open("if (row < " + text_of(positions_along(k_, t.rows)) + ")");
  name_axes(t.rows, "row");
  line("#pragma clang loop unroll(full)");
  open("for (u32 j = 0; j < " + text_of(t.thread_columns) + "; ++j)");
  line("const u32 column = first_column + beside + j * " + text_of(across) + ";");
  open("if (column < " + text_of(positions_along(k_, t.columns)) + ")");
  name_axes(t.columns, "column");
  locals_.clear();
  locals_[{0, Point(counts_.size(), 0)}] = {"sums[i][j]", false};
  for (uint32_t s = 1; s < k_.stages.size(); ++s) emit_stage(s);
  close();
  close();
  close();
  close();
}

void GpuEmitter::emit_products() {
  const ProductTile& t = gpu_.product;
  const Stage& s = k_.stages[0];
  const std::string kind = compute_type(s.dtype);
  const int64_t rows = positions_along(k_, t.rows),
                columns = positions_along(k_, t.columns);
  const int64_t down = (rows + t.block_rows - 1) / t.block_rows,
                beside = (columns + t.block_columns - 1) / t.block_columns;
  const std::string across = text_of(t.block_columns / t.thread_columns);
  line("const u32 thread = thread_number(), block = block_number();");
  line("const u32 first_column = block % " + text_of(beside) + " * " +
       text_of(t.block_columns) + ", first_row = block / " + text_of(beside) + " % " +
       text_of(down) + " * " + text_of(t.block_rows) + ";");
  if (positions_along(k_, gpu_.positions) > 1) {
    line("const u32 part = block / " + text_of(beside * down) + ";");
    name_axes(gpu_.positions, "part");
  }
  line("const u32 beside = thread % " + across + ", below = thread / " + across + ";");
  line(kind + " sums[" + std::to_string(t.thread_rows) + "][" +
       std::to_string(t.thread_columns) + "] = {};");
  line("#pragma clang loop unroll(disable)");
  open("for (u32 step = 0; step < " + text_of(positions_along(k_, k_.inner(s))) +
       "; step += " + text_of(t.steps) + ")");
  emit_fill(true);
  emit_fill(false);
  line("wait_for_block();");
  emit_sums();
  line("wait_for_block();");
  close();
  emit_results();
}

} // namespace svod::codegen
