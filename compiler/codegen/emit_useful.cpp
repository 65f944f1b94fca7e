// Steps of a reduction at which a factor is zero: whole tiles of a padded border, and the
// channels that the last of their blocks lacks. They cost a branch or an earlier end.
// Lanes that such a block lacks are not written; where half of a vector is enough, its
// sums are half as long.
#include "compiler/codegen/element_text.h"
#include "compiler/codegen/stage_emitter.h"

#include <algorithm>

namespace svod::codegen {

// Inside the loop at `depth`: whether some position of the register tile is useful, as
// far as this loop decides it; empty when one always is.
std::string StageEmitter::useful_tile(const Stage& s, size_t depth) {
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
std::string StageEmitter::useful_end(const Stage& s, size_t depth) {
  const Unroll& unroll = how(s).unroll;
  const AxisId axis = k_.inner(s)[depth];
  const int64_t extent = k_.indices.extent(axis);
  int64_t steps = tile_points();
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

} // namespace svod::codegen
