// Layers of well known networks as graphs, as the importer writes them, with weights that
// all differ: what a whole model of them consists of, without its file.
#pragma once

#include "compiler/ir/graph.h"

namespace svod::test {

Graph bottleneck_layer();        // ResNet-50's: 1x1, 3x3, 1x1 convolutions, residual
Graph inverted_residual_layer(); // MobileNetV2's: expand, depthwise, project, residual
Graph bert_layer();              // attention and feed-forward, with their normalisations
Graph inception_layer();         // Inception v1's module of four branches
Graph swin_layer();              // shifted windows, attention with a bias, feed-forward
// Parts of a Conformer layer, and all of it.
Graph conformer_feed_forward();
Graph conformer_attention(); // with rotary positions
Graph conformer_convolution();
Graph conformer_layer();

} // namespace svod::test
