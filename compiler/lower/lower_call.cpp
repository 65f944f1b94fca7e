// A call of the user's own C++ is a kernel without stages. It sees dense row-major
// tensors: stored values as they lie (assign_layouts keeps them so), known ones as plain
// weights, and for results that nobody reads a place in the scratch memory. Each thread
// has a scratch memory: what is large is a buffer instead, of which there is one.
#include "compiler/lower/lower.h"
#include "compiler/support/check.h"

#include <algorithm>

namespace svod::lower {

namespace {

// Alignment of every tensor that a kernel gets.
constexpr int64_t kAlign = 64;

// Of a result that nobody reads, in the scratch memory.
constexpr int64_t kMostScratch = 1'000'000;

bool same_call(const Node& a, const Node& b) {
  return a.op == b.op && a.inputs == b.inputs && a.payload[0] == b.payload[0] &&
         std::equal(a.payload.begin() + 2, a.payload.end(), b.payload.begin() + 2,
                    b.payload.end());
}

uint32_t add_argument(Kernel& k, const Argument& argument) {
  k.arguments.push_back(argument);
  return static_cast<uint32_t>(k.arguments.size() - 1);
}

PackedId plain_weight(const Graph& g, NodeId n, std::vector<PackedWeight>& packed) {
  PackedWeight dense{n, g[n].dtype, {element_count(g[n].shape)}, {1}, 0, {}, 0};
  const auto found = std::ranges::find(packed, dense);
  if (found != packed.end()) return static_cast<PackedId>(found - packed.begin());
  packed.push_back(std::move(dense));
  return static_cast<PackedId>(packed.size() - 1);
}

} // namespace

std::vector<NodeId> outputs_of_call(const Graph& g, const Grouping& grouping,
                                    NodeId call) {
  std::vector<NodeId> outputs;
  for (NodeId n = 0; n < g.size(); ++n)
    if (grouping.live[n] && g[n].op == Op::Call && same_call(g[n], g[call]))
      outputs.push_back(n);
  std::ranges::sort(outputs, {}, [&](NodeId n) { return g[n].payload[1]; });
  return outputs;
}

ScheduledKernel lower_call(NodeId call, Stored& stored) {
  const Graph& g = stored.graph;
  const Node& node = g[call];
  ScheduledKernel k;
  CallStep step;
  step.function = static_cast<uint32_t>(node.payload[0]);
  step.digest = g.blob(step.function).digest;
  for (NodeId in : node.inputs) {
    Argument argument{Argument::Kind::Buffer, 0, g[in].dtype, false, true};
    if (stored.grouping.known[in]) {
      argument.kind = Argument::Kind::Packed;
      argument.id = plain_weight(g, in, stored.packed);
    } else {
      argument.id = stored.buffer_of.at(in);
    }
    k.bytes += element_count(g[in].shape) * byte_size(g[in].dtype);
    step.tensors.push_back(add_argument(k, argument));
  }
  const std::vector<NodeId> outputs = outputs_of_call(g, stored.grouping, call);
  auto output = outputs.begin();
  for (int64_t i = 0; i + 2 < static_cast<int64_t>(node.payload.size()); ++i) {
    const int64_t bytes = node.payload[static_cast<size_t>(i) + 2];
    k.bytes += bytes;
    if (output != outputs.end() && g[*output].payload[1] == i) {
      const BufferId id = stored.buffer_of.at(*output);
      step.tensors.push_back(
          add_argument(k, {Argument::Kind::Buffer, id, g[*output].dtype, true, false}));
      k.nodes.push_back(*output++);
    } else if (bytes > kMostScratch) {
      const auto id = static_cast<BufferId>(stored.buffers.size());
      stored.buffers.push_back(
          {call, DType::U8, {bytes}, row_major(1), -1, {}, StoreReason::Call});
      step.tensors.push_back(
          add_argument(k, {Argument::Kind::Buffer, id, DType::U8, true, false}));
    } else {
      step.tensors.push_back(-1 - k.scratch_bytes);
      k.scratch_bytes += (bytes + kAlign - 1) / kAlign * kAlign;
    }
  }
  SVOD_CHECK(output == outputs.end()) << "two nodes are one output of a call";
  k.other = std::move(step);
  return k;
}

} // namespace svod::lower
