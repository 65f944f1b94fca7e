// Sums of products of bytes, four at a time. The instruction multiplies four neighbouring
// bytes of x, the same for all lanes, with four bytes per lane, unsigned ones with signed
// ones; so the axis that is summed must step over neighbours in x. Weights are packed to
// fit, and those of few bits are taken apart in vectors of bytes.
#include "compiler/kernel/byte_groups.h"
#include "compiler/kernel/byte_products.h"
#include "compiler/optimize/choose.h"

#include <algorithm>

namespace svod::optimize {

// The factors of a first stage's bytes, where the level multiplies such.
static ByteOperands taken_operands(const ScheduledKernel& k, const Level& level) {
  const ByteOperands out = byte_operands(k, k.stages[0]);
  return level.takes(out.both_signed) ? out : ByteOperands{};
}

// Those that are not taken apart from fewer bits.
static ByteOperands whole_operands(const ScheduledKernel& k, const Level& level) {
  const ByteOperands out = taken_operands(k, level);
  return out.decoded ? ByteOperands{} : out;
}

// A w for each lane and one x for all, or vectors of x whose lanes are neighbours.
static ByteOperands dot_operands(const ScheduledKernel& k, const Level& level) {
  const ByteOperands out = taken_operands(k, level);
  if (out.x == nullptr || !k.has_lane_axis()) return {};
  int64_t x = 0, w = 0;
  // Without vectors there is nothing to interleave.
  bool near = k.indices.affine_in(out.x->index, *k.loops.lane, x) &&
              (x == 0 || (x == 1 && level.has_vectors()));
  bool vector = k.indices.affine_in(out.w->index, *k.loops.lane, w) && w != 0;
  for (const Bound& b : out.x->bounds)
    near = near && (x == 0 || !k.indices.depends_on(b.index, *k.loops.lane));
  return near && vector ? out : ByteOperands{};
}

// How far the four bytes of x lie apart: next to each other, or, where lanes are
// neighbours, in vectors that follow each other and are interleaved when loaded.
static int64_t dot_stride(const ScheduledKernel& k, const Expr& x) {
  return k.indices.depends_on(x.index, *k.loops.lane) ? k.loops.lanes : 1;
}

std::optional<std::pair<Dim, size_t>> choose_dot(const Lowered& lowered,
                                                 const Level& level) {
  const ScheduledKernel& k = lowered.kernel;
  ByteOperands operands = dot_operands(k, level);
  if (operands.x == nullptr) return std::nullopt;
  const std::vector<AxisId>& inner = k.loops.inner[0];
  for (const auto& [dim, axes] : lowered.axes)
    for (size_t place = 0; place < axes.size(); ++place) {
      AxisId axis = axes[place];
      if (std::find(inner.begin(), inner.end(), axis) == inner.end()) continue;
      int64_t stride = 0, extent = k.indices.extent(axis);
      bool neighbours = k.indices.affine_in(operands.x->index, axis, stride) &&
                        stride == dot_stride(k, *operands.x);
      // Only the outermost axis of a dimension may run over its end.
      bool whole = extent % kDot == 0 || (place == 0 && extent > 2);
      if (neighbours && whole && !k.is_lane(axis)) return {{dim, place}};
    }
  return std::nullopt;
}

std::optional<LaneAxis> choose_across(const Lowered& lowered, const Level& level) {
  const ScheduledKernel& k = lowered.kernel;
  const ByteOperands operands = whole_operands(k, level);
  if (level.bytes_across() == 0 || operands.x == nullptr) return std::nullopt;
  const std::vector<AxisId>& inner = k.loops.inner[0];
  std::optional<LaneAxis> best;
  for (const auto& [dim, axes] : lowered.axes)
    for (size_t place = 0; place < axes.size(); ++place) {
      const AxisId axis = axes[place];
      int64_t stride = 0, weights = 0;
      const bool neighbours =
          contains(inner, axis) && k.indices.affine_in(operands.x->index, axis, stride) &&
          stride == 1 && k.indices.affine_in(operands.w->index, axis, weights);
      const bool guarded = std::ranges::any_of(operands.x->bounds, [&](const Bound& b) {
        return k.indices.depends_on(b.index, axis);
      });
      if (!neighbours || guarded) continue;
      // Half a register is widened as it is loaded.
      for (int lanes : {level.bytes_across(), level.bytes_across() / 2})
        if (k.indices.extent(axis) % lanes == 0) {
          if (!best || lanes > best->lanes) best = LaneAxis{dim, place, lanes};
          break;
        }
    }
  return best;
}

bool sums_across(const ScheduledKernel& k, const Level& level) {
  const ByteOperands operands = whole_operands(k, level);
  int64_t stride = 0;
  return level.bytes_across() != 0 && k.has_lane_axis() &&
         2 * k.loops.lanes >= level.bytes_across() && operands.x != nullptr &&
         contains(k.inner(k.stages[0]), *k.loops.lane) &&
         k.indices.affine_in(operands.x->index, *k.loops.lane, stride) && stride == 1 &&
         k.indices.affine_in(operands.w->index, *k.loops.lane, stride) && stride == 1;
}

bool sums_groups(const ScheduledKernel& k, const Level& level) {
  return level.takes_elements() && level.lanes == k.loops.lanes &&
         taken_operands(k, level).x != nullptr && reads_groups(k);
}

bool sums_in_pairs(const ScheduledKernel& k, const Level& level) {
  const ByteOperands operands = whole_operands(k, level);
  int64_t x = 0, w = 0;
  return level.dots == ByteProducts::Paired && k.has_lane_axis() &&
         k.loops.lanes % 2 == 0 && operands.x != nullptr && k.stages[0].domain.empty() &&
         !k.stages[0].nested &&
         k.exprs[below_casts(k, k.exprs[k.stages[0].value].inputs[0])].kind ==
             Expr::Kind::Load &&
         k.indices.affine_in(operands.x->index, *k.loops.lane, x) && x == 0 &&
         k.indices.affine_in(operands.w->index, *k.loops.lane, w) && w != 0;
}

bool sums_widened(const ScheduledKernel& k, const Level& level) {
  const ByteOperands operands = whole_operands(k, level);
  return level.dots == ByteProducts::Widened && k.has_lane_axis() &&
         operands.x != nullptr && k.stages[0].domain.empty() && !k.stages[0].nested &&
         (k.indices.depends_on(operands.x->index, *k.loops.lane) ||
          k.indices.depends_on(operands.w->index, *k.loops.lane));
}

// Weights begin at multiples of eight bytes, so what is a multiple of four from there is
// a word.
bool reads_words(const ScheduledKernel& k, const Level& level) {
  constexpr int kWord = 4;
  const ByteOperands operands = whole_operands(k, level);
  int64_t x = 0, w = 0;
  if (level.dots != ByteProducts::SingleWords || !k.has_lane_axis() ||
      k.loops.lanes % kWord != 0 || operands.x == nullptr ||
      !k.stages[0].domain.empty() || k.stages[0].nested ||
      k.arguments[operands.w->argument].kind != Argument::Kind::Packed)
    return false;
  const Index& index = operands.w->index;
  const bool shared = k.indices.affine_in(operands.x->index, *k.loops.lane, x) &&
                      x == 0 &&
                      std::ranges::none_of(operands.x->bounds, [&](const Bound& b) {
                        return k.indices.depends_on(b.index, *k.loops.lane);
                      });
  // The lanes' term is the one that is no multiple.
  return shared && operands.w->bounds.empty() &&
         k.indices.affine_in(index, *k.loops.lane, w) && w == 1 &&
         index.constant % kWord == 0 &&
         std::ranges::count_if(index.terms, [&](const auto& term) {
           return term.second % kWord != 0;
         }) == 1;
}

// What bytes of weights are taken apart with.
static bool same_for_dots(const ScheduledKernel& k, ExprId id) {
  std::vector<ExprId> open{id};
  while (!open.empty()) {
    const Expr& e = k.exprs[open.back()];
    open.pop_back();
    if (e.kind == Expr::Kind::Load) continue;
    if (k.indices.depends_on(e.index, *k.loops.dot) ||
        k.indices.depends_on(e.index, *k.loops.lane))
      return false;
    open.insert(open.end(), e.inputs.begin(), e.inputs.end());
  }
  return true;
}

bool dot_works(const ScheduledKernel& k, const Level& level) {
  ByteOperands operands = dot_operands(k, level);
  if (operands.x == nullptr || k.indices.extent(*k.loops.dot) != kDot) return false;
  int64_t x = 0, w = 0;
  bool affine = k.indices.affine_in(operands.x->index, *k.loops.dot, x) &&
                x == dot_stride(k, *operands.x) &&
                k.indices.affine_in(operands.w->index, *k.loops.dot, w) && w == 1;
  int64_t lanes = 0;
  const bool lies_packed =
      k.arguments[operands.w->argument].kind == Argument::Kind::Packed ||
      (k.indices.affine_in(operands.w->index, *k.loops.lane, lanes) && lanes == kDot);
  auto untouched = [&](const std::vector<Bound>& bounds) {
    return std::none_of(bounds.begin(), bounds.end(), [&](const Bound& b) {
      return k.indices.depends_on(b.index, *k.loops.dot);
    });
  };
  return affine && lies_packed && operands.x->bits == 0 && operands.w->bounds.empty() &&
         untouched(operands.x->bounds) && untouched(k.stages[0].domain) &&
         (!operands.decoded || same_for_dots(k, *operands.decoded));
}

} // namespace svod::optimize
