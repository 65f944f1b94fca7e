// Weights are met once per run: in a model larger than the caches each panel comes from
// memory, and what the processor fetches by itself ends with a page or a panel. A tile of
// panels is read again for every tile of data. During the first of those sweeps the
// panels after them, which lie behind them in memory, are fetched into the second cache:
// one line for each step of the reduction, which costs nothing beside a tile's
// multiplications. resnet18's products of 16 rows: 87 to 108 GFLOP/s, those of 8 rows,
// which sweep once: 87 to 105.
#include "compiler/codegen/kernel_emitter.h"

#include <algorithm>

namespace svod {

// Weights below this stay in the second cache from run to run.
static constexpr int64_t kResident = 128 << 10;
// More than this would push out of the second cache what is in use.
static constexpr int64_t kMostAhead = 256 << 10;
// Longer panels that are swept once, for few rows, are nothing but streams, which the
// processor follows by itself; it does not where many multiplications lie between.
static constexpr int64_t kMostStreamed = 64 << 10;
static constexpr int64_t kRowsOfStream = 3;

// The last loop that takes the load to another panel; those before it in memory and time.
static size_t panel_loop(const ScheduledKernel& k, const Expr& load) {
  size_t place = k.loops.outer.size();
  for (size_t i = 0; i < k.loops.outer.size(); ++i)
    if (!k.is_lane(k.loops.outer[i]) && k.indices.extent(k.loops.outer[i]) > 1 &&
        k.indices.depends_on(load.index, k.loops.outer[i]))
      place = i;
  return place;
}

int64_t KernelEmitter::tile_trips(AxisId axis) const {
  const std::vector<int64_t> lengths = range_lengths(axis, false, false);
  const int64_t count = tile_.count(axis);
  return (std::ranges::max(lengths) + count - 1) / count;
}

std::optional<KernelEmitter::Ahead> KernelEmitter::find_ahead(const Stage& s) const {
  if (s.op != Op::ReduceSum || s.keeps || s.nested || level_.register_bits <= 32)
    return std::nullopt;
  for (ExprId id : loads_below(k_, s.value)) {
    const Expr& e = k_.exprs[id];
    int64_t lane = 0, panel = 0, elements = k_.loops.lanes;
    if (k_.arguments[e.argument].kind != Argument::Kind::Packed || !e.bounds.empty() ||
        !k_.has_lane_axis() || !k_.indices.affine_in(e.index, *k_.loops.lane, lane) ||
        lane != (k_.has_dot_axis() ? kDot : 1))
      continue;
    if (k_.indices.range(e.index).high * byte_size(e.dtype) < kResident) continue;
    const size_t place = panel_loop(k_, e);
    if (place == k_.loops.outer.size()) continue;
    const AxisId axis = k_.loops.outer[place];
    for (AxisId a : k_.inner(s))
      if (k_.indices.depends_on(e.index, a)) elements *= k_.indices.extent(a);
    if (!k_.indices.affine_in(e.index, axis, panel) || panel != elements) continue;
    Ahead ahead{e.argument, e.index, panel, 1, axis, axis, 1};
    int64_t rows = 1;
    for (size_t i = 0; i < tile_.counts.size(); ++i) {
      const AxisId a = tile_.counts[i].first;
      if (a == axis) ahead.panels = counts_[i];
      if (!k_.indices.depends_on(e.index, a)) rows *= counts_[i];
    }
    const int64_t bytes = ahead.panels * panel * byte_size(e.dtype);
    if (bytes > kMostAhead) continue;
    for (size_t i = place + 1; i < k_.loops.outer.size(); ++i) {
      const AxisId a = k_.loops.outer[i];
      if (k_.is_lane(a) || k_.indices.extent(a) == 1) continue;
      if (const int64_t trips = tile_trips(a); trips > ahead.sweeps)
        ahead.sweeps = trips, ahead.sweep_axis = a;
    }
    if (ahead.sweeps > 1 || rows > kRowsOfStream || bytes <= kMostStreamed) return ahead;
  }
  return std::nullopt;
}

// Before the stage's loops: how far ahead this sweep fetches; nothing, in its own panel,
// once the next ones are there.
void KernelEmitter::open_ahead() {
  const int64_t each = (ahead_->panels + ahead_->sweeps - 1) / ahead_->sweeps;
  const int64_t needed = (ahead_->panels + each - 1) / each;
  const std::string a = std::to_string(ahead_->sweep_axis);
  const bool chunked = std::ranges::any_of(
      k_.loops.chunks, [&](const ChunkAxis& c) { return c.axis == ahead_->sweep_axis; });
  std::string sweep = "(x" + a + (chunked ? " - low" + a : "") + ") / " +
                      std::to_string(tile_.count(ahead_->sweep_axis));
  if (ahead_->sweeps == 1) sweep = "0";
  const std::string number = fresh("n");
  line("const iptr " + number + " = " + sweep + ";");
  ahead_->each = each;
  ahead_->offset = fresh("n");
  line("const iptr " + ahead_->offset + " = " + number + " < " + std::to_string(needed) +
       " ? (" + std::to_string(ahead_->panels) + " + " + number + " * " +
       std::to_string(each) + ") * " + std::to_string(ahead_->panel) + " : 0;");
}

// In a step of the reduction.
void KernelEmitter::fetch_ahead() {
  const std::string at = index_text(ahead_->index, Point(counts_.size(), 0), false);
  for (int64_t i = 0; i < ahead_->each; ++i)
    line("fetch(a" + std::to_string(ahead_->argument) + ", " + at + " + " +
         ahead_->offset + (i > 0 ? " + " + std::to_string(i * ahead_->panel) : "") +
         ");");
}

// A picture that is read where it lies comes from memory, and rows of a window are too
// short and too many at once for the processor to follow. Each tile fetches the rows that
// the windows below it are the first to meet.
void KernelEmitter::fetch_picture(const Stage& s) {
  if (s.op != Op::ReduceSum || level_.register_bits <= 32 || !k_.has_lane_axis()) return;
  for (ExprId id : loads_below(k_, s.value)) {
    const Expr& e = k_.exprs[id];
    if (e.bounds.empty() || on_lanes(id) || k_.indices.has_dynamic(e.index) ||
        k_.indices.range(e.index).high * byte_size(e.dtype) < kResident)
      continue;
    for (AxisId row : k_.loops.outer)
      for (AxisId window : k_.inner(s)) {
        int64_t down = 0, step = 0;
        if (k_.indices.affine_in(e.index, row, down) &&
            k_.indices.affine_in(e.index, window, step) && step > 1 && down >= step &&
            down % step == 0 && down / step < k_.indices.extent(window))
          return fetch_rows(s, e, row, window);
      }
  }
}

void KernelEmitter::fetch_rows(const Stage& s, const Expr& e, AxisId row, AxisId window) {
  constexpr int64_t kLineBytes = 64;
  const int64_t line_elements = kLineBytes / byte_size(e.dtype);
  int64_t down = 0, step = 0, along = 0, span = 1, rows = 1;
  k_.indices.affine_in(e.index, row, down);
  k_.indices.affine_in(e.index, window, step);
  Index start = e.index;
  std::string loops, at;
  auto loop = [&](int64_t from, int64_t end, int64_t apart) {
    const std::string i = fresh("n");
    loops += "for (iptr " + i + " = " + std::to_string(from) + "; " + i + " < " +
             std::to_string(end) + "; ++" + i + ") ";
    at += " + " + i + " * " + std::to_string(apart);
  };
  for (AxisId a : k_.inner(s)) {
    std::erase_if(start.terms, [&](const auto& term) {
      const Term& t = k_.indices.term(term.first);
      return t.kind == Term::Kind::Axis && t.id == a;
    });
    if (a == window || !k_.indices.affine_in(e.index, a, along)) continue;
    if (along == 1)
      span += k_.indices.extent(a) - 1;
    else if (along > 1)
      loop(0, k_.indices.extent(a), along);
  }
  for (size_t i = 0; i < tile_.counts.size(); ++i) {
    const AxisId a = tile_.counts[i].first;
    if (a == row)
      rows = counts_[i];
    else if (k_.indices.affine_in(e.index, a, along))
      span += along * (counts_[i] - 1);
  }
  const int64_t first = (rows - 1) * down / step + k_.indices.extent(window);
  loop(first, first + rows * down / step, step);
  loop(0, (span + line_elements - 1) / line_elements, line_elements);
  line(loops + "fetch(a" + std::to_string(e.argument) + ", " +
       index_text(start, Point(counts_.size(), 0), false) + at + ");");
}

} // namespace svod
