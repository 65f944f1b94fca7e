// Winograd's minimal filtering F(m, r) along one or both spatial axes, as graph nodes.
//
// Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2015); the
// matrices are those of Toom and Cook for infinity and points of which most are pairs.
// What belongs to a point and its negative is an even and an odd part, their sum and
// their difference: two sparse steps take half of the operations of one.
#pragma once

#include "compiler/select/forms/reading.h"
#include "compiler/select/forms/samples.h"
#include "compiler/select/forms/transform.h"

#include <array>

namespace svod::select {

// One after the other; the first is applied first.
using Steps = std::vector<Matrix>;

// output * ((weight * w) (input * x)) are the m results of r taps w over m + r - 1 inputs
// x.
struct WinogradMatrices {
  Steps input;  // [n, n], n = m + r - 1
  Steps weight; // [n, r]
  Steps output; // [m, n]
};
inline constexpr int64_t kMostWinogradInputs = 10; // n
WinogradMatrices winograd_matrices(int64_t outputs, int64_t taps);

// A convolution with known weights over one to three axes, seen as one over rows and
// columns of pictures. One axis is a picture of one row. A
// depth before rows and columns makes pictures of which each result sums up several. A
// dilation of d makes d pictures, of every d-th row or column each. The groups of one
// picture are pictures as well. Pairs are rows and columns.
struct Convolution {
  using Pair = std::array<int64_t, 2>;
  Reading input;      // [N, C, extents], pads applied; N: groups, where there are several
  Reading weight;     // [groups, OC, 1.., C, taps]
  Reading result;     // of [N, OC, extents]: as the sum
  Shape results;      // [N, OC, extents]
  int64_t groups = 1; // that pictures are: each has weights of its own
  int64_t inputs = 0, outputs = 0; // of a group
  Pair size = {}, taps = {};       // of a picture of the result, of the window
  Pair stride = {1, 1}, dilation = {1, 1};
  int64_t depth_taps = 1, depth_stride = 1;
  int64_t depth = 1;               // of the input
  int64_t batch = 0, pictures = 0; // pictures of the result, of the input
  double met = 1; // what of a dilated window meets more than pads, which a sum leaves out
  bool plain() const { return results.size() == 4 && dilation == Pair{1, 1}; }
  int64_t terms() const { return inputs * depth_taps; } // summed up for each tap
};
std::optional<Convolution> match_convolution(const Graph& g, const Contraction& c);
// With every so many groups as one, whose weights between different ones are zero. The
// reading of the weights is that of each.
Convolution with_groups_together(Convolution conv, int64_t together);

// Results of a tile, along rows and columns; 1: this axis stays as it is written. An axis
// of stride s is the sum of s of stride 1, its phases: every s-th tap meets every s-th
// input. Many taps are cut into parts of as many as a tile has results: a part then meets
// the tiles of a shifted grid, which are those of the others.
struct WinogradForm {
  Convolution::Pair outputs = {1, 1};
  Convolution::Pair parts = {1, 1}; // above 1: of outputs[axis] taps each
  bool channels = true;             // vectors run over channels, else over tiles of a row
  bool by_rows = false;   // values of a row of tiles lie together, all positions of it
  bool amplified = false; // its products are summed in short blocks
  int64_t phases(const Convolution& conv, int axis) const {
    return outputs[axis] == 1 ? 1 : conv.stride[axis];
  }
  // Taps that are transformed together.
  int64_t window(const Convolution& conv, int axis) const {
    if (outputs[axis] == 1) return 1;
    const int64_t s = conv.stride[axis];
    return parts[axis] == 1 ? (conv.taps[axis] + s - 1) / s : outputs[axis];
  }
  // Phases that have no last tap where all taps are one window.
  int64_t lacking(const Convolution& conv, int axis) const {
    const int64_t s = phases(conv, axis);
    return outputs[axis] == 1 || parts[axis] != 1
               ? 0
               : window(conv, axis) * s - conv.taps[axis];
  }
  int64_t inputs(const Convolution& conv, int axis) const { // n, 1 where as written
    return outputs[axis] + window(conv, axis) - 1;
  }
  // Windows whose products are summed up.
  int64_t windows(const Convolution& conv, int axis) const {
    return outputs[axis] == 1 ? conv.taps[axis] : parts[axis];
  }
  int64_t tiles(const Convolution& conv, int axis) const {
    return (conv.size[axis] + outputs[axis] - 1) / outputs[axis];
  }
};

// Adds the composition to out.graph; the result has the shape of the sum. `input` and
// `weight` are nodes of out.graph, arranged as the convolution's readings.
NodeId winograd(Algorithms& out, const Convolution& conv, const WinogradForm& form,
                NodeId input, NodeId weight, int64_t lanes);

// Whether the transformed input is stored in vectors of channels.
bool blocks_inputs(const Convolution& conv, const WinogradForm& form, int64_t lanes);

// Errors on sampled inputs in float.
struct WinogradError {
  double largest = 0; // relative to the outputs' root mean square
  // Root mean square, relative to that of the sum as it is written: with the products of
  // a position one after the other, and in short blocks.
  double plain = 0, blocked = 0;
};
WinogradError winograd_error(const Graph& g, const Convolution& conv,
                             const WinogradForm& form,
                             Inputs inputs = Inputs::Activations);

} // namespace svod::select
