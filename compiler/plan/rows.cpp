// An index that walks down a picture is  row * stride + rest.  The loop whose positions
// are rows is found by trying all of them: under the right one `rest` spans few rows.
#include "compiler/plan/rows.h"

#include "compiler/support/divide.h"

#include <algorithm>
#include <numeric>

namespace svod::plan {

namespace {

class Finder {
public:
  Finder(const ScheduledKernel& k, std::span<const int64_t> row_elements)
      : k_(k), row_elements_(row_elements) {}
  std::optional<RowChunks> run();

private:
  bool is_plain() const;
  template <class F> bool every_access(const F& visit) const;
  std::optional<RowChunks> along(AxisId axis) const;
  bool add(AxisId axis, uint32_t argument, const Index& index, bool writes,
           RowChunks& out) const;

  const ScheduledKernel& k_;
  std::span<const int64_t> row_elements_;
};

// Blocks of tiles are whole ones, which also read rows that a turn does not have.
static bool multiplies_tiles(const LevelSchedule& level) {
  return std::ranges::any_of(level.stages,
                             [](const StageSchedule& s) { return s.tiles.has_value(); });
}

bool Finder::is_plain() const {
  return std::ranges::none_of(k_.levels, multiplies_tiles) && !k_.call() &&
         !k_.sequence() && !k_.loops.in_parts && k_.scratch_bytes == 0 &&
         k_.ends.empty() &&
         std::ranges::all_of(k_.stages,
                             [](const Stage& s) {
                               return !s.keeps && (s.kind == StageKind::Store ||
                                                   s.kind == StageKind::Reduce);
                             }) &&
         std::ranges::none_of(k_.exprs, [](const Expr& e) {
           return e.kind == Expr::Kind::Checked || e.kind == Expr::Kind::Descend;
         });
}

// Calls visit(argument, index, writes) for what is of concern, while it returns true.
template <class F> bool Finder::every_access(const F& visit) const {
  for (const Expr& e : k_.exprs)
    if (e.kind == Expr::Kind::Load && row_elements_[e.argument] != 0 &&
        !visit(e.argument, e.index, false))
      return false;
  for (const Stage& s : k_.stages)
    if (s.kind == StageKind::Store && row_elements_[s.argument] != 0 &&
        !visit(s.argument, s.index, true))
      return false;
  return true;
}

bool Finder::add(AxisId axis, uint32_t argument, const Index& index, bool writes,
                 RowChunks& out) const {
  const int64_t row = row_elements_[argument], block = out.chunk.block;
  const int64_t by = k_.indices.coefficient(index, axis);
  Index rest = index;
  std::erase_if(rest.terms, [&](const auto& term) {
    const Term& t = k_.indices.term(term.first);
    return t.kind == Term::Kind::Axis && t.id == axis;
  });
  const Range range = k_.indices.range(rest);
  RowAccess found{argument, writes, by * block / row, floor_div(range.low, row),
                  floor_div(range.high + by * (block - 1), row) + 1};
  if (writes && found.high - found.low != found.step) return false;
  for (RowAccess& known : out.accesses) {
    if (known.argument != argument || known.writes != writes) continue;
    if (known.step != found.step) return false;
    known.low = std::min(known.low, found.low);
    known.high = std::max(known.high, found.high);
    return !writes || known.high - known.low == known.step;
  }
  out.accesses.push_back(found);
  return true;
}

std::optional<RowChunks> Finder::along(AxisId axis) const {
  RowChunks out;
  out.chunk = {axis, 1};
  const auto fits = [&](uint32_t argument, const Index& index, bool) {
    int64_t by = 0;
    if (k_.indices.has_dynamic(index) || !k_.indices.affine_in(index, axis, by) ||
        by <= 0 || by != k_.indices.coefficient(index, axis))
      return false;
    const int64_t row = row_elements_[argument];
    out.chunk.block = std::lcm(out.chunk.block, row / std::gcd(row, by));
    return out.chunk.block < k_.indices.extent(axis);
  };
  if (!every_access(fits)) return std::nullopt;
  const bool whole_rows =
      every_access([&](uint32_t argument, const Index& index, bool writes) {
        return add(axis, argument, index, writes, out);
      });
  return whole_rows && !out.accesses.empty() ? std::optional(out) : std::nullopt;
}

std::optional<RowChunks> Finder::run() {
  if (!is_plain()) return std::nullopt;
  const auto rows = [](const RowChunks& c) {
    int64_t sum = 0;
    for (const RowAccess& a : c.accesses) sum += a.high - a.low;
    return sum;
  };
  std::optional<RowChunks> best;
  for (const AxisId axis : k_.loops.outer) {
    if (!k_.is_loop(axis)) continue;
    std::optional<RowChunks> found = along(axis);
    if (found && (!best || rows(*found) < rows(*best))) best = std::move(found);
  }
  return best;
}

} // namespace

std::optional<RowChunks> chunks_by_rows(const ScheduledKernel& kernel,
                                        std::span<const int64_t> row_elements) {
  return Finder(kernel, row_elements).run();
}

} // namespace svod::plan
