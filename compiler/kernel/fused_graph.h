// The graph cut into kernels: what is stored, how it lies in memory, and which kernel
// writes it. Beyond this point no node moves between kernels.
#pragma once

#include "compiler/kernel/cut_search.h"
#include "compiler/kernel/layout.h"
#include "compiler/kernel/store_reason.h"
#include "compiler/kernel/text.h"
#include "compiler/support/target.h"

namespace svod {

using BufferId = uint32_t;
using PackedId = uint32_t;
inline constexpr BufferId kNoBuffer = ~0u;

// A stored tensor. Several kernels may each write a part of it (concat).
struct Buffer {
  NodeId node = kNoNode;
  DType dtype = DType::F32;
  Shape shape;
  Layout layout;
  int32_t input = -1;           // graph input number
  std::vector<int32_t> outputs; // graph output numbers
  StoreReason reason = StoreReason::Input;
  int64_t bytes() const { return physical_count(layout, shape) * byte_size(dtype); }
};

// Weights in the order a kernel reads them: element [p0 .. pn] (row-major over `extents`)
// is element  offset + sum p_i * strides_i  of the source node, or zero where a bound
// fails.
struct PackedWeight {
  struct Limit { // low <= constant + sum p_i * coefficients_i < high
    int64_t constant, low, high;
    std::vector<int64_t> coefficients;
    bool operator==(const Limit&) const = default;
  };
  NodeId source = kNoNode; // depends on no input
  DType dtype = DType::F32;
  Shape extents;
  std::vector<int64_t> strides;
  int64_t offset = 0;
  std::vector<Limit> limits;
  uint64_t fill_bits = 0;
  bool operator==(const PackedWeight&) const = default;
  int64_t bytes() const { return element_count(extents) * byte_size(dtype); }
};

struct FusedGraph;

// A loop or an if between kernels. Its bodies are fused on their own; their buffers of
// inputs and outputs are where the region's operands lie.
struct FusedRegion {
  NodeId node = kNoNode;
  size_t kernels_before = 0;      // in FusedGraph::kernels
  std::vector<Argument> inputs;   // the node's, in order
  std::vector<BufferId> results;  // by number; kNoBuffer where nobody reads it
  BufferId value = kNoBuffer;     // of the node itself, when somebody reads it
  std::vector<FusedGraph> bodies; // of an if: where true, where false
};

// Kernels that follow each other and run part by part: a part of each, in order, before
// the next part of any. Of what they pass on, only one part is ever there.
struct Chain {
  struct Passed {
    BufferId buffer = kNoBuffer;
    int64_t bytes = 0; // of a part; part p is [p * bytes, (p + 1) * bytes) of the buffer
  };
  size_t first = 0, count = 0; // in FusedGraph::kernels
  std::vector<Passed> buffers;
};

// A contraction as it was before algorithms were chosen, and the one that computes it.
struct ChosenAlgorithm {
  std::string source; // an ONNX node it comes from
  std::string contraction, algorithm;
  uint64_t more_bytes = 0; // of weights, than as it is written
  double error = 1;        // of rounding, relative to that as it is written
};
struct FusedGraph {
  Graph graph;
  std::vector<Buffer> buffers;
  std::vector<PackedWeight> packed;
  std::vector<ScheduledKernel> kernels; // in dependency order
  std::vector<FusedRegion> regions;     // likewise
  std::vector<Chain> chains;            // likewise
  std::vector<ChosenAlgorithm> chosen;  // of every contraction, in the graph's order
  CutSearch searched;                   // how its cut came about; bodies have none
  int64_t unfused_kernels = 0;          // one per op that is no view or source
};

// Weights that no kernel reads any more go; the others lie as kernels meet them.
void drop_unused_weights(FusedGraph& fused);

// Buffers that no kernel or region writes or reads any more go, unless they are inputs or
// outputs.
void drop_unused_buffers(FusedGraph& fused);

// Of the graph and of the bodies of its regions, one after the other.
std::vector<ChosenAlgorithm> chosen_algorithms(const FusedGraph& fused);

std::string print(const FusedGraph& fused);
// A line each: "node": contraction -> algorithm.
std::string print(const std::vector<ChosenAlgorithm>& chosen);

} // namespace svod
