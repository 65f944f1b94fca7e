// Winograd's minimal filtering F(m x m, 3 x 3) as graph nodes.
//
// Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2015); the
// matrices are those of Toom and Cook for the points 0, 1, -1, 1/2, -2 and infinity.
#pragma once

#include "compiler/fuse/algorithms.h"

#include <array>

namespace svod {

inline constexpr int64_t kWinogradOutput = 4;                     // m
inline constexpr int64_t kWinogradTile = kWinogradOutput + 3 - 1; // of input, per axis

struct WinogradMatrices {
  std::array<std::array<double, 6>, 6> input;  // transforms a tile of input
  std::array<std::array<double, 3>, 6> weight; // transforms the 3 weights
  std::array<std::array<double, 6>, 4> output; // transforms the products back
};
const WinogradMatrices& winograd_matrices();

// A 3 x 3 convolution of stride 1 with known weights, as the importer writes it.
struct Convolution {
  NodeId input = kNoNode;  // [N, C, H + 2, W + 2], pads applied
  NodeId weight = kNoNode; // [1, OC, 1, 1, C, 3, 3]
  int64_t batch = 0, inputs = 0, outputs = 0, height = 0, width = 0; // of the result
};
std::optional<Convolution> match_convolution(const Graph& g, NodeId reduce,
                                             const std::vector<bool>& known);

// Adds the composition to out.graph; the result has the shape [N, OC, H, W, 1, 1, 1].
// `input` and `weight` are nodes of out.graph.
NodeId winograd(Algorithms& out, const Convolution& conv, NodeId input, NodeId weight,
                int64_t lanes);

// Largest error on sampled inputs in float, relative to the outputs' root mean square.
double winograd_error(const Graph& g, const Convolution& conv);

} // namespace svod
