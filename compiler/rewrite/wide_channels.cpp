// A picture of three channels is the worst that a product's factor can be: whichever axis
// is innermost, no neighbours are copied at once, and each element of a window is found
// by divisions and bounds of its own (a first layer of 7 by 7 took 0.24 of the 1.64 ms of
// resnet50 with 32 pictures on an H100). A copy of the picture with eight channels, five
// of them zeros, and its pads around it costs little beside the layer; from it windows
// are read 16 bytes at a time and without a bound, as those of all other layers are.
#include "compiler/rewrite/wide_channels.h"

#include "compiler/contraction/contraction.h"
#include "compiler/ir/fold.h"
#include "compiler/ir/graph_copy.h"
#include "compiler/support/divide.h"

#include <algorithm>

namespace svod::rewrite {

namespace {

constexpr size_t kChannels = 1, kFewestAxes = 3;
constexpr int64_t kUnitBytes = 16;

// An axis of a view that has more elements, zeros behind those it had.
struct WideAxis {
  size_t axis = 0;
  int64_t narrow = 0, wide = 0;
};

class Pass {
public:
  Pass(const Graph& from, bool floats) : from_(from), floats_(floats) {}
  Graph run();

private:
  bool is_picture(const Contraction& c) const;
  NodeId convolution(NodeId sum);
  NodeId widened_picture(const Operand& operand);
  NodeId widened_view(NodeId view, NodeId now);
  NodeId widened_weights(NodeId known, DType type);
  void widen_taps(NodeId window, Shape& high);

  const Graph& from_;
  const bool floats_;
  Graph g;
  WideAxis channels_;
  std::optional<WideAxis> taps_; // of the last axis
  size_t taps_axis_ = 0;         // of the picture
  int64_t wide_taps_ = 0;        // that they are to be; 0: as they are
  int64_t bytes_ = 0;            // of an element
};

bool is_of_type(const Graph& g, NodeId n, bool floats) {
  return is_half(g[n].dtype) || (floats && g[n].dtype == DType::F32);
}

// An input whose channels are summed over, and all of whose other axes are walked along.
bool Pass::is_picture(const Contraction& c) const {
  const NodeId in = c.left().source();
  const OperandView& view = c.left().views.back();
  if (g[in].op != Op::Input || g[in].shape.size() < kFewestAxes || !view.map ||
      !is_of_type(g, in, floats_))
    return false;
  for (size_t axis = 0; axis < view.map->at.size(); ++axis) {
    if (g[in].shape[axis] == 1 && axis != kChannels) continue;
    const std::vector<int64_t>& steps = view.map->at[axis].steps;
    bool summed = false, kept = false;
    for (size_t i = 0; i < steps.size(); ++i)
      if (steps[i] != 0) (std::ranges::count(c.reduced, i) != 0 ? summed : kept) = true;
    if (axis == kChannels ? kept || !summed : !kept) return false;
  }
  return true;
}

// Where an axis is in a reshaped tensor; nullopt where it is no axis of it alone.
std::optional<size_t> axis_after(const Shape& before, const Shape& after, size_t axis) {
  int64_t outside = 1, passed = 1;
  for (size_t i = 0; i < axis; ++i) outside *= before[i];
  for (size_t to = 0; to < after.size(); passed *= after[to++])
    if (passed == outside && after[to] == before[axis]) return to;
  return std::nullopt;
}

// The view of what is wider. kNoNode where that is no axis of it alone.
NodeId Pass::widened_view(NodeId view, NodeId now) {
  Node again = g[view];
  const Shape before = g[again.inputs[0]].shape;
  again.inputs = {now};
  std::vector<WideAxis*> wide{&channels_};
  if (taps_) wide.push_back(&*taps_);
  for (WideAxis* w : wide) {
    switch (again.op) {
    case Op::Cast:
      break;
    case Op::Window:
      if (again.payload[0] == static_cast<int64_t>(w->axis)) return kNoNode;
      break;
    case Op::Pad:
      if (again.payload[w->axis] != 0 || again.payload[before.size() + w->axis] != 0)
        return kNoNode;
      break;
    case Op::Permute:
      w->axis = static_cast<size_t>(
          std::ranges::find(again.payload, static_cast<int64_t>(w->axis)) -
          again.payload.begin());
      break;
    case Op::Expand:
      if (again.shape[w->axis] != w->narrow) return kNoNode;
      again.shape[w->axis] = w->wide;
      break;
    case Op::Reshape: {
      const auto to = axis_after(before, g[view].shape, w->axis);
      if (!to) return kNoNode;
      again.shape[w->axis = *to] = w->wide;
      break;
    }
    default:
      return kNoNode;
    }
  }
  if (again.op == Op::Window && wide_taps_ != 0 &&
      again.payload[0] == static_cast<int64_t>(taps_axis_)) {
    taps_ = {before.size(), again.payload[1], wide_taps_};
    again.payload[1] = wide_taps_;
  }
  return rebuild(g, again);
}

// Taps along the last axis, so many that with all channels they are whole rows of what is
// copied to shared memory, where that adds little: then where a thread reads in a step is
// the same in all steps but for one addition.
void Pass::widen_taps(NodeId window, Shape& high) {
  constexpr int64_t kRowBytes = 128, kMostGrowth = 6; // by a sixth at most
  const Node& w = g[window];
  const size_t last = high.size() - 1;
  const int64_t row = kRowBytes / (bytes_ * channels_.wide);
  if (w.payload[0] != static_cast<int64_t>(last) || w.payload[3] != 1 || row == 0) return;
  const int64_t size = w.payload[1], stride = w.payload[2],
                taps = ceil_div(size, row) * row,
                extent = (w.shape[last] - 1) * stride + taps,
                given = g[w.inputs[0]].shape[last];
  if (taps == size || taps - size > size / kMostGrowth || given >= extent + stride)
    return;
  taps_axis_ = last, wide_taps_ = taps;
  high[last] += std::max<int64_t>(extent - given, 0);
}

// The copy, and all views of it. What pads the picture in place becomes the copy's.
NodeId Pass::widened_picture(const Operand& operand) {
  const NodeId in = operand.source();
  const size_t rank = g[in].shape.size();
  Shape low(rank, 0), high(rank, 0);
  high[kChannels] = channels_.wide - channels_.narrow;
  std::vector<NodeId> views;
  bool lies_as_input = true;
  for (size_t i = operand.views.size() - 1; i-- > 0;) {
    const NodeId view = operand.views[i].node;
    const Payload& payload = g[view].payload;
    const bool pads = lies_as_input && g[view].op == Op::Pad && payload.back() == 0;
    for (size_t a = 0; pads && a < rank; ++a)
      low[a] += payload[a], high[a] += payload[rank + a];
    lies_as_input &= pads || g[view].op == Op::Cast;
    if (g[view].op == Op::Window) widen_taps(view, high);
    if (!pads) views.push_back(view);
  }
  NodeId now = pad(g, in, low, high, 0);
  if (now == in) return kNoNode; // nothing to be copied for
  for (NodeId view : views) {
    now = widened_view(view, now);
    if (now == kNoNode) return kNoNode;
  }
  return now;
}

// What repeats them is made again, so that no more than they are is padded. They are
// values again, which lie as a kernel wants them: in the picture's type, if they are
// numbers of that.
NodeId Pass::widened_weights(NodeId known, DType type) {
  Node view = g[known];
  Shape low(view.shape.size(), 0), high = low;
  for (const WideAxis& w : {channels_, taps_.value_or(channels_)}) {
    if (view.shape[w.axis] != w.narrow) return kNoNode;
    high[w.axis] = w.wide - w.narrow;
  }
  if (view.op == Op::Expand) {
    view.inputs = {widened_weights(view.inputs[0], type)};
    if (view.inputs[0] == kNoNode) return kNoNode;
    for (size_t i = 0; i < high.size(); ++i) view.shape[i] += high[i];
    return rebuild(g, view);
  }
  const NodeId padded = pad(g, known, low, high, 0);
  const auto values = [&](NodeId n) { return known_tensor(g, n, kKnownElements); };
  const NodeId narrow = cast(g, padded, type);
  const std::optional<Tensor> exact = values(padded), rounded = values(narrow),
                              again = values(cast(g, narrow, view.dtype));
  if (!exact || !rounded || !again) return kNoNode;
  if (exact->bytes != again->bytes) return tensor_node(g, *exact);
  return cast(g, tensor_node(g, *rounded), view.dtype);
}

// The sum over more channels; the node itself where it is no such convolution.
NodeId Pass::convolution(NodeId sum) {
  if (g[sum].op != Op::ReduceSum) return sum;
  const std::optional<Contraction> c = read_contraction(g, sum);
  if (!c || !c->right().known || c->left().known || !is_picture(*c)) return sum;
  const NodeId in = c->left().source();
  const DType type = g[in].dtype;
  bytes_ = byte_size(type);
  const int64_t unit = kUnitBytes / bytes_, channels = g[in].shape[kChannels];
  channels_ = {kChannels, channels, ceil_div(channels, unit) * unit};
  taps_.reset(), wide_taps_ = 0;
  Node product = g[c->product], sums = g[sum];
  const NodeId picture = widened_picture(c->left());
  if (picture == kNoNode) return sum;
  const size_t other = 1 - c->left().input;
  const NodeId weights = widened_weights(product.inputs[other], type);
  if (weights == kNoNode) return sum;
  product.inputs[other] = weights, product.inputs[1 - other] = picture;
  product.shape = g[picture].shape;
  sums.inputs = {rebuild(g, product)};
  return rebuild(g, sums);
}

Graph Pass::run() {
  GraphCopy copy(g, from_, [&](NodeId id) {
    const auto body = [&](const auto& own) {
      return std::make_shared<const Graph>(Pass(*own, floats_).run());
    };
    return convolution(rebuild(g, copy.over_copies(id, body)));
  });
  copy.run();
  return std::move(g);
}

} // namespace

Graph widen_channels(const Graph& graph, bool floats) {
  return Pass(graph, floats).run();
}

bool is_widened_input(const Graph& g, NodeId n, bool floats) {
  if (g[n].op != Op::Pad || g[g[n].inputs[0]].op != Op::Input ||
      !is_of_type(g, n, floats) || g[n].shape.size() < kFewestAxes)
    return false;
  return g[n].shape[kChannels] % (kUnitBytes / byte_size(g[n].dtype)) == 0;
}

} // namespace svod::rewrite
