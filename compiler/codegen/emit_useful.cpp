// Steps of a reduction at which a factor is zero: whole tiles of a padded border, and the
// channels that the last of their blocks lacks. They cost a branch or an earlier end.
// Lanes that such a block lacks are not written; where half of a vector is enough, its
// sums are half as long.
#include "compiler/codegen/kernel_emitter.h"

#include <algorithm>

namespace svod::codegen {

// How far the positions of the register tile lie before and after its first one; false
// for an index that is not affine in the loops.
bool KernelEmitter::tile_span(const Index& index, int64_t& least, int64_t& most) const {
  for (auto [id, coefficient] : index.terms) {
    const Term& t = k_.indices.term(id);
    if (t.kind != Term::Kind::Axis || (k_.has_lane_axis() && t.id == *k_.loops.lane))
      return false;
    for (size_t i = 0; i < how_.tile.size(); ++i)
      if (how_.tile[i].axis == t.id)
        (coefficient < 0 ? least : most) += coefficient * (counts_[i] - 1);
  }
  return true;
}

// Inside the loop at `depth`: whether some position of the register tile is useful, as
// far as this loop decides it; empty when one always is.
std::string KernelEmitter::useful_tile(const Stage& s, size_t depth) {
  int64_t steps = 1;
  for (size_t d = depth + 1; d < k_.inner(s).size(); ++d)
    if (k_.is_loop(k_.inner(s)[d])) steps *= k_.indices.extent(k_.inner(s)[d]);
  if (how(s).skipped_steps == 0 || steps < how(s).skipped_steps) return "";
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
// of the steps that are written out together.
std::string KernelEmitter::useful_end(const Stage& s, size_t depth) {
  const Unroll& unroll = how(s).unroll;
  const AxisId axis = k_.inner(s)[depth];
  const int64_t extent = k_.indices.extent(axis);
  int64_t steps = int64_t(points().size());
  for (AxisId a : k_.inner(s))
    if (k_.is_loop(a)) steps *= k_.indices.extent(a);
  if (steps <= unroll.nest || extent % unroll.by != 0) return "";
  for (const Bound& b : s.useful)
    for (size_t d = 0; d < depth; ++d) {
      const AxisId block = k_.inner(s)[d];
      const int64_t blocks = k_.indices.extent(block);
      int64_t step = 0, size = 0;
      if (b.index.terms.size() != 2 || b.low > 0 || b.index.constant != 0 ||
          !k_.is_loop(block) || !k_.indices.affine_in(b.index, axis, step) || step != 1 ||
          !k_.indices.affine_in(b.index, block, size) || size != extent)
        continue;
      const int64_t rest = b.high - (blocks - 1) * extent,
                    groups = (rest + unroll.by - 1) / unroll.by;
      if (groups < 1 || groups * unroll.by >= extent) continue;
      return "iptr(x" + std::to_string(block) + " < " + std::to_string(blocks - 1) +
             " ? " + std::to_string(extent / unroll.by) + " : " + std::to_string(groups) +
             ") * " + std::to_string(unroll.by);
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
// that follows are stores of its first lanes.
int KernelEmitter::lanes_summed(uint32_t number) const {
  const int shortest = how_.stages[number].shortest_sum;
  if (shortest == 0) return k_.loops.lanes;
  int64_t wanted = 1;
  for (size_t i = number + 1; i < k_.stages.size(); ++i)
    for (const Point& p : points())
      wanted = std::max(wanted, lanes_written(k_.stages[i], p));
  int lanes = k_.loops.lanes;
  while (lanes % 2 == 0 && lanes / 2 >= wanted && lanes / 2 >= shortest) lanes /= 2;
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

} // namespace svod::codegen
