// Reads where a convolution or pooling places its windows. With auto_pad SAME_* the
// result has ceil(extent / stride) elements; an odd total of padding puts the extra one
// at the end (UPPER) or at the beginning (LOWER).
#include "importer/formula/spatial.h"

#include "importer/formula/expression.h"

#include <algorithm>

namespace svod::importer {

namespace {

// Larger numbers occur only in hostile models; their products would overflow.
constexpr int64_t kLargest = int64_t{1} << 31;

void check_range(NodeImport& node, const Shape& values, int64_t smallest,
                 std::string_view name) {
  for (int64_t value : values)
    if (value < smallest || value > kLargest)
      node.invalid("attribute '" + std::string(name) + "' has " + std::to_string(value));
}

void pad_to_same_size(Windows& windows, const Shape& extents, bool upper) {
  for (size_t i = 0; i < extents.size(); ++i) {
    const int64_t stride = windows.stride[i];
    const int64_t count = (extents[i] + stride - 1) / stride;
    const int64_t total =
        std::max<int64_t>((count - 1) * stride + windows.reach(i) - extents[i], 0);
    windows.low[i] = upper ? total / 2 : total - total / 2;
    windows.high[i] = total - windows.low[i];
  }
}

} // namespace

Shape ints_or(NodeImport& node, std::string_view name, size_t count, int64_t otherwise) {
  if (!node.has(name)) return Shape(count, otherwise);
  Shape values = node.get_ints(name);
  if (values.empty()) return Shape(count, otherwise);
  if (values.size() != count)
    node.invalid("attribute '" + std::string(name) + "' has " +
                 std::to_string(values.size()) + " entries, expected " +
                 std::to_string(count));
  return values;
}

Windows read_windows(NodeImport& node, const Shape& extents, const Shape& kernel,
                     int64_t least_pad) {
  const size_t count = extents.size();
  require(node, count > 0, "input 0 has no spatial axis");
  Windows windows;
  windows.kernel = kernel;
  windows.stride = ints_or(node, "strides", count, 1);
  windows.dilation = ints_or(node, "dilations", count, 1);
  require(node, kernel.size() == count,
          "the kernel has another number of axes than the input");
  check_range(node, kernel, 1, "kernel_shape");
  check_range(node, windows.stride, 1, "strides");
  check_range(node, windows.dilation, 1, "dilations");
  windows.low = windows.high = Shape(count, 0);

  const std::string mode = node.has("auto_pad") ? node.get_string("auto_pad") : "";
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
    pad_to_same_size(windows, extents, mode == "SAME_UPPER");
  } else if (mode == "NOTSET" || mode.empty()) {
    const Shape pads = ints_or(node, "pads", 2 * count, 0);
    check_range(node, pads, least_pad, "pads");
    std::copy_n(pads.begin(), count, windows.low.begin());
    std::copy_n(pads.begin() + count, count, windows.high.begin());
  } else if (mode != "VALID") {
    node.invalid("auto_pad must be NOTSET, SAME_UPPER, SAME_LOWER or VALID");
  }
  return windows;
}

} // namespace svod::importer
