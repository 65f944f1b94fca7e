// What stays from run to run (--state). Where the model passes it on by copying all of it
// and adding or changing a little, as a cache of keys grows by a row, both lie in one
// memory and the kernel that would copy is left out. A cache that drops as many rows at
// its front moves on through its memory and is moved back when it comes to the end.
#include "compiler/plan/planner.h"
#include "compiler/support/check.h"

#include <algorithm>

namespace svod::plan {

namespace {

bool has_argument(const ScheduledKernel& kernel, BufferId buffer, bool written) {
  return std::ranges::any_of(kernel.arguments, [&](const Argument& a) {
    return a.kind == Argument::Kind::Buffer && a.id == buffer &&
           (written ? a.written : a.read);
  });
}

// Whether the output is all of the input with rows behind it, or with changes in it.
bool passes_on(const Graph& g, const StateLink& link) {
  const NodeId in = g.inputs()[link.input].node, out = g.outputs()[link.output].node;
  const Node& node = g[out];
  if (node.inputs.empty() || node.inputs[0] != in) return false;
  return link.axis >= 0 ? node.op == Op::Concat && node.payload[0] == link.axis
                        : node.op == Op::Scatter;
}

// Whether all that the kernel does is to store elements of `from` where they would be in
// `to`, if both were one memory.
bool only_copies(const ScheduledKernel& k, BufferId from, BufferId to) {
  if (k.call() || k.stages.size() != 1 || k.arguments.size() != 2) return false;
  if (!has_argument(k, from, false) || !has_argument(k, to, true)) return false;
  const Stage& stage = k.stages[0];
  if (stage.kind != StageKind::Store) return false;
  const Expr& value = k.exprs[stage.value];
  return value.kind == Expr::Kind::Load && value.bounds == stage.domain &&
         k.arguments[value.argument].id == from && k.arguments[stage.argument].id == to &&
         value.index == stage.index;
}

// Kernels that run part by part share their loops.
bool in_chain(const FusedGraph& f, size_t kernel) {
  return std::ranges::any_of(f.chains, [&](const Chain& c) {
    return kernel >= c.first && kernel < c.first + c.count;
  });
}

// Nobody reads `in` once a kernel but number `copy` may have changed `out`.
bool read_before_written(const FusedGraph& f, BufferId in, BufferId out, size_t copy) {
  size_t written = f.kernels.size(), read = 0;
  for (size_t i = f.kernels.size(); i-- > 0;)
    if (i != copy && has_argument(f.kernels[i], out, true)) written = i;
  for (size_t i = 0; i < f.kernels.size(); ++i)
    if (i != copy && has_argument(f.kernels[i], in, false)) read = i + 1;
  const bool by_region = std::ranges::any_of(f.regions, [&](const FusedRegion& region) {
    return std::ranges::any_of(region.inputs,
                               [&](const Argument& a) {
                                 return a.kind == Argument::Kind::Buffer &&
                                        (a.id == in || a.id == out);
                               }) ||
           std::ranges::count(region.results, out) != 0 || region.value == out;
  });
  return read <= written && !by_region;
}

} // namespace

StateBuffers state_buffers(const FusedGraph& f, const StateLink& link) {
  StateBuffers at;
  for (BufferId id = 0; id < f.buffers.size(); ++id) {
    const Buffer& b = f.buffers[id];
    if (b.input == static_cast<int32_t>(link.input)) at.in = id;
    if (std::ranges::count(b.outputs, static_cast<int32_t>(link.output)) != 0)
      at.out = id;
  }
  return at;
}

void Planner::find_states() {
  for (const StateLink& link : f_.graph.states()) {
    const auto [in, out] = state_buffers(f_, link);
    SVOD_CHECK(out != kNoBuffer) << "a state lies nowhere";
    // Of an input that nobody reads there is no buffer.
    const Buffer& kept = f_.buffers[in != kNoBuffer ? in : out];
    State state;
    state.input = link.input;
    state.output = link.output;
    state.bytes = static_cast<uint64_t>(kept.bytes());
    const bool grows = link.axis >= 0;
    if (grows) {
      const Dims dims = dims_of(kept.layout, kept.shape);
      state.step = static_cast<uint64_t>(link.grown * dims.strides[link.axis] *
                                         byte_size(kept.dtype));
      for (int64_t axis = 0; axis < link.axis; ++axis)
        state.parts *= static_cast<uint64_t>(kept.shape[axis]);
    }
    // An output that is another one, too, is copied from one of them.
    const bool alone = in != kNoBuffer && in != out &&
                       f_.buffers[out].outputs.size() == 1 && passes_on(f_.graph, link);
    size_t copy = 0;
    while (copy < f_.kernels.size() &&
           (!alone || in_chain(f_, copy) || !only_copies(f_.kernels[copy], in, out)))
      ++copy;
    const bool in_place =
        copy < f_.kernels.size() && (grows || read_before_written(f_, in, out, copy));
    if (in_place) idle_.insert(copy);
    state.kind = in_place ? (grows ? State::Kind::Moves : State::Kind::Place)
                          : (grows ? State::Kind::Copied : State::Kind::Turns);
    if (state.kind == State::Kind::Moves)
      state.period = static_cast<uint32_t>(link.period);
    out_.states.push_back(state);
  }
}

} // namespace svod::plan
