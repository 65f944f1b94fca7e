// The border of a buffer, zeros or the zero point of bytes: slabs before and after each
// axis that has a border.
#include "compiler/fuse/lowering.h"

namespace svod {

Kernel lower_border(BufferId id, const Buffer& buffer) {
  Kernel kernel;
  const Layout& layout = buffer.layout;
  kernel.arguments.push_back({Argument::Kind::Buffer, id, buffer.dtype, true, false});
  kernel.nodes = {buffer.node};
  Expr fill{Expr::Kind::Constant, buffer.dtype};
  fill.bits = layout.fill;
  ExprId border = kernel.add(std::move(fill));
  for (size_t axis = 0; axis < buffer.shape.size(); ++axis) {
    int64_t sides[2][2] = {{-layout.low[axis], layout.low[axis]},
                           {buffer.shape[axis], layout.high[axis]}};
    for (auto [start, extent] : sides) {
      if (extent == 0) continue;
      Stage stage;
      stage.value = border;
      stage.dtype = buffer.dtype;
      At at(buffer.shape.size());
      for (int64_t i : layout.order) {
        Range there = physical_range(layout, buffer.shape, i);
        bool is_side = i == static_cast<int64_t>(axis);
        // Earlier axes' borders are already written: stay inside them.
        bool earlier = i < static_cast<int64_t>(axis);
        int64_t from = is_side ? start : earlier ? 0 : there.low;
        int64_t count = is_side   ? extent
                        : earlier ? buffer.shape[i]
                                  : there.high - from + 1;
        if (earlier && i == layout.block_axis) count = there.high + 1;
        AxisId a = kernel.indices.add_axis(i == layout.block_axis ? count / layout.block
                                                                  : count);
        stage.inner.push_back(a);
        at[i] = IndexPool::add(IndexPool::constant(from), kernel.indices.axis(a));
        if (i == layout.block_axis) at[i] = IndexPool::scale(at[i], layout.block);
      }
      if (layout.block_axis >= 0) {
        AxisId lane = kernel.indices.add_axis(layout.block);
        stage.inner.push_back(lane);
        Index& block = at[layout.block_axis];
        block = IndexPool::add(block, kernel.indices.axis(lane));
      }
      stage.index = layout_offset(kernel.indices, layout, buffer.shape, at);
      kernel.stages.push_back(std::move(stage));
    }
  }
  return kernel;
}

} // namespace svod
