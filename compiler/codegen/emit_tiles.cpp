// Products between tiles of registers. The loops over positions and over vectors of lanes
// take a block of tiles at a time: its products go into registers of sums, and from there
// to a block of memory in the first cache. Then the same loops go through the positions
// of the block, where what follows the sum reads them as the vectors that it reads
// elsewhere.
//
// The last block along an axis begins early enough to be a whole one: sums that another
// block has, too, are computed twice, and read once.
#include "compiler/codegen/element_text.h"
#include "compiler/codegen/kernel_emitter.h"
#include "compiler/support/check.h"

#include <algorithm>

namespace svod::codegen {

// The loops of an outer nest; of a block of tiles its axes once more, within it.
void KernelEmitter::find_tiles() {
  order_ = k_.loops.outer;
  if (how_.stages.empty() || !how_.stages[0].tiles) return;
  const std::optional<TileFactors> factors = tile_factors(k_);
  SVOD_CHECK(factors) << "tiles of no product";
  const MatrixTiles& how = *how_.stages[0].tiles;
  tiles_ = {how, *factors, tile_counts(k_, *factors, how), {}, 0};
  for (AxisId a : k_.loops.outer)
    if (const int64_t positions = positions_in_block(a); positions > 0) {
      tiles_->blocked.push_back(a);
      order_.push_back(a);
    }
}

// Positions of the axis in a block of tiles; 0: it is no axis of it.
int64_t KernelEmitter::positions_in_block(AxisId axis) const {
  for (const TileAxis& t : tiles_->how.block)
    if (t.axis == axis) return block_positions(tiles_->how, t);
  return 0;
}

// How many positions of the axis a block may have to go through.
std::vector<int64_t> KernelEmitter::lengths_in_block(AxisId axis, bool first,
                                                     bool last) const {
  const int64_t block = positions_in_block(axis);
  std::vector<int64_t> out;
  for (const int64_t length : range_lengths(k_, axis, false, false))
    for (const int64_t part : {std::min(block, length), length % block})
      for (int64_t less = 0; less <= first + last; ++less)
        if (part - less > 0 && std::ranges::count(out, part - less) == 0)
          out.push_back(part - less);
  return out;
}

// A loop whose steps are blocks, and where the products of one begin.
void KernelEmitter::emit_blocks_of(size_t depth, const std::string& low,
                                   const std::string& high) {
  const AxisId axis = order_[depth];
  const std::string a = std::to_string(axis),
                    size = std::to_string(positions_in_block(axis)),
                    last = std::to_string(k_.indices.extent(axis) -
                                          positions_in_block(axis));
  const std::string begin = "b" + a, end = "e" + a;
  line("#pragma clang loop unroll(disable)");
  open("for (iptr " + begin + " = " + low + "; " + begin + " < " + high + "; " + begin +
       " += " + size + ")");
  line("const iptr " + end + " = " + begin + " + " + size + " < " + high + " ? " + begin +
       " + " + size + " : " + high + ";");
  line("const iptr f" + a + " = " + begin + " < " + last + " ? " + begin + " : " + last +
       ";");
  emit_outer(depth + 1);
  close();
}

// Where in the block of sums those of a position lie.
std::string SumEmitter::tile_sums_at(const Point& p) const {
  std::string out = "sums";
  int64_t apart = k_.loops.lanes;
  for (size_t i = tiles_->how.block.size(); i-- > 0;) {
    const TileAxis& t = tiles_->how.block[i];
    const std::string a = std::to_string(t.axis),
                      offset = std::to_string(offset_of(t.axis, p));
    const bool loop = k_.indices.extent(t.axis) != 1;
    if (loop)
      out += " + (x" + a + " - f" + a + " + " + offset + ") * " + std::to_string(apart);
    apart *= block_positions(tiles_->how, t);
  }
  return out;
}

// Of all tiles along an axis the same text: the factor's place, and that of each tile.
std::vector<int64_t> KernelEmitter::tile_offsets(const Expr& load, bool panels,
                                                 bool of_sums) const {
  std::vector<int64_t> out = {0};
  const std::vector<TileAxis>& block = tiles_->how.block;
  for (size_t i = 0; i < block.size(); ++i) {
    if (is_panel_axis(k_, tiles_->factors, block[i].axis) != panels) continue;
    const int rows = block[i].axis == tiles_->how.axis ? tiles_->how.rows : 1;
    int64_t apart = k_.indices.coefficient(load.index, block[i].axis) * rows;
    if (of_sums) {
      apart = int64_t(k_.loops.lanes) * rows;
      for (size_t j = i + 1; j < block.size(); ++j)
        apart *= block_positions(tiles_->how, block[j]);
    }
    std::vector<int64_t> next;
    for (const int64_t from : out)
      for (int n = 0; n < block[i].count; ++n) next.push_back(from + n * apart);
    out = std::move(next);
  }
  return out;
}

// Blocks of positions go by the same weights one after the other, and each of them
// fetches a part of those that come next, as sums in vectors do (choose_prefetch.cpp).
void KernelEmitter::open_tiles_ahead() {
  BlockOfTiles& t = *tiles_;
  t.fetched = 0;
  const auto in_block = [&](AxisId a) {
    return std::max<int64_t>(1, positions_in_block(a));
  };
  for (const WeightPrefetch& w : how_.stages[0].weights) {
    const int64_t ahead = in_block(w.panels) * w.panel_elements;
    if (ahead > w.most_bytes) continue;
    std::string number = "0";
    int64_t sweeps = 1;
    if (w.sweep != w.panels) {
      const std::string a = std::to_string(w.sweep);
      const bool chunked = std::ranges::any_of(
          k_.loops.chunks, [&](const ChunkAxis& c) { return c.axis == w.sweep; });
      const int64_t positions = in_block(w.sweep);
      number = std::string(positions_in_block(w.sweep) > 0 ? "(b" : "(x") + a +
               (chunked ? " - low" + a : "") + ") / " + std::to_string(positions);
      sweeps =
          (std::ranges::max(range_lengths(k_, w.sweep, false, false)) + positions - 1) /
          positions;
    }
    t.fetched = (t.how.groups + sweeps - 1) / sweeps;
    const int64_t needed = (t.how.groups + t.fetched - 1) / t.fetched;
    line("const iptr sweep = " + number + ";");
    line("const iptr ahead = sweep < " + std::to_string(needed) + " ? " +
         std::to_string(ahead) + " + sweep * " +
         std::to_string(t.fetched * t.factors.w_row) + " : 0;");
    return;
  }
}

// One step: each tile of the factors is read where the first product needs it.
void KernelEmitter::emit_tile_step() {
  const BlockOfTiles& t = *tiles_;
  const Point none(counts_.size(), 0);
  const int x_first = t.counts.sums(), w_first = x_first + t.counts.positions;
  const std::vector<int64_t> x_at = tile_offsets(*t.factors.x, false, false),
                             w_at = tile_offsets(*t.factors.w, true, false);
  const auto load = [&](int tile, const Expr& from, int64_t offset, int64_t stride) {
    line("read_tile<" + std::to_string(tile) + ">(a" + std::to_string(from.argument) +
         " + " + index_text(from.index, none, false) +
         (offset != 0 ? " + " + std::to_string(offset) : "") + ", " +
         std::to_string(stride) + ");");
  };
  for (int panel = 0; panel < t.counts.panels; ++panel) {
    const int w = w_first + panel % t.counts.w_registers();
    load(w, *t.factors.w, w_at[size_t(panel)], t.factors.w_row);
    if (t.fetched > 0)
      line("fetch_rows<" + std::to_string(t.fetched) + ">(a" +
           std::to_string(t.factors.w->argument) + ", " +
           index_text(t.factors.w->index, none, false) + " + " +
           std::to_string(w_at[size_t(panel)]) + " + ahead, " +
           std::to_string(t.factors.w_row) + ");");
    for (int i = 0; i < t.counts.positions; ++i) {
      if (panel == 0)
        load(x_first + i, *t.factors.x, x_at[size_t(i)],
             k_.indices.coefficient(t.factors.x->index, t.how.axis));
      line("add_tiles<" + std::to_string(i * t.counts.panels + panel) + ", " +
           std::to_string(x_first + i) + ", " + std::to_string(w) + ">();");
    }
  }
}

// The products of a block, and its sums in memory.
void KernelEmitter::emit_tile_products() {
  const BlockOfTiles& t = *tiles_;
  int64_t elements = k_.loops.lanes;
  for (const TileAxis& along : t.how.block) elements *= block_positions(t.how, along);
  line("alignas(64) i32 sums[" + std::to_string(elements) + "];");
  open("");
  open_tiles_ahead();
  std::string sums = "sums";
  int loops = 0;
  for (AxisId a : t.blocked) {
    const std::string x = "x" + std::to_string(a), f = "f" + std::to_string(a);
    if (t.counts.rounds == 1 || !is_panel_axis(k_, t.factors, a)) {
      line("const iptr " + x + " = " + f + ";");
      continue;
    }
    line("#pragma clang loop unroll(disable)");
    open("for (iptr " + x + " = " + f + "; " + x + " < " + f + " + " +
         std::to_string(positions_in_block(a)) + "; " + x +
         " += " + std::to_string(t.how.at_once) + ")");
    sums += " + (" + x + " - " + f + ") * " +
            std::to_string(tile_offsets(*t.factors.w, true, true)[1]);
    ++loops;
  }
  const int rounds = loops;
  for (int i = 0; i < t.counts.sums(); ++i)
    line("clear_tile<" + std::to_string(i) + ">();");
  const std::vector<int64_t> steps = *run_steps(k_, t.factors, t.how.groups);
  for (AxisId a : k_.inner(k_.stages[0])) {
    if (!k_.is_loop(a)) continue;
    const auto in_run = std::ranges::find(t.factors.run, a) - t.factors.run.begin();
    const int64_t step = in_run < std::ssize(steps) ? steps[size_t(in_run)] : 1;
    const std::string x = "x" + std::to_string(a);
    if (step == k_.indices.extent(a)) {
      line("const iptr " + x + " = 0;");
      continue;
    }
    line("#pragma clang loop unroll(disable)");
    open("for (iptr " + x + " = 0; " + x + " < " + std::to_string(k_.indices.extent(a)) +
         "; " + x + " += " + std::to_string(step) + ")");
    ++loops;
  }
  emit_tile_step();
  for (; loops > rounds; --loops) close();
  const std::vector<int64_t> rows = tile_offsets(*t.factors.x, false, true),
                             columns = tile_offsets(*t.factors.w, true, true);
  for (int i = 0; i < t.counts.sums(); ++i)
    line("write_tile<" + std::to_string(i) + ">(" + sums + " + " +
         std::to_string(rows[size_t(i / t.counts.panels)] +
                        columns[size_t(i % t.counts.panels)]) +
         ", " + std::to_string(int64_t(k_.loops.lanes) * byte_size(DType::I32)) + ");");
  for (; loops > 0; --loops) close();
  close();
}

std::string KernelEmitter::shape_text() const {
  const TileCounts& counts = tiles_->counts;
  return "shape_tiles<" + std::to_string(counts.sums()) + ", " +
         std::to_string(counts.positions) + ", " + std::to_string(counts.w_registers()) +
         ", " + std::to_string(tiles_->how.rows) + ", " +
         std::to_string(tiles_->how.groups) + ">();";
}

} // namespace svod::codegen
