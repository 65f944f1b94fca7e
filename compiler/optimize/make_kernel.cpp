// The loops of a kernel whose axes are cut: the lanes and the bytes of a dot product, for
// each of which an axis is cut once more, then the order of loops, the packing of weights
// and the chunks.
#include "compiler/optimize/make_kernel.h"

#include "compiler/kernel/lane_facts.h"
#include "compiler/optimize/choose.h"
#include "compiler/optimize/short_sums.h"
#include "compiler/optimize/small_code.h"

#include <algorithm>

namespace svod::optimize {

namespace {

class KernelMaker {
public:
  KernelMaker(CutKernel cut, const Group& group, Stored& stored, const Lower& lower,
              const Target& target)
      : group_(group), stored_(stored), lower_(lower), target_(target),
        lanes_(target.levels[0].lanes), level_(target.levels.back()),
        spec_(std::move(cut.spec)), lowered_(std::move(cut.lowered)) {}
  MadeKernel run();

private:
  void lower_again() { lowered_ = lower_(spec_); }
  std::optional<LowerSpec> with_whole_blocks() const;
  bool reads_vectors(const ScheduledKernel& kernel) const;
  std::optional<LowerSpec> with_shared_channels() const;
  void take_lanes();
  std::optional<Lowered> with_dot_axis() const;

  const Group& group_;
  Stored& stored_;
  const Lower& lower_;
  const Target& target_;
  int lanes_;
  const Level& level_; // the strongest
  LowerSpec spec_;
  Lowered lowered_;
};

// Cuts the axis at `place` of a dimension, of the given extent, into pieces of `size`;
// returns the place of the piece. Below the outermost an axis is a whole number of them.
size_t split_axis(LowerSpec& spec, Dim dim, size_t place, int64_t extent, int64_t size) {
  std::vector<int64_t>& inner = spec.splits[dim];
  bool cut = extent != size || place == 0;
  if (cut && place > 0) inner[place - 1] = extent / size;
  if (!cut) return place;
  inner.insert(inner.begin() + static_cast<int64_t>(place), size);
  std::set<std::pair<Dim, size_t>> unrolled;
  for (auto [d, at] : spec.unrolled) unrolled.insert({d, at + (d == dim && at > place)});
  spec.unrolled = std::move(unrolled);
  return place + 1;
}

// Views may cut the channels of a copy otherwise than the blocks of its result do, as
// those of a channel shuffle. The outermost piece is then cut so that all within it are
// one block, which transpose_tile() writes whole, with other lanes (133 to 23 us for
// nanodet's 800 KB).
std::optional<LowerSpec> KernelMaker::with_whole_blocks() const {
  LowerSpec spec = spec_;
  const ScheduledKernel& k = lowered_.kernel;
  const Layout& layout = stored_.buffers[stored_.buffer_of.at(group_.target)].layout;
  const int64_t axis = layout.block_axis;
  if (group_.target != group_.root || axis < 0 || layout.block != lanes_ ||
      k.stages.size() != 1 || k.stages[0].kind != StageKind::Store)
    return std::nullopt;
  const Dim dim{group_.root, axis};
  const auto found = lowered_.axes.find(dim);
  const bool merged = spec.merged.count(axis) != 0 || spec.merged.count(axis - 1) != 0;
  const int64_t pieces = element_count(spec.splits[dim]);
  if (found == lowered_.axes.end() || merged || pieces == 1 || pieces >= lanes_ ||
      lanes_ % pieces != 0)
    return std::nullopt;
  const int64_t extent = k.indices.extent(found->second[0]);
  split_axis(spec, dim, 0, extent, lanes_ / pieces);
  spec.whole_blocks = true;
  return spec;
}

// Whether lanes read neighbours, the same, or elements of a vector that the processor
// picks: of each level's registers.
bool KernelMaker::reads_vectors(const ScheduledKernel& k) const {
  const auto picks = [&](const ScheduledKernel& k, const Level& level) {
    return std::ranges::all_of(k.exprs, [&](const Expr& e) {
      if (e.kind != Expr::Kind::Load) return true;
      const LaneAccess reads = lane_access(k, e);
      if (reads == LaneAccess::Same || reads == LaneAccess::Neighbours) return true;
      if (k.arguments[e.argument].kind == Argument::Kind::Packed)
        return reads == LaneAccess::Strided;
      const bool masked = std::ranges::any_of(e.bounds, [&](const Bound& b) {
        return k.indices.depends_on(b.index, *k.loops.lane);
      });
      const bool floats = e.dtype == DType::F32 || is_narrow_float(e.dtype);
      return reads == LaneAccess::Shuffled && floats && !masked &&
             target_.picks_lanes(level);
    });
  };
  // Where the last block's lanes are no channels, weights are packed as zeros.
  ScheduledKernel whole = k;
  for (Expr& e : whole.exprs)
    if (e.kind == Expr::Kind::Load &&
        k.arguments[e.argument].kind == Argument::Kind::Packed)
      e.bounds.clear();
  return std::ranges::all_of(target_.levels, [&](const Level& level) {
    const int parts = lanes_ * 32 / level.register_bits;
    if (parts <= 1) return picks(whole, level);
    const std::optional<ScheduledKernel> cut = cut_lanes(whole, parts);
    return cut && picks(*cut, level);
  });
}

// Quotients of a channel cut a block into groups and what is in them, of which neither
// fills a vector. All of the block are lanes where a group's share what they read.
std::optional<LowerSpec> KernelMaker::with_shared_channels() const {
  const ScheduledKernel& k = lowered_.kernel;
  const Layout& layout = stored_.buffers[stored_.buffer_of.at(group_.target)].layout;
  const Dim dim{group_.root, layout.block_axis};
  const auto found = spec_.splits.find(dim);
  if (group_.target != group_.root || layout.block_axis < 0 || layout.block != lanes_ ||
      found == spec_.splits.end() || !spec_.unrolled.empty() || k.stages.empty() ||
      k.stages[0].kind != StageKind::Reduce || !level_.has_vectors())
    return std::nullopt;
  LowerSpec spec = spec_;
  std::vector<int64_t>& pieces = spec.splits[dim];
  if (pieces.back() >= lanes_) return std::nullopt;
  // Groups may end within the last block.
  int64_t together = 1;
  while (!pieces.empty() && together < lanes_) {
    together *= pieces.back();
    pieces.pop_back();
  }
  if (lanes_ % together != 0 || (together != lanes_ && !pieces.empty()))
    return std::nullopt;
  pieces.push_back(lanes_);
  spec.lane = {dim, pieces.size()};
  return reads_vectors(lower_(spec).kernel) ? std::optional(spec) : std::nullopt;
}

// Cuts the axis that is the lanes', if one is worth it.
void KernelMaker::take_lanes() {
  if (!level_.has_lanes()) return;
  if (auto across = choose_across(lowered_, level_)) {
    const auto [dim, place, lanes] = *across;
    const int64_t extent = lowered_.kernel.indices.extent(lowered_.axes.at(dim)[place]);
    spec_.lane = {dim, split_axis(spec_, dim, place, extent, lanes)};
    return lower_again();
  }
  if (auto shared = with_shared_channels()) {
    spec_ = std::move(*shared);
    return lower_again();
  }
  auto lane = choose_lane(lowered_, lanes_, level_);
  if (auto whole = with_whole_blocks()) {
    Lowered cut = lower_(*whole);
    auto other = choose_lane(cut, lanes_, level_);
    if (other && whole->splits[other->dim] == spec_.splits[other->dim])
      lane = other, spec_ = std::move(*whole), lowered_ = std::move(cut);
  }
  if (!lane) return;
  auto [dim, place, lanes] = *lane;
  int64_t extent = lowered_.kernel.indices.extent(lowered_.axes.at(dim)[place]);
  spec_.lane = {dim, split_axis(spec_, dim, place, extent, lanes)};
  lower_again();
}

// With the axis cut that is to be the dot axis, if one can be.
std::optional<Lowered> KernelMaker::with_dot_axis() const {
  auto dot = choose_dot(lowered_, level_);
  if (!dot) return std::nullopt;
  auto [dim, place] = *dot;
  int64_t extent = lowered_.kernel.indices.extent(lowered_.axes.at(dim)[place]);
  LowerSpec spec = spec_;
  spec.dot = {dim, split_axis(spec, dim, place, extent, kDot)};
  return lower_(spec);
}

MadeKernel KernelMaker::run() {
  const LowerSpec without_lanes = spec_;
  take_lanes();
  std::optional<Lowered> dot;
  if (level_.has_dots()) dot = with_dot_axis();
  // Loops first: weights lie in the order in which they are met.
  auto order_and_pack = [&](ScheduledKernel& k) {
    order_loops(k, stored_.packed, stored_.buffers, level_.machine);
    pack_weights(k, stored_.packed, level_);
  };
  if (dot) order_and_pack(dot->kernel);
  if (dot && dot_works(dot->kernel, level_))
    lowered_ = std::move(*dot);
  else {
    if (drops_lanes(lowered_.kernel, level_)) spec_ = without_lanes, lower_again();
    order_and_pack(lowered_.kernel);
  }
  const bool halves = std::ranges::any_of(
      target_.levels, [](const Level& l) { return l.dots == ByteProducts::Halves; });
  if (halves && !lowered_.kernel.stages.empty())
    find_short_sums(lowered_.kernel, stored_.graph, stored_.packed);
  if (target_.kind != TargetKind::Gpu && level_.has_vectors())
    flush_tails(lowered_.kernel);
  keep_costly_values(lowered_.kernel);
  choose_chunks(lowered_.kernel, stored_.packed, stored_.buffers, level_);
  return {std::move(lowered_.kernel), lowered_.to_unroll.empty()};
}

} // namespace

MadeKernel make_kernel(CutKernel cut, const Group& group, Stored stored,
                       const Lower& lower, const Target& target) {
  return KernelMaker(std::move(cut), group, stored, lower, target).run();
}

} // namespace svod::optimize
