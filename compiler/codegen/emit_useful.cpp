// Steps of a reduction at which a factor is zero: whole tiles of a padded border, and the
// channels that the last of their blocks lacks. They cost a branch or an earlier end.
// Lanes that such a block lacks are not written; where half of a vector is enough, its
// sums are half as long.
#include "compiler/codegen/kernel_emitter.h"

#include <algorithm>

namespace svod {

// With this much work below a branch costs nothing.
static constexpr int64_t kSkipSteps = 12;

// How far the positions of the register tile lie before and after its first one; false
// for an index that is not affine in the loops.
bool KernelEmitter::tile_span(const Index& index, int64_t& least, int64_t& most) const {
  for (auto [id, coefficient] : index.terms) {
    const Term& t = k_.indices.term(id);
    if (t.kind != Term::Kind::Axis || (k_.has_lane_axis() && t.id == *k_.loops.lane))
      return false;
    for (size_t i = 0; i < tile_.counts.size(); ++i)
      if (tile_.counts[i].first == t.id)
        (coefficient < 0 ? least : most) += coefficient * (counts_[i] - 1);
  }
  return true;
}

// Inside the loop at `depth`: whether some position of the register tile is useful, as
// far as this loop decides it; empty when one always is.
std::string KernelEmitter::useful_tile(const Stage& s, size_t depth) {
  int64_t steps = 1;
  for (size_t d = depth + 1; d < k_.inner(s).size(); ++d)
    if (is_loop(k_.inner(s)[d])) steps *= k_.indices.extent(k_.inner(s)[d]);
  if (steps < kSkipSteps) return "";
  std::string text;
  for (const Bound& b : s.useful) {
    bool decided = k_.indices.depends_on(b.index, k_.inner(s)[depth]);
    for (size_t d = depth + 1; d < k_.inner(s).size(); ++d)
      decided &= k_.indices.extent(k_.inner(s)[d]) == 1 ||
                 !k_.indices.depends_on(b.index, k_.inner(s)[d]);
    int64_t least = 0, most = 0;
    if (!decided || !tile_span(b.index, least, most)) continue;
    Range first = k_.indices.range(b.index, narrowed_);
    std::string index = index_text(b.index, Point(counts_.size(), 0), false);
    auto require = [&](const std::string& what) {
      text += (text.empty() ? "" : " && ") + what;
    };
    if (first.low + most < b.low) require(index + " >= " + std::to_string(b.low - most));
    if (first.high + least >= b.high)
      require(index + " < " + std::to_string(b.high - least));
  }
  return text;
}

// Of channels in blocks the last ones of the last block may be none: where the loop over
// a block ends there (24 channels of 32 are a quarter less), else empty. In whole groups
// of the four steps that are written out together.
std::string KernelEmitter::useful_end(const Stage& s, size_t depth) {
  constexpr int64_t kTogether = 4;
  const AxisId axis = k_.inner(s)[depth];
  const int64_t extent = k_.indices.extent(axis);
  int64_t steps = int64_t(points().size());
  for (AxisId a : k_.inner(s))
    if (is_loop(a)) steps *= k_.indices.extent(a);
  if (steps <= kWrittenOut || extent % kTogether != 0) return "";
  for (const Bound& b : s.useful)
    for (size_t d = 0; d < depth; ++d) {
      const AxisId block = k_.inner(s)[d];
      const int64_t blocks = k_.indices.extent(block);
      int64_t step = 0, size = 0;
      if (b.index.terms.size() != 2 || b.low > 0 || b.index.constant != 0 ||
          !is_loop(block) || !k_.indices.affine_in(b.index, axis, step) || step != 1 ||
          !k_.indices.affine_in(b.index, block, size) || size != extent)
        continue;
      const int64_t rest = b.high - (blocks - 1) * extent,
                    groups = (rest + kTogether - 1) / kTogether;
      if (groups < 1 || groups * kTogether >= extent) continue;
      return "iptr(x" + std::to_string(block) + " < " + std::to_string(blocks - 1) +
             " ? " + std::to_string(extent / kTogether) + " : " + std::to_string(groups) +
             ") * " + std::to_string(kTogether);
    }
  return "";
}

// The first lanes of which a store writes results, at this position of the tile.
int64_t KernelEmitter::lanes_written(const Stage& s, const Point& p) const {
  int64_t written = k_.loops.lanes;
  std::vector<Range> ranges = ranges_at(p);
  ranges[*k_.loops.lane] = {0, 0};
  for (const Bound& b : s.domain) {
    int64_t step = 0;
    if (!k_.indices.affine_in(b.index, *k_.loops.lane, step) || step != 1 ||
        k_.indices.has_dynamic(b.index))
      continue;
    written = std::min(written, b.high - k_.indices.range(b.index, ranges).low);
  }
  return written;
}

// How long the accumulators of a sum are: as a vector, or shorter by halves where all
// that follows are stores of its first lanes. A register of 128 bits stays whole.
int KernelEmitter::lanes_summed(uint32_t number) const {
  const Stage& s = k_.stages[number];
  const auto bits = static_cast<int>(8 * byte_size(s.dtype));
  if (s.op != Op::ReduceSum || s.keeps || s.nested || bits != 32 || !on_lanes(s.value) ||
      std::ranges::count(k_.inner(s), *k_.loops.lane) != 0)
    return k_.loops.lanes;
  int64_t wanted = 1;
  for (size_t i = number + 1; i < k_.stages.size(); ++i) {
    if (k_.stages[i].kind != StageKind::Store) return k_.loops.lanes;
    for (const Point& p : points())
      wanted = std::max(wanted, lanes_written(k_.stages[i], p));
  }
  int lanes = k_.loops.lanes;
  while (lanes % 2 == 0 && lanes / 2 >= wanted && lanes / 2 * bits >= 128) lanes /= 2;
  return lanes;
}

// An accumulator's type, and a vector cut to its length.
std::string KernelEmitter::sum_type(DType dtype, bool vector) const {
  if (!vector || !short_sums_) return type(dtype, vector);
  return "Vector<" + compute_type(dtype) + ", " + std::to_string(*short_sums_) + ">";
}

std::string KernelEmitter::summand(const std::string& value) const {
  if (!short_sums_) return value;
  return "first_part<" + std::to_string(*short_sums_) + ">(" + value + ")";
}

} // namespace svod
