// Products of bytes whose common factor is read as registers of four groups: the steps of
// the innermost loops are written out here, so that each knows which register holds its
// group, and as which element. A load serves four steps of a channel's bytes, or windows
// that overlap: of 1x8 taps at six positions ten different groups are four loads.
//
// Where an instruction multiplies matrices, two neighbouring positions of the tile are
// two rows, and two steps the bytes of a row; their sums are 2 x 2 blocks meanwhile.
#include "compiler/codegen/element_text.h"
#include "compiler/codegen/stage_emitter.h"
#include "compiler/kernel/byte_products.h"

#include <algorithm>
#include <cstdlib>

namespace svod::codegen {

std::string SumEmitter::quads() const { return std::to_string(quads_stored(k_)); }

// The element of a register that holds the group of this point, and the lanes' products.
void SumEmitter::accumulate_groups(const std::string& acc, const Point& p,
                                   const std::string& w) {
  const auto& [name, element] = sums_.groups.at(p);
  line("add_dots<" + std::to_string(element) + ">(" + acc + ", " + name + ", " + w +
       ");");
}

// Points of the tile, by number, that meet the same weights two at a time; of an odd
// number the last one stays alone.
std::vector<std::pair<size_t, size_t>> SumEmitter::matrix_pairs(const Stage& s) const {
  std::vector<std::pair<size_t, size_t>> out;
  if (!how(s).matrices) return out;
  const ExprId w = dot_factors(s).second;
  std::map<Point, size_t> alone;
  const std::vector<Point> all = points();
  for (size_t i = 0; i < all.size(); ++i) {
    const auto [first, is_new] = alone.try_emplace(project(w, all[i]), i);
    if (is_new) continue;
    out.emplace_back(first->second, i);
    alone.erase(first);
  }
  return out;
}

// Makes blocks of the sums of two positions, or sums of the blocks.
void SumEmitter::exchange_halves(const Stage& s, const std::vector<std::string>& sums) {
  for (const auto& [a, b] : matrix_pairs(s))
    line("exchange_halves(" + sums[a] + ", " + sums[b] + ");");
}

// Where x begins in each step at each point of the tile.
std::vector<int64_t> StageEmitter::group_offsets(const Expr& x,
                                                 const WrittenSteps& written) const {
  std::vector<int64_t> out;
  for (const WrittenStep& step : written.steps)
    for (const Point& p : points()) {
      int64_t offset = step.offset, apart = 0;
      for (size_t i = 0; i < p.size(); ++i)
        if (k_.indices.affine_in(x.index, how_.tile[i].axis, apart))
          offset += p[i] * apart;
      out.push_back(offset);
    }
  return out;
}

// The block of one step: its position in the loops, `begin` of the one that is cut.
void StageEmitter::open_written(const WrittenStep& step, AxisId cut,
                                const std::string& begin) {
  open("");
  for (const auto& [axis, position] : step.at)
    line("const iptr x" + std::to_string(axis) + " = " +
         (axis == cut ? begin + " + " : "") + std::to_string(position) + ";");
}

// The weights that each point of the tile meets in a step, named outside of its block.
std::vector<std::string> StageEmitter::weights_at(const Stage& s, const WrittenStep& step,
                                                  AxisId cut, const std::string& begin) {
  const ExprId w = dot_factors(s).second;
  std::map<Point, std::string> names;
  std::vector<std::string> out;
  for (const Point& p : points()) {
    const auto [name, is_new] = names.try_emplace(project(w, p));
    if (is_new) line("vi32 " + (name->second = fresh("t")) + ";");
    out.push_back(name->second);
  }
  open_written(step, cut, begin);
  fetch_ahead();
  for (const auto& [p, name] : names) line(name + " = " + eval(w, p).name + ";");
  close();
  return out;
}

// Two steps of two positions each; the last step of an odd number has zeros beside it. A
// position alone takes products one by one.
void StageEmitter::emit_matrices(const Stage& s, const std::vector<Groups>& steps,
                                 const std::vector<std::vector<std::string>>& weights) {
  const std::vector<Point> all = points();
  const std::vector<std::string>& sums = sums_.ways[0];
  std::vector<bool> alone(all.size(), true);
  for (const auto& [a, b] : matrix_pairs(s)) {
    std::string elements, names;
    for (size_t i : {a, b}) {
      const auto& [first, at] = steps.front().at(all[i]);
      const auto& [second, beside] = steps.back().at(all[i]);
      elements += (elements.empty() ? "" : ", ") + std::to_string(at) + ", " +
                  std::to_string(beside);
      names += ", " + first + ", " + second;
    }
    line("add_matrices<" + elements + ">(" + sums[a] + ", " + sums[b] + names + ", " +
         weights[0][a] + ", " + (weights.size() > 1 ? weights[1][a] : "vi32(0)") + ");");
    alone[a] = alone[b] = false;
  }
  for (size_t step = 0; step < steps.size(); ++step) {
    sums_.groups = steps[step];
    for (size_t i = 0; i < all.size(); ++i)
      if (alone[i]) accumulate_groups(sums[i], all[i], weights[step][i]);
  }
}

// The steps from the loop at written.depth on; where that loop is cut, to before `to`.
void StageEmitter::emit_groups(const Stage& s, const WrittenSteps& written,
                               const std::string& to, const Body& body) {
  const Expr& x = *byte_operands(k_, s).x;
  const std::vector<Point> all = points();
  const GroupLoads found = cover_groups(group_offsets(x, written));
  const auto none = static_cast<AxisId>(k_.indices.axis_count());
  const AxisId cut = to.empty() ? none : k_.inner(s)[written.depth];
  const std::string i = "x" + std::to_string(cut), begin = fresh("b");
  if (cut != none) {
    line("#pragma clang loop unroll(disable) vectorize(disable)");
    open("for (iptr " + i + " = 0; " + i + " < " + to + "; " + i +
         " += " + std::to_string(written.by) + ")");
    line("const iptr " + begin + " = " + i + ";");
  } else {
    open("");
  }
  for (const auto& [axis, first] : written.steps[0].at)
    if (axis != cut) line("const iptr x" + std::to_string(axis) + " = 0;");
  const std::string base = "a" + std::to_string(x.argument) + " + " +
                           index_text(x.index, Point(counts_.size(), 0), false);
  std::vector<std::string> loaded(found.loads.size());
  auto groups_of = [&](size_t step) {
    Groups out;
    for (size_t p = 0; p < all.size(); ++p) {
      const GroupUse& use = found.uses[step * all.size() + p];
      const auto& [at, groups] = found.loads[use.load];
      std::string& name = loaded[use.load];
      if (name.empty())
        name = declare("Quad", "load_groups<" + std::to_string(groups) + ">(" + base +
                                   (at < 0 ? " - " : " + ") +
                                   std::to_string(std::abs(at)) + ")");
      out[all[p]] = {name, use.element};
    }
    return out;
  };
  const size_t together = how(s).matrices ? 2 : 1;
  for (size_t step = 0; step < written.steps.size(); step += together) {
    const size_t end = std::min(step + together, written.steps.size());
    std::vector<Groups> groups;
    std::vector<std::vector<std::string>> weights;
    for (size_t n = step; n < end; ++n) groups.push_back(groups_of(n));
    if (how(s).matrices) {
      for (size_t n = step; n < end; ++n)
        weights.push_back(weights_at(s, written.steps[n], cut, begin));
      emit_matrices(s, groups, weights);
    } else {
      sums_.groups = groups[0];
      open_written(written.steps[step], cut, begin);
      body();
      close();
    }
  }
  close();
}

} // namespace svod::codegen
