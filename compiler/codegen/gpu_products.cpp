// Sums of products by tiles. A block computes a part of a matrix: some steps of the sum
// of all its rows and columns are brought to shared memory by all threads, whatever the
// factors are computed from, and each thread multiplies the rows and columns of its own
// small part, which is in registers; or each warp those of its part, by tensor cores.
// While the steps of one buffer are multiplied, the next ones are on their way: read into
// registers before, written to the other buffer behind. Threads add the products one
// after the other, in the order of the loops. Where too few tiles are there for all
// multiprocessors, several blocks share the steps of one; the last to be done adds up
// what the others have left in memory, in the order of the steps, whichever it is.
#include "compiler/codegen/element_text.h"
#include "compiler/codegen/gpu_factor.h"

#include <algorithm>

namespace svod::codegen {

GpuEmitter::Factor GpuEmitter::factor(bool rows) const {
  const ProductTile& t = gpu_.product;
  Factor out;
  out.value = factor_of(k_, t, rows);
  out.how = rows ? t.rows : t.columns;
  out.tile = shared_tile(k_, t, rows);
  out.positions = rows ? t.block_rows : t.block_columns, out.steps = t.steps;
  out.threads = gpu_.threads;
  out.narrow = t.matrices() && narrow_type(k_, out.value);
  out.element = t.matrices() ? store_type(out.tile.dtype) : compute_type(out.tile.dtype);
  out.name = rows ? "row_tile" : "column_tile";
  out.next = rows ? "next_rows" : "next_columns";
  out.extent = positions_along(k_, out.how.axes);
  out.first = rows ? "first_row" : "first_column";
  return out;
}

// The narrow number that a factor is widened from, as it lies in memory.
std::string GpuEmitter::narrow_text(ExprId id, const Point& p) {
  const Expr& e = k_.exprs[id];
  if (e.kind == Expr::Kind::Guard) {
    const std::string guard = condition(e.bounds, p, false),
                      inner = narrow_text(e.inputs[0], p);
    return guard.empty() ? inner : "(" + guard + " ? " + inner + " : 0)";
  }
  const Expr& source = k_.exprs[e.inputs[0]];
  if (const auto run = runs_.find(e.inputs[0]); run != runs_.end()) return run->second;
  if (source.kind == Expr::Kind::Load) {
    const std::string guard = condition(source.bounds, p, false);
    const std::string element = "a" + std::to_string(source.argument) + "[" +
                                index_text(source.index, p, false) + "]";
    if (guard.empty()) return element;
    return "(" + guard + " ? " + element + " : " +
           stored_literal(source.dtype, source.bits) + ")";
  }
  return to_store(source.dtype, eval(e.inputs[0], p).name);
}

// What shared memory holds of the factor.
std::string GpuEmitter::factor_text(const SharedFactor& f, const Point& p) {
  return f.narrow ? narrow_text(f.value, p) : eval(f.value, p).name;
}

// Reads what lies side by side from the load's element on; returns its name.
std::string GpuEmitter::load_run(const Expr& e, int near, const Point& p) {
  const std::string count = std::to_string(near),
                    type = "Vector<" + store_type(e.dtype) + ", " + count + ">",
                    guard = condition(e.bounds, p, false), name = fresh("r");
  std::string value = "load_run<" + count + ">(a" + std::to_string(e.argument) + " + " +
                      index_text(e.index, p, false) + ")";
  if (!guard.empty())
    value = guard + " ? " + value + " : " + type + "(" + stored_literal(e.dtype, e.bits) +
            ")";
  line("const " + type + " " + name + " = " + value + ";");
  return name;
}

// The same for all that is read below the value along the axes.
void GpuEmitter::load_runs(ExprId value, const std::vector<AxisId>& axes, int near,
                           const Point& p) {
  for (ExprId id : loads_below(k_, value))
    if (std::ranges::any_of(
            axes, [&](AxisId a) { return k_.indices.depends_on(k_.exprs[id].index, a); }))
      runs_[id] = load_run(k_.exprs[id], near, p);
}

// Does something for each element of what load_runs() has read; then it is forgotten.
void GpuEmitter::for_each_of_run(int near, const std::function<void(int)>& body) {
  const Point p(counts_.size(), 0);
  const std::map<ExprId, std::string> names = std::move(runs_);
  for (int i = 0; i < near; ++i) {
    const std::string at = "[" + std::to_string(i) + "]";
    frames_.emplace_back();
    for (const auto& [id, name] : names) {
      const DType dtype = k_.exprs[id].dtype;
      runs_[id] = name + at;
      frames_.back()[{id, project(id, p)}] = {from_store(dtype, name + at), false};
    }
    body(i);
    frames_.pop_back();
  }
  runs_.clear();
}

// The elements of one run, into a thread's register of them. `steps`: the axes that steps
// are along.
void GpuEmitter::emit_run(const SharedFactor& f, const std::vector<AxisId>& steps,
                          const std::string& to) {
  const Point p(counts_.size(), 0);
  if (f.how.near == 1) {
    line(to + " = " + factor_text(f, p) + ";");
    return;
  }
  load_runs(f.value, axes_of_runs(k_, f.how.by_steps ? steps : f.how.axes, f.how.near),
            f.how.near, p);
  for_each_of_run(f.how.near, [&](int i) {
    line(to + "[" + std::to_string(i) + "] = " + factor_text(f, p) + ";");
  });
}

// Number `n` of a thread's runs, as its first step `s` and position `p` within the tile.
void GpuEmitter::open_run(const SharedFactor& f) {
  const int64_t along = f.how.by_steps ? f.steps : f.positions;
  line(kUnrolled);
  open("for (u32 n = 0; n < " + text_of(f.turns()) + "; ++n)");
  line("const u32 i = thread + n * " + text_of(f.threads) + ";");
  if (f.runs() % f.threads != 0) line("if (i >= " + text_of(f.runs()) + ") continue;");
  const std::string of_run = text_of(along / f.how.near),
                    near = f.how.near == 1 ? "" : " * " + text_of(f.how.near);
  line("const u32 " + std::string(f.how.by_steps ? "s" : "p") + " = i % " + of_run +
       near + ", " + (f.how.by_steps ? "p" : "s") + " = i / " + of_run + ";");
}

// A run from registers to shared memory.
void GpuEmitter::emit_put(const SharedFactor& f, const std::string& run) {
  const std::string to = f.buffer() + " + " + f.place();
  if (f.how.near == 1)
    line("(" + f.buffer() + ")[" + f.place() + "] = " + run + ";");
  else if (f.keeps_runs())
    line("store_run(" + to + ", " + run + ");");
  else
    line("scatter_run<" + text_of(f.tile.pitch) + ">(" + to + ", " + run + ");");
}

// A run from memory to shared memory, zeros where there is nothing. `open_there` opens
// what is done where it is there, and returns how many blocks that opens.
void GpuEmitter::emit_copy(const SharedFactor& f, const CopiedFactor& copied,
                           const std::function<int()>& open_there) {
  line("const " + f.element + "* from = a" + std::to_string(copied.load->argument) + ";");
  line("bool there = false;");
  int opened = open_there();
  line("from += " + index_text(copied.load->index, Point(counts_.size(), 0), false) +
       ";");
  line("there = true;");
  while (opened-- > 0) close();
  const int64_t bytes = byte_size(f.tile.dtype) * (f.keeps_runs() ? f.how.near : 1);
  const std::string to = f.buffer() + " + " + f.place(),
                    copy = "copy_ahead<" + std::to_string(bytes) + ">(";
  if (f.keeps_runs()) {
    line(copy + to + ", from, there);");
  } else {
    line(kUnrolled);
    line("for (u32 e = 0; e < " + text_of(f.how.near) + "; ++e) " + copy + to +
         " + e * " + text_of(f.tile.pitch) + ", from + e, there);");
  }
}

// Names the axes of the sum at step `at`, which is `s` steps behind `step`. Where a tile
// of steps is within the innermost axes, the others are those of all of it.
void GpuEmitter::name_steps() {
  std::vector<AxisId> outer = k_.inner(k_.stages[0]);
  std::erase_if(outer, [&](AxisId a) { return k_.indices.extent(a) == 1; });
  const int64_t steps = gpu_.product.steps;
  std::vector<AxisId> inner;
  while (outer.size() > 1 && (inner.empty() || positions_along(k_, inner) % steps != 0)) {
    inner.insert(inner.begin(), outer.back());
    outer.pop_back();
  }
  const int64_t extent = positions_along(k_, inner);
  if (inner.empty() || extent % steps != 0) {
    outer.insert(outer.end(), inner.begin(), inner.end());
    return name_axes(outer, "at");
  }
  name_axes(outer, "(step / " + text_of(extent) + ")");
  name_axes(inner, extent == steps ? "s" : "(step % " + text_of(extent) + " + s)");
}

// Opens what is done where the run of `open_run` is there, under the bounds of the sum
// and the others given. Returns how many blocks that opens.
int GpuEmitter::open_where_there(const Factor& f, const std::vector<Bound>& bounds) {
  const Point p(counts_.size(), 0);
  const int64_t steps = positions_along(k_, k_.inner(k_.stages[0]));
  const std::string there = both(bounded("position", f.extent, f.positions),
                                 steps % gpu_.product.steps == 0 ? "" : "at < end");
  open(there.empty() ? "" : "if (" + there + ")");
  name_axes(f.how.axes, "position");
  name_steps();
  std::string guard = condition(k_.stages[0].domain, p, false);
  if (const std::string own = condition(bounds, p, false); !own.empty())
    guard += (guard.empty() ? "" : " && ") + own;
  if (guard.empty()) return 1;
  open("if (" + guard + ")");
  return 2;
}

// Reads the steps from `step` on, of one factor, into registers.
void GpuEmitter::emit_fetch(const Factor& f) {
  open_run(f);
  line("const u32 position = " + f.first + " + p, at = step + s;");
  line(f.next + "[n] = 0;");
  int opened = open_where_there(f, {});
  emit_run(f, k_.inner(k_.stages[0]), f.next + "[n]");
  while (opened-- > 0) close();
  close();
}

// What each thread adds of the steps in a buffer. Written out whole, the factors of all
// steps would be in registers at once, and most of them in memory (16 steps of a tile of
// 4 x 4: 255 registers and 144 bytes spilled, where 4 at a time take 79).
void GpuEmitter::emit_thread_sums(const Factor& rows, const Factor& columns) {
  const ProductTile& t = gpu_.product;
  const Stage& s = k_.stages[0];
  const std::string kind = compute_type(s.dtype);
  auto take = [&](const Factor& f, const char* to, int count, int parts,
                  const char* number) {
    const int run = run_of(count, s.dtype);
    line(kind + " " + to + "[" + std::to_string(count) + "];");
    line("take_runs<" + std::to_string(run) + ", " + std::to_string(run * parts) + ">(" +
         to + ", " + f.buffer() + " + s * " + text_of(f.tile.pitch) + " + " + number +
         " * " + text_of(run) + ");");
  };
  line("#pragma clang loop unroll_count(4)");
  open("for (u32 s = 0; s < " + text_of(t.steps) + "; ++s)");
  take(rows, "rows", t.part_rows, t.parts_down(), "below");
  take(columns, "columns", t.part_columns, t.parts_across(), "beside");
  line(kUnrolled);
  open("for (u32 i = 0; i < " + text_of(t.part_rows) + "; ++i)");
  line(kUnrolled);
  open("for (u32 j = 0; j < " + text_of(t.part_columns) + "; ++j)");
  const std::string sum = "sums[i * " + text_of(t.part_columns) + " + j]";
  line(is_float(s.dtype) ? sum + " = ma_(rows[i], columns[j], " + sum + ");"
                         : sum + " += rows[i] * columns[j];");
  close();
  close();
  close();
}

// What the tensor cores add of the steps in a buffer to the part of a warp.
void GpuEmitter::emit_warp_sums(const Factor& rows, const Factor& columns) {
  const ProductTile& t = gpu_.product;
  const int down = t.part_rows / kMatrixSide, across = t.part_columns / kMatrixSide;
  const int64_t steps = kMatrixBytes / byte_size(rows.tile.dtype);
  auto take = [&](const Factor& f, const char* to, int count, const char* number,
                  int part) {
    line("Matrix " + std::string(to) + "[" + std::to_string(count) + "];");
    line(kUnrolled);
    line("for (u32 i = 0; i < " + text_of(count) + "; ++i) " + to + "[i] = matrix_of<" +
         (f.tile.by_steps ? "true" : "false") + ", " + std::to_string(f.tile.pitch) +
         ">(" + f.buffer() + ", " + number + " * " + text_of(part) + " + i * " +
         text_of(kMatrixSide) + ", s);");
  };
  line(kUnrolled);
  open("for (u32 s = 0; s < " + text_of(t.steps) + "; s += " + text_of(steps) + ")");
  take(rows, "rows", down, "below", t.part_rows);
  take(columns, "columns", across, "beside", t.part_columns);
  line(kUnrolled);
  open("for (u32 i = 0; i < " + text_of(down) + "; ++i)");
  line(kUnrolled);
  line("for (u32 j = 0; j < " + text_of(across) + "; ++j) multiply_matrices<" +
       rows.tag() + ", " + columns.tag() + ">(sums + (i * " + text_of(across) +
       " + j) * 8u, rows[i], columns[j]);");
  close();
  close();
}

// Adds up what all blocks have that share the steps of the tile; opens what the last of
// them does.
void GpuEmitter::open_joined(int sums) {
  const ProductTile& t = gpu_.product;
  const std::string kind = compute_type(k_.stages[0].dtype);
  line(kind + "* const parts = reinterpret_cast<" + kind + "*>(room) + u64(tile) * " +
       text_of(int64_t{t.splits} * gpu_.threads * sums) + ";");
  shared("is_last", "u32", "1");
  open("if (joined<" + std::to_string(t.splits) + ", " + std::to_string(gpu_.threads) +
       ">(sums, parts, share, arrived + tile, is_last))");
}

void GpuEmitter::emit_multiply(const Factor& rows, const Factor& columns) {
  open("auto multiply = [&](u32 buffer) SVOD_INLINED");
  gpu_.product.matrices() ? emit_warp_sums(rows, columns)
                          : emit_thread_sums(rows, columns);
  close("};");
}

void GpuEmitter::emit_through_registers(const Factor& rows, const Factor& columns) {
  const ProductTile& t = gpu_.product;
  for (const Factor* f : {&rows, &columns})
    line(f->run_type() + " " + f->next + "[" + std::to_string(f->turns()) + "];");
  open("auto fetch = [&](u32 step) SVOD_INLINED");
  emit_fetch(rows);
  emit_fetch(columns);
  close("};");
  open("auto put = [&](u32 buffer) SVOD_INLINED");
  for (const Factor* f : {&rows, &columns}) {
    open_run(*f);
    emit_put(*f, f->next + "[n]");
    close();
  }
  close("};");
  emit_multiply(rows, columns);
  line("fetch(begin);");
  line("put(0);");
  line("wait_for_block();");
  line("u32 filled = 0;");
  line("#pragma clang loop unroll(disable)");
  open("for (u32 step = begin + " + text_of(t.steps) +
       "; step < end; step += " + text_of(t.steps) + ")");
  line("fetch(step);");
  line("multiply(filled);");
  line("filled = 1 - filled;");
  line("put(filled);");
  line("wait_for_block();");
  close();
  line("multiply(filled);");
}

// What begins to copy the steps from `step` on.
void GpuEmitter::emit_copies(const Factor& rows, const Factor& columns) {
  open("auto copy = [&](u32 step, u32 buffer) SVOD_INLINED");
  for (const Factor* f : {&rows, &columns}) {
    const CopiedFactor copied = *copied_value(k_, f->value, f->tile.dtype);
    open_run(*f);
    line("const u32 position = " + f->first + " + p, at = step + s;");
    emit_copy(*f, copied, [&] { return open_where_there(*f, copied.bounds); });
    close();
  }
  close("};");
}

// Begins the copies that are ahead of the first tile of steps.
void GpuEmitter::begin_copies() {
  const std::string steps = text_of(gpu_.product.steps);
  line(kUnrolled);
  open("for (u32 n = 0; n < " + text_of(gpu_.product.ahead) + "; ++n)");
  line("if (begin + n * " + steps + " < end) copy(begin + n * " + steps + ", n);");
  line("end_copies();");
  close();
}

void GpuEmitter::emit_copied_ahead(const Factor& rows, const Factor& columns) {
  const ProductTile& t = gpu_.product;
  const std::string last = text_of(buffers_of(k_, t) - 1), ahead = text_of(t.ahead),
                    steps = text_of(t.steps),
                    further = text_of(int64_t{t.ahead} * t.steps);
  emit_copies(rows, columns);
  emit_multiply(rows, columns);
  begin_copies();
  line("u32 filled = 0, free = " + ahead + ";");
  line("#pragma clang loop unroll(disable)");
  open("for (u32 step = begin; step < end; step += " + steps + ")");
  line("wait_for_copies<" + std::to_string(t.ahead - 1) + ">();");
  line("wait_for_block();");
  line("if (step + " + further + " < end) copy(step + " + further + ", free);");
  line("end_copies();");
  line("multiply(filled);");
  line("free = filled;");
  line("filled = filled == " + last + " ? 0 : filled + 1;");
  close();
}

void GpuEmitter::emit_products() {
  const ProductTile& t = gpu_.product;
  const Stage& s = k_.stages[0];
  const Factor rows = factor(true), columns = factor(false);
  const int64_t down = ceil_div(rows.extent, t.block_rows),
                beside = ceil_div(columns.extent, t.block_columns),
                steps = positions_along(k_, k_.inner(s)),
                others = positions_along(k_, gpu_.positions),
                tiles = down * beside * others;
  const int sums = sums_of_thread(t);
  line("const u32 thread = thread_number(), block = block_number();");
  line("const u32 first_column = block % " + text_of(beside) + " * " +
       text_of(t.block_columns) + ", first_row = block / " + text_of(beside) + " % " +
       text_of(down) + " * " + text_of(t.block_rows) + ";");
  if (others > 1) {
    line("const u32 part = block / " + text_of(beside * down) + " % " + text_of(others) +
         ";");
    name_axes(gpu_.positions, "part");
  }
  if (t.splits == 1) {
    line("const u32 begin = 0, end = " + text_of(steps) + ";");
  } else {
    // Each has whole tiles of steps.
    const int64_t each = turns_of(k_, t) * t.steps;
    line("const u32 tile = block % " + text_of(tiles) + ", share = block / " +
         text_of(tiles) + ";");
    line("const u32 begin = share * " + text_of(each) + ", end = begin + " +
         text_of(each) + " < " + text_of(steps) + " ? begin + " + text_of(each) + " : " +
         text_of(steps) + ";");
  }
  const int of_part = gpu_.threads / (t.parts_down() * t.parts_across());
  const std::string part = of_part == 1 ? "thread" : "thread / " + text_of(of_part),
                    across = text_of(t.parts_across());
  line("const u32 beside = " + part + " % " + across + ", below = " + part + " / " +
       across + ";");
  line(compute_type(s.dtype) + " sums[" + std::to_string(sums) + "] = {};");
  shared_["tiles"] = "SVOD_TILES(" + std::to_string(shared_of_tiles(k_, t)) + ", " +
                     (rows.tile.swizzled ? "1024" : "16") + ");\n";
  const int64_t of_rows =
      buffers_of(k_, t) * rows.tile.elements * byte_size(rows.tile.dtype);
  line("SVOD_OF_BLOCK " + rows.element + "* const row_tile = (SVOD_OF_BLOCK " +
       rows.element + "*)tiles;");
  line("SVOD_OF_BLOCK " + columns.element + "* const column_tile = (SVOD_OF_BLOCK " +
       columns.element + "*)(tiles + " + text_of(of_rows) + ");");
  if (t.by == Multiplier::Group)
    emit_groups(rows, columns);
  else if (t.ahead != 0)
    emit_copied_ahead(rows, columns);
  else
    emit_through_registers(rows, columns);
  if (t.splits > 1) open_joined(sums);
  t.matrices() ? emit_shared_results() : emit_thread_results();
  if (t.splits > 1) close();
}

} // namespace svod::codegen
