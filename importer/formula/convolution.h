// Convolutions in the one form that the optimiser knows a contraction by: the sum over
// the trailing axes of a product whose operands both have the shape
//     [N, OC, o1..ok, C, k1..kk]             one group
//     [N, G, OC/G, o1..ok, C/G, k1..kk]      G > 1 groups; depthwise is C/G = 1
#pragma once

#include "importer/formula/movement.h"
#include "importer/formula/spatial.h"

namespace svod::importer {

// x [N, C, s1..sk], w [OC, C/groups, k1..kk] of one dtype -> [N, OC, o1..ok]. Padding is
// zero. The caller has checked that the shapes fit.
Expr convolve(Expr x, Expr w, const Windows& windows, int64_t groups);

// Checks x and w of a convolution and reads its windows; invalid() where they do not fit.
// Transposed, a negative pad makes the result longer (kLongerResult): exporters write it
// where the stride is larger than the kernel.
inline constexpr int64_t kLongerResult = -(int64_t{1} << 31);
Windows convolution_windows(NodeImport& node, const Shape& x, const Shape& w,
                            int64_t least_pad = 0);

// The attribute group, which divides the channels.
int64_t read_groups(NodeImport& node, int64_t channels, int64_t outputs_or_inputs);

// A convolution by the node's attributes; invalid() where the operands do not fit them.
Expr checked_convolution(NodeImport& node, Expr x, Expr w);

// Where a transposed convolution's result begins in the sum of all scaled kernels (which
// may be before it), and the result's extents.
struct Placement {
  Shape start, extent;
};
// x [N, C, s1..sk], w [C, OC/groups, k1..kk] -> [N, OC, extent]. Only stride and dilation
// of `windows` count.
Expr convolve_transposed(Expr x, Expr w, const Windows& windows, int64_t groups,
                         const Placement& placement);

} // namespace svod::importer
