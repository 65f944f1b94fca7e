#include "compiler/kernel/layout.h"

#include "compiler/support/check.h"

#include <numeric>

namespace svod {

bool Layout::has_border() const {
  for (size_t i = 0; i < low.size(); ++i)
    if (low[i] != 0 || high[i] != 0) return true;
  return false;
}

Layout row_major(size_t rank) {
  Layout layout;
  layout.order.resize(rank);
  std::iota(layout.order.begin(), layout.order.end(), 0);
  layout.low.assign(rank, 0);
  layout.high.assign(rank, 0);
  return layout;
}

Layout blocked(size_t rank, int64_t axis, int64_t block) {
  Layout layout = row_major(rank);
  layout.block_axis = axis;
  layout.block = block;
  return layout;
}

// Positions along an axis outside the innermost block dimension.
static int64_t outer_extent(const Layout& layout, const Shape& shape, int64_t axis) {
  if (axis == layout.block_axis) return (shape[axis] + layout.block - 1) / layout.block;
  const int64_t room = layout.room.empty() ? 0 : layout.room[axis];
  return shape[axis] + layout.low[axis] + layout.high[axis] + room;
}

Dims dims_of(const Layout& layout, const Shape& shape) {
  Dims dims;
  for (int64_t axis : layout.order)
    dims.extents.push_back(outer_extent(layout, shape, axis));
  dims.strides.resize(dims.extents.size());
  int64_t stride = layout.block;
  for (size_t i = dims.extents.size(); i-- > 0; stride *= dims.extents[i])
    dims.strides[i] = stride;
  return dims;
}

int64_t physical_count(const Layout& layout, const Shape& shape) {
  int64_t count = layout.block;
  for (size_t i = 0; i < shape.size(); ++i) count *= outer_extent(layout, shape, i);
  return count;
}

Index layout_offset(IndexPool& pool, const Layout& layout, const Shape& shape,
                    const std::vector<Index>& at) {
  Index offset;
  const Dims dims = dims_of(layout, shape);
  if (layout.block_axis >= 0) offset = pool.mod(at[layout.block_axis], layout.block);
  for (size_t i = layout.order.size(); i-- > 0;) {
    int64_t axis = layout.order[i];
    Index position = axis == layout.block_axis
                         ? pool.div(at[axis], layout.block)
                         : pool.add(at[axis], IndexPool::constant(layout.low[axis]));
    offset = IndexPool::add(offset, IndexPool::scale(position, dims.strides[i]));
  }
  return pool.recombine(std::move(offset));
}

Range physical_range(const Layout& layout, const Shape& shape, size_t axis) {
  if (static_cast<int64_t>(axis) == layout.block_axis)
    return {0, outer_extent(layout, shape, axis) * layout.block - 1};
  return {-layout.low[axis], shape[axis] + layout.high[axis] - 1};
}

std::string print(const Layout& layout) {
  std::string out = "[";
  for (size_t i = 0; i < layout.order.size(); ++i) {
    int64_t axis = layout.order[i];
    if (i != 0) out += ' ';
    out += std::to_string(axis);
    if (axis == layout.block_axis) out += "/" + std::to_string(layout.block);
    if (layout.low[axis] != 0 || layout.high[axis] != 0)
      out += "(" + std::to_string(layout.low[axis]) + "," +
             std::to_string(layout.high[axis]) + ")";
    if (!layout.room.empty() && layout.room[axis] != 0)
      out += "+" + std::to_string(layout.room[axis]);
  }
  if (layout.fill != 0) out += " fill " + std::to_string(layout.fill);
  return out + "]";
}

} // namespace svod
