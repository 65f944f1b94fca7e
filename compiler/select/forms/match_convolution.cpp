// Winograd's view of a contraction: a convolution with known weights over one to three
// axes. Its forms know rows and columns only. The other axes become pictures: a depth's
// pictures are transformed once and then summed up by windows over them; with a dilation
// of d every d-th row is a picture of its own, which has none. The groups of one picture
// are pictures, each with weights of its own.
#include "compiler/select/forms/transform.h"
#include "compiler/select/forms/winograd.h"

#include <algorithm>
#include <tuple>

namespace svod::select {

namespace {

// What one axis of the tensor below the windows is.
struct InputAxis {
  std::vector<size_t> run; // of the contraction's axes; none: extent 1
  const AxisWindow* window = nullptr;
  bool summed = false; // the run is; else it is rows
  bool groups = false; // outside of the run are the groups
};

bool are_all(const std::vector<size_t>& some, const std::vector<size_t>& of) {
  return std::ranges::all_of(
      some, [&](size_t axis) { return std::ranges::count(of, axis) != 0; });
}

// The window that the coordinate is, where its positions are all there are.
const AxisWindow* window_of(const Contraction& c, const Coordinate& at, int64_t extent) {
  const auto steps = std::ranges::count_if(at.steps, [](int64_t s) { return s != 0; });
  for (const AxisWindow& w : c.windows) {
    const int64_t reach = (c.axes[w.tap].extent - 1) * w.dilation;
    if (steps == 2 && at.constant == 0 && at.steps[w.position] == w.stride &&
        at.steps[w.tap] == w.dilation &&
        (extent - reach - 1) / w.stride + 1 == c.axes[w.position].extent)
      return &w;
  }
  return nullptr;
}

// The axes of a view that lies below all windows and above all pads; none for another.
std::vector<InputAxis> input_axes(const Graph& g, const Contraction& c,
                                  const OperandView& view) {
  if (!view.map || !view.map->guards.empty()) return {};
  std::vector<InputAxis> axes;
  size_t windows = 0;
  for (size_t i = 0; i < view.map->at.size(); ++i) {
    const Coordinate& at = view.map->at[i];
    InputAxis axis;
    if (auto run = run_of(at, g[view.node].shape[i], c.axes)) {
      axis.run = std::move(*run);
      const auto groups = std::ssize(c.batch);
      if (groups != 0 && std::ssize(axis.run) >= groups &&
          std::equal(c.batch.begin(), c.batch.end(), axis.run.begin())) {
        axis.groups = true;
        axis.run.erase(axis.run.begin(), axis.run.begin() + groups);
      }
      axis.summed = !axis.run.empty() && are_all(axis.run, c.reduced);
      if (!axis.summed && !are_all(axis.run, c.rows)) return {};
    } else if (axis.window = window_of(c, at, g[view.node].shape[i]); axis.window) {
      ++windows;
    } else {
      return {};
    }
    axes.push_back(std::move(axis));
  }
  return windows == c.windows.size() ? axes : std::vector<InputAxis>{};
}

// Which axis of the view is the batch, which one the channels; the others are those that
// windows are over, some of one tap, or of one position that all taps meet.
struct Roles {
  static constexpr size_t kNone = ~size_t{0};
  size_t batch = kNone, groups = kNone, channels = kNone;
  std::vector<size_t> windowed;
  // `of_groups`: what the groups are called, which may be a part of the channels' axis.
  std::vector<size_t> order(size_t of_groups) const {
    std::vector<size_t> all;
    for (size_t axis : {batch, groups == kNone ? kNone : of_groups, channels})
      if (axis != kNone) all.push_back(axis);
    all.insert(all.end(), windowed.begin(), windowed.end());
    return all;
  }
};

Roles roles_of(const std::vector<InputAxis>& axes) {
  Roles roles;
  for (size_t i = 0; i < axes.size(); ++i) {
    const bool plain = axes[i].window == nullptr;
    if (axes[i].groups) roles.groups = i;
    if (axes[i].groups && axes[i].run.empty()) continue;
    if (plain && !axes[i].summed && roles.batch == Roles::kNone)
      roles.batch = i;
    else if (plain && axes[i].summed && roles.channels == Roles::kNone)
      roles.channels = i;
  }
  // One channel is an axis of extent 1.
  for (size_t i = 0; i < axes.size() && roles.channels == Roles::kNone; ++i)
    if (i != roles.batch && i != roles.groups && axes[i].window == nullptr &&
        axes[i].run.empty())
      roles.channels = i;
  for (size_t i = 0; i < axes.size(); ++i)
    if (i != roles.batch && i != roles.channels && i != roles.groups)
      roles.windowed.push_back(i);
  return roles;
}

// What the windows over each axis are.
struct AxisWindows {
  Shape taps, stride, dilation;
};

// The share of dilated taps, over all positions, that lie within what is padded.
double met_share(const Contraction& c) {
  double share = 1;
  for (const AxisWindow& w : c.windows) {
    const int64_t taps = c.axes[w.tap].extent, results = c.axes[w.position].extent;
    if (w.dilation == 1) continue;
    int64_t met = 0;
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int64_t first = std::max<int64_t>(0, w.low - tap * w.dilation);
      const int64_t end = w.low + w.extent - tap * w.dilation;
      met += std::max<int64_t>(0, std::min(end, results) - first);
    }
    share *= double(met) / double(taps * results);
  }
  return share;
}

// Sees the axes as pictures; false where they are none.
bool see_pictures(Convolution& conv, const AxisWindows& windows) {
  const size_t rank = windows.taps.size();
  conv.size = conv.taps = {1, 1};
  for (size_t a = rank == 1 ? 1 : 0; a < 2; ++a) {
    const size_t i = rank - 2 + a;
    conv.taps[a] = windows.taps[i], conv.stride[a] = windows.stride[i];
    conv.dilation[a] = windows.dilation[i];
    conv.size[a] = (conv.results[i + 2] + conv.dilation[a] - 1) / conv.dilation[a];
    if (conv.stride[a] != 1 && conv.dilation[a] != 1) return false;
  }
  conv.pictures = conv.batch = conv.results[0] * conv.dilation[0] * conv.dilation[1];
  if (rank < 3) return true;
  conv.depth = conv.input.shape[2];
  conv.depth_taps = windows.taps[0], conv.depth_stride = windows.stride[0];
  conv.pictures *= conv.depth, conv.batch *= conv.results[2];
  return windows.dilation[0] == 1;
}

// The convolution whose input is this view of the left operand.
std::optional<Convolution> convolution_over(const Graph& g, const Contraction& c,
                                            const OperandView& view) {
  const std::vector<InputAxis> axes = input_axes(g, c, view);
  const Roles roles = roles_of(axes);
  const size_t rank = roles.windowed.size();
  if (axes.empty() || rank < 1 || rank > 3) return std::nullopt;
  if (!c.batch.empty() && roles.groups == Roles::kNone) return std::nullopt;
  const Shape& extents = g[view.node].shape;
  const auto run_at = [&](size_t axis) {
    return axis == Roles::kNone ? std::vector<size_t>{} : axes[axis].run;
  };
  std::vector<size_t> of_result = run_at(roles.batch), of_weight = c.columns, taps;
  const std::vector<size_t> channels = run_at(roles.channels);
  Convolution conv;
  conv.groups = c.count(c.batch);
  conv.outputs = c.count(c.columns), conv.inputs = c.count(channels);
  conv.results = {c.count(of_result) * conv.groups, conv.outputs};
  Shape input = {conv.results[0], conv.inputs}, weight = {conv.groups, conv.outputs};
  AxisWindows windows;
  of_result.insert(of_result.end(), c.batch.begin(), c.batch.end());
  of_weight.insert(of_weight.begin(), c.batch.begin(), c.batch.end());
  of_result.insert(of_result.end(), c.columns.begin(), c.columns.end());
  for (size_t i : roles.windowed) {
    const AxisWindow* w = axes[i].window;
    const auto positions = w != nullptr     ? std::vector<size_t>{w->position}
                           : axes[i].summed ? std::vector<size_t>{}
                                            : axes[i].run;
    const auto summed = w != nullptr     ? std::vector<size_t>{w->tap}
                        : axes[i].summed ? axes[i].run
                                         : std::vector<size_t>{};
    of_result.insert(of_result.end(), positions.begin(), positions.end());
    taps.insert(taps.end(), summed.begin(), summed.end());
    conv.results.push_back(c.count(positions));
    input.push_back(extents[i]);
    windows.taps.push_back(c.count(summed));
    windows.stride.push_back(w != nullptr ? w->stride : 1);
    windows.dilation.push_back(w != nullptr ? w->dilation : 1);
  }
  of_weight.insert(of_weight.end(), channels.begin(), channels.end());
  of_weight.insert(of_weight.end(), taps.begin(), taps.end());
  weight.resize(2 + rank, 1);
  weight.push_back(conv.inputs);
  weight.insert(weight.end(), windows.taps.begin(), windows.taps.end());
  const auto known = operand_in_order(g, c, c.right(), of_weight, weight);
  if (!known || of_result.size() != c.batch.size() + c.rows.size() + c.columns.size())
    return std::nullopt;
  std::vector<size_t> have;
  Shape pieces;
  const bool within = roles.groups != Roles::kNone && roles.groups == roles.channels;
  const size_t of_groups = within ? axes.size() : roles.groups;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (within && i == roles.groups)
      have.push_back(of_groups), pieces.push_back(conv.groups);
    have.push_back(i);
    pieces.push_back(within && i == roles.groups ? conv.inputs : extents[i]);
  }
  conv.input = reading(view.node, have, pieces, roles.order(of_groups), input);
  conv.weight = *known;
  conv.result = result_in_order(g, c, of_result);
  conv.met = met_share(c);
  if (!see_pictures(conv, windows)) return std::nullopt;
  if (conv.groups != 1 && conv.batch != conv.groups) return std::nullopt;
  return conv;
}

} // namespace

Convolution with_groups_together(Convolution conv, int64_t together) {
  for (int64_t* few : {&conv.groups, &conv.batch, &conv.pictures, &conv.results[0],
                       &conv.input.shape[0]})
    *few /= together;
  for (int64_t* many :
       {&conv.inputs, &conv.outputs, &conv.results[1], &conv.input.shape[1]})
    *many *= together;
  return conv;
}

std::optional<Convolution> match_convolution(const Graph& g, const Contraction& c) {
  const bool weighted = c.right().known && !c.left().known;
  if (c.dtype != DType::F32 || !weighted || c.windows.empty()) return std::nullopt;
  // Several views may do. Best has two axes for each one with a window and three in the
  // product, else none of extent 1 too many; and it lies in order.
  const size_t rank = (g[c.product].shape.size() + 1) / 2;
  std::optional<Convolution> best;
  std::tuple<bool, bool, size_t> least;
  for (const OperandView& view : c.left().views) {
    std::optional<Convolution> conv = convolution_over(g, c, view);
    if (!conv) continue;
    const size_t axes = conv->input.shape.size();
    const std::tuple work(axes != rank, !conv->input.order.empty(), axes);
    if (best && work >= least) continue;
    least = work;
    best = std::move(conv);
  }
  return best;
}

} // namespace svod::select
