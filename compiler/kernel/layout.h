// How a stored tensor lies in memory: the order of its axes, one axis in blocks, and a
// border around spatial axes so that a padded window needs no guard.
//
// Element [i0 .. in] of a blocked layout is at
//   [.. i_block / block .. i_d + low_d ..][i_block % block], axes in `order`.
// Lanes of the last block beyond the extent hold zeros.
#pragma once

#include "compiler/ir/graph.h"
#include "compiler/kernel/index.h"

#include <string>

namespace svod {

struct Layout {
  std::vector<int64_t> order; // axes, outermost first
  int64_t block_axis = -1;
  int64_t block = 1;
  Shape low, high;   // border per axis
  uint64_t fill = 0; // bits of the border's elements
  // Positions per axis behind all others that nobody reads or writes; empty: none.
  Shape room = {};

  bool operator==(const Layout&) const = default;
  bool has_border() const;
};

Layout row_major(size_t rank);
Layout blocked(size_t rank, int64_t axis, int64_t block);

// The dimensions in memory but the block, outermost first: positions, borders included,
// and elements from one to the next.
struct Dims {
  std::vector<int64_t> extents, strides;
};
Dims dims_of(const Layout& layout, const Shape& shape);

// Elements the tensor takes, borders and padding lanes included.
int64_t physical_count(const Layout& layout, const Shape& shape);
// Offset in elements of the position `at`.
Index layout_offset(IndexPool& pool, const Layout& layout, const Shape& shape,
                    const std::vector<Index>& at);
// Range of positions along `axis` that exist in memory.
Range physical_range(const Layout& layout, const Shape& shape, size_t axis);
std::string print(const Layout& layout);

} // namespace svod
