#include "compiler/kernel/layout.h"

#include "compiler/support/check.h"
#include "compiler/support/divide.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

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

namespace {

// Where a position lies: in which block, and within it.
struct Place {
  Index block, within;
};

} // namespace

// Of 4 * i + j + 12 in blocks of 16, with four positions of j, the block is (i + 3) / 4
// and j is a step within it. The largest step that divides the block and within which
// the other terms stay; nothing where none does.
static std::optional<Place> place_in_steps(IndexPool& pool, const Index& at,
                                           int64_t block) {
  int64_t step = 1;
  Index steps, within;
  for (auto [term, coefficient] : at.terms) {
    const int64_t size = std::gcd(coefficient, block);
    if (size <= step || size == block) continue;
    Index outer{floor_div(at.constant, size), {}};
    Index inner{at.constant - outer.constant * size, {}};
    for (auto [id, times] : at.terms)
      (times % size == 0 ? outer : inner)
          .terms.emplace_back(id, times % size == 0 ? times / size : times);
    const Range r = pool.range(inner);
    if (r.low < 0 || r.high >= size) continue;
    step = size, steps = std::move(outer), within = std::move(inner);
  }
  if (step == 1) return std::nullopt;
  const Index rest = IndexPool::scale(pool.mod(steps, block / step), step);
  return Place{pool.div(steps, block / step), IndexPool::add(rest, within)};
}

static Place place_in_block(IndexPool& pool, const Index& at, int64_t block) {
  Place plain{pool.div(at, block), pool.mod(at, block)};
  // A position that is shifted by a part of a block.
  const bool shifted = std::ranges::any_of(plain.block.terms, [&](const auto& part) {
    const Term& t = pool.term(part.first);
    return t.kind == Term::Kind::Div && t.of.constant != 0 && t.of.terms.size() > 1;
  });
  if (shifted)
    if (auto place = place_in_steps(pool, at, block)) return std::move(*place);
  return plain;
}

Index layout_offset(IndexPool& pool, const Layout& layout, const Shape& shape,
                    const std::vector<Index>& at) {
  const Dims dims = dims_of(layout, shape);
  Place place;
  if (layout.block_axis >= 0)
    place = place_in_block(pool, at[layout.block_axis], layout.block);
  Index offset = std::move(place.within);
  for (size_t i = layout.order.size(); i-- > 0;) {
    int64_t axis = layout.order[i];
    Index position = axis == layout.block_axis
                         ? place.block
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
