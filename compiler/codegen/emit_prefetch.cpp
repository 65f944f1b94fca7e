// Weights and pictures on their way: what the schedule says is fetched before it is read.
#include "compiler/codegen/element_text.h"
#include "compiler/codegen/sum_emitter.h"
#include "compiler/support/check.h"

#include <algorithm>

namespace svod::codegen {

// The first weight whose panels ahead are within its limits, for this size of the tile.
std::optional<SumEmitter::Ahead> SumEmitter::find_ahead(const Stage& s) const {
  for (const WeightPrefetch& w : how(s).weights) {
    const Expr& e = k_.exprs[w.load];
    Ahead ahead{w, 1, 1, 1};
    int64_t rows = 1;
    for (size_t i = 0; i < how_.tile.size(); ++i) {
      const AxisId a = how_.tile[i].axis;
      if (a == w.panels) ahead.panels = counts_[i];
      if (!k_.indices.depends_on(e.index, a)) rows *= counts_[i];
    }
    const int64_t bytes = ahead.panels * w.panel_elements * byte_size(e.dtype);
    if (w.sweep != w.panels) ahead.sweeps = tile_trips(k_, how_.tile, w.sweep);
    const bool stream =
        ahead.sweeps == 1 && rows <= w.stream_rows && bytes > w.stream_bytes;
    if (bytes <= w.most_bytes && !stream) return ahead;
  }
  return std::nullopt;
}

// Before the stage's loops: how far ahead this sweep fetches; nothing, in its own panel,
// once the next ones are there.
void SumEmitter::open_ahead(const Stage& s) {
  sums_.ahead = find_ahead(s);
  if (!sums_.ahead) return;
  Ahead& ahead = *sums_.ahead;
  ahead.each = (ahead.panels + ahead.sweeps - 1) / ahead.sweeps;
  const int64_t needed = (ahead.panels + ahead.each - 1) / ahead.each;
  const std::string a = std::to_string(ahead.how.sweep);
  const bool chunked = std::ranges::any_of(
      k_.loops.chunks, [&](const ChunkAxis& c) { return c.axis == ahead.how.sweep; });
  std::string sweep = "(x" + a + (chunked ? " - low" + a : "") + ") / " +
                      std::to_string(tile_count(how_.tile, ahead.how.sweep));
  if (ahead.sweeps == 1) sweep = "0";
  const std::string number = fresh("n");
  line("const iptr " + number + " = " + sweep + ";");
  ahead.offset = fresh("n");
  line("const iptr " + ahead.offset + " = " + number + " < " + std::to_string(needed) +
       " ? (" + std::to_string(ahead.panels) + " + " + number + " * " +
       std::to_string(ahead.each) + ") * " + std::to_string(ahead.how.panel_elements) +
       " : 0;");
}

// In a step of the reduction.
void SumEmitter::fetch_ahead() {
  if (!sums_.ahead) return;
  const Ahead& ahead = *sums_.ahead;
  const Expr& load = k_.exprs[ahead.how.load];
  const std::string at = index_text(load.index, Point(counts_.size(), 0), false);
  for (int64_t i = 0; i < ahead.each; ++i)
    line("fetch(a" + std::to_string(load.argument) + ", " + at + " + " + ahead.offset +
         (i > 0 ? " + " + std::to_string(i * ahead.how.panel_elements) : "") + ");");
}

// Before the stage's loops: each tile fetches the rows that the windows below it are the
// first to read.
void SumEmitter::fetch_picture(const Stage& s) {
  if (!how(s).picture) return;
  const auto& [load, row, window, line_bytes] = *how(s).picture;
  const Expr& e = k_.exprs[load];
  const int64_t line_elements = line_bytes / byte_size(e.dtype);
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
    SVOD_CHECK(!k_.indices.depends_on(start, a))
        << "a fetch before the stage's loops names their axis i" << a;
    if (a == window || !k_.indices.affine_in(e.index, a, along)) continue;
    if (along == 1)
      span += k_.indices.extent(a) - 1;
    else if (along > 1)
      loop(0, k_.indices.extent(a), along);
  }
  for (size_t i = 0; i < how_.tile.size(); ++i) {
    const AxisId a = how_.tile[i].axis;
    if (a == row)
      rows = counts_[i];
    else if (!k_.indices.affine_in(e.index, a, along))
      continue;
    else if (along < step)
      span += along * (counts_[i] - 1);
    else // of other pictures, all of which lie between
      loop(0, counts_[i], along);
  }
  const int64_t first = (rows - 1) * down / step + k_.indices.extent(window);
  loop(first, first + rows * down / step, step);
  loop(0, (span + line_elements - 1) / line_elements, line_elements);
  line(loops + "fetch(a" + std::to_string(e.argument) + ", " +
       index_text(start, Point(counts_.size(), 0), false) + at + ");");
}

} // namespace svod::codegen
