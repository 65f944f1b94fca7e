// The border of a buffer, zeros or the zero point of bytes: slabs before and after each
// axis that has a border. They go along together over the outermost axes, which have
// none, and in whole vectors where the layout is blocked: each block is then written
// while it is in cache. (Slab after slab, element by element, Clang made scatters of
// them: 7 GB/s, so 40.) What makes rows whole vectors is one store in part for each.
#include "compiler/lower/lowering.h"

namespace svod::lower {

namespace {

class Border {
public:
  Border(BufferId id, const Buffer& buffer, int lanes)
      : b_(buffer), l_(buffer.layout),
        lanes_(buffer.layout.block_axis < 0 || buffer.layout.block % lanes != 0
                   ? lanes
                   : static_cast<int>(buffer.layout.block)) {
    kernel_.arguments.push_back({Argument::Kind::Buffer, id, b_.dtype, true, false});
    kernel_.nodes = {b_.node};
    Expr fill{Expr::Kind::Constant, b_.dtype};
    fill.bits = l_.fill;
    value_ = kernel_.add(std::move(fill));
  }
  ScheduledKernel run();

private:
  IndexPool& pool() { return kernel_.indices; }
  bool has_border(int64_t axis) const { return l_.low[axis] != 0 || l_.high[axis] != 0; }
  AxisId cover(int64_t axis, int64_t from, int64_t count, At& at);
  void add_slab(int64_t axis, int64_t start, int64_t extent);
  AxisId add_lanes(int64_t count);
  bool ends_rows() const;
  void add_row_ends();
  void add_stages();

  const Buffer& b_;
  const Layout& l_;
  int lanes_;
  ScheduledKernel kernel_;
  ExprId value_ = 0;
  At shared_; // position along the outer axes and within the block
  std::vector<bool> is_outer_;
  std::optional<AxisId> lane_;
};

// A loop over `count` positions of an axis, whole blocks of the blocked one.
AxisId Border::cover(int64_t axis, int64_t from, int64_t count, At& at) {
  bool block = axis == l_.block_axis;
  AxisId loop = pool().add_axis(block ? count / l_.block : count);
  Index position = IndexPool::add(IndexPool::constant(from), pool().axis(loop));
  if (block) position = IndexPool::scale(position, l_.block);
  at[axis] = IndexPool::add(position, at[axis]);
  return loop;
}

void Border::add_slab(int64_t axis, int64_t start, int64_t extent) {
  Stage stage;
  stage.value = value_;
  stage.dtype = b_.dtype;
  At at = shared_;
  for (int64_t i : l_.order) {
    if (is_outer_[i]) continue;
    Range there = physical_range(l_, b_.shape, i);
    int64_t from = there.low, count = there.high - there.low + 1;
    if (i == axis) from = start, count = extent;
    // Earlier axes' borders are already written: stay inside them.
    if (i < axis && i != l_.block_axis) from = 0, count = b_.shape[i];
    stage.inner.push_back(cover(i, from, count, at));
  }
  stage.index = layout_offset(pool(), l_, b_.shape, at);
  kernel_.stages.push_back(std::move(stage));
}

// The innermost loop, one vector where it is as long as that.
AxisId Border::add_lanes(int64_t count) {
  const AxisId axis = pool().add_axis(count);
  kernel_.outer.push_back(axis);
  if (count == lanes_) lane_ = axis;
  return axis;
}

// Whether all of it is a part of a vector behind each row.
bool Border::ends_rows() const {
  const int64_t last = l_.order.back(), count = l_.high[last];
  for (int64_t i : l_.order)
    if (has_border(i) != (i == last)) return false;
  return l_.block_axis < 0 && l_.low[last] == 0 && 1 < count && count <= lanes_;
}

void Border::add_row_ends() {
  const Index lane = pool().axis(add_lanes(lanes_));
  const int64_t last = l_.order.back();
  At at = shared_;
  at[last] = IndexPool::add(IndexPool::constant(b_.shape[last]), lane);
  Stage stage;
  stage.value = value_;
  stage.dtype = b_.dtype;
  stage.index = layout_offset(pool(), l_, b_.shape, at);
  if (l_.high[last] < lanes_) stage.domain = {{lane, 0, l_.high[last]}};
  kernel_.stages.push_back(std::move(stage));
}

ScheduledKernel Border::run() {
  add_stages();
  kernel_.loops = plain_loops(kernel_);
  if (lane_) kernel_.loops.lane = lane_, kernel_.loops.lanes = lanes_;
  return std::move(kernel_);
}

void Border::add_stages() {
  shared_.resize(b_.shape.size());
  is_outer_.resize(b_.shape.size());
  for (int64_t i : l_.order) {
    if (has_border(i)) break;
    Range there = physical_range(l_, b_.shape, i);
    is_outer_[i] = true;
    kernel_.outer.push_back(cover(i, 0, there.high + 1, shared_));
  }
  if (l_.block_axis >= 0) {
    Index& block = shared_[l_.block_axis];
    block = IndexPool::add(block, pool().axis(add_lanes(l_.block)));
  }
  if (ends_rows()) {
    add_row_ends();
    return;
  }
  for (size_t i = 0; i < b_.shape.size(); ++i) {
    auto axis = static_cast<int64_t>(i);
    if (l_.low[i] != 0) add_slab(axis, -l_.low[i], l_.low[i]);
    if (l_.high[i] != 0) add_slab(axis, b_.shape[i], l_.high[i]);
  }
}

} // namespace

ScheduledKernel lower_border(BufferId id, const Buffer& buffer, int lanes) {
  return Border(id, buffer, lanes).run();
}

} // namespace svod::lower
