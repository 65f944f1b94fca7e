// Choices by counting: each candidate is charged for the instructions it would execute.
// One vector of lanes costs one load when its elements are neighbours (or one weight that
// packing will make neighbours) and as many as it has lanes when they are not.
#include "compiler/fuse/choose.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace svod {

// Instructions of one step down a tree.
static constexpr int64_t kStepWork = 6;

static void walk(const Kernel& k, ExprId id, std::vector<bool>& seen,
                 std::vector<ExprId>& loads, int& operations) {
  if (seen[id]) return;
  seen[id] = true;
  const Expr& e = k.exprs[id];
  if (e.kind == Expr::Kind::Load) loads.push_back(id);
  // Bytes are widened by what loads or multiplies them.
  bool widens = e.kind == Expr::Kind::Cast && e.dtype == DType::I32 &&
                k.exprs[e.inputs[0]].kind == Expr::Kind::Load;
  if (e.kind == Expr::Kind::Map || (e.kind == Expr::Kind::Cast && !widens)) ++operations;
  if (e.kind == Expr::Kind::Descend) operations += static_cast<int>(kStepWork * e.limit);
  std::vector<ExprId> dynamic;
  k.indices.collect_dynamic(e.index, dynamic);
  for (const Bound& b : e.bounds) k.indices.collect_dynamic(b.index, dynamic);
  for (ExprId d : dynamic) walk(k, d, seen, loads, operations);
  for (ExprId in : e.inputs) walk(k, in, seen, loads, operations);
}

std::vector<ExprId> loads_below(const Kernel& k, ExprId root) {
  std::vector<bool> seen(k.exprs.size());
  std::vector<ExprId> loads;
  int operations = 0;
  walk(k, root, seen, loads, operations);
  return loads;
}

ExprId below_casts(const Kernel& k, ExprId id) {
  while (k.exprs[id].kind == Expr::Kind::Cast) id = k.exprs[id].inputs[0];
  return id;
}

static bool contains(const std::vector<AxisId>& axes, AxisId axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

std::vector<ExprId> descents_below(const Kernel& k, ExprId root) {
  std::vector<ExprId> out, open{root};
  while (!open.empty()) {
    ExprId id = open.back();
    open.pop_back();
    const Expr& e = k.exprs[id];
    if (e.kind == Expr::Kind::Descend && !contains(out, id)) out.push_back(id);
    open.insert(open.end(), e.inputs.begin(), e.inputs.end());
    k.indices.collect_dynamic(e.index, open);
  }
  return out;
}

static double product(const IndexPool& pool, const std::vector<AxisId>& axes) {
  double out = 1;
  for (AxisId a : axes) out *= double(pool.extent(a));
  return out;
}

// The loops that a stage of `k` runs in, outermost first.
static std::vector<AxisId> loops_of(const Kernel& k, const Stage& s) {
  std::vector<AxisId> loops = k.outer;
  const Stage* around = &s + 1;
  if (s.nested) loops.insert(loops.end(), around->inner.begin(), around->inner.end());
  loops.insert(loops.end(), s.inner.begin(), s.inner.end());
  return loops;
}

// Whether where data says differs from position to position of the axis.
static bool gathers_along(const Kernel& k, const Index& index, AxisId axis) {
  std::vector<ExprId> open;
  k.indices.collect_dynamic(index, open);
  std::vector<bool> used(k.indices.axis_count());
  while (!open.empty()) {
    const Expr& e = k.exprs[open.back()];
    open.pop_back();
    k.indices.collect_axes(e.index, used);
    for (const Bound& b : e.bounds) k.indices.collect_axes(b.index, used);
    k.indices.collect_dynamic(e.index, open);
    open.insert(open.end(), e.inputs.begin(), e.inputs.end());
  }
  return used[axis];
}

// Instructions for one vector of lanes along `axis`.
static double vector_load_cost(const Kernel& k, const Expr& load, AxisId axis,
                               int lanes) {
  int64_t stride = 0;
  bool affine = k.indices.affine_in(load.index, axis, stride) &&
                !gathers_along(k, load.index, axis);
  bool guarded = false;
  for (const Bound& b : load.bounds) guarded |= k.indices.depends_on(b.index, axis);
  bool weight = k.arguments[load.argument].kind == Argument::Kind::Packed;
  if (affine && weight) return 1;
  if (affine && stride == 0 && !guarded) return 1;
  if (affine && stride == 1) return guarded ? 3 : 1;
  // A vector and a shuffle for each, less one shuffle.
  if (affine && stride > 1 && stride <= kNearLanes)
    return double(guarded ? 4 * stride : 2 * stride - 1);
  return 1.5 * lanes;
}

// Trees are walked one lane after the other: what that costs beyond one walk.
static double lanewise_cost(const Kernel& k, ExprId value, AxisId axis, int lanes) {
  double cost = 0;
  for (ExprId id : descents_below(k, value)) {
    const Expr& e = k.exprs[id];
    std::vector<bool> used(k.indices.axis_count());
    k.indices.collect_axes(e.index, used);
    for (ExprId load : loads_below(k, id))
      k.indices.collect_axes(k.exprs[load].index, used);
    if (used[axis]) cost += double(kStepWork * e.limit + 2) * lanes;
  }
  return cost;
}

// Whether with this axis as lanes the stage multiplies bytes four at a time.
static bool allows_dots(const Kernel& k, const Stage& s, AxisId axis) {
  ByteOperands operands = byte_operands(k, s);
  if (operands.x == nullptr || contains(s.inner, axis)) return false;
  return !k.indices.depends_on(operands.x->index, axis) &&
         k.indices.depends_on(operands.w->index, axis) &&
         std::any_of(s.inner.begin(), s.inner.end(), [&](AxisId a) {
           int64_t stride = 0;
           return k.indices.extent(a) > 2 &&
                  k.indices.affine_in(operands.x->index, a, stride) && stride == 1;
         });
}

static bool is_arg_reduce(const Stage& s) {
  return s.kind == StageKind::Reduce && (s.op == Op::ArgMin || s.op == Op::ArgMax);
}

// Shuffles and the store of a vector that is written as a column, with as many others as
// it has lanes; see transpose_tile().
static constexpr double kSwapWork = 6.0;

// Whether lanes that lie apart are written so.
static bool swaps_columns(const Kernel& k, const Stage& s, AxisId axis, int lanes) {
  int64_t apart = 0;
  if (k.stages.size() != 1 || s.kind != StageKind::Store || !s.inner.empty() ||
      !k.indices.affine_in(s.index, axis, apart) || apart <= 1)
    return false;
  return neighbours_in(k, s, axis, lanes).points() == lanes;
}

static double stage_cost(const Kernel& k, const Stage& s, AxisId axis, int lanes,
                         bool dots) {
  const std::vector<AxisId> loops = loops_of(k, s);
  bool looped = contains(loops, axis);
  double positions = product(k.indices, loops);
  if (dots && allows_dots(k, s, axis)) positions /= kDot;
  // When the lane axis belongs to other stages this one runs once per position.
  double extent = double(k.indices.extent(axis));
  double vectors = looped ? positions / extent * std::ceil(extent / lanes) : positions;
  std::vector<bool> seen(k.exprs.size());
  std::vector<ExprId> loads;
  int operations = 0;
  walk(k, s.value, seen, loads, operations);
  double cost = operations + lanewise_cost(k, s.value, axis, lanes);
  for (ExprId id : loads)
    cost += looped ? vector_load_cost(k, k.exprs[id], axis, lanes) : 1.0;
  if (s.kind != StageKind::Reduce) {
    int64_t stride = 0;
    bool neighbours = k.indices.affine_in(s.index, axis, stride) && stride == 1;
    const bool swaps = !neighbours && swaps_columns(k, s, axis, lanes);
    cost += neighbours || !looped ? 1.0 : swaps ? kSwapWork : 1.2 * lanes;
  } else if (contains(s.inner, axis)) {
    // Lanes are summed up at the end; of positions the best one is picked lane by lane.
    double end = is_arg_reduce(s) ? 4.0 * lanes : 12.0;
    cost += end / std::max(1.0, product(k.indices, s.inner) / lanes);
  }
  return vectors * cost;
}

static bool can_vectorise(const Kernel& k, AxisId axis) {
  for (const Stage& s : k.stages) {
    if (s.kind == StageKind::Scatter || s.kind == StageKind::Sort) return false;
    bool inner = contains(s.inner, axis);
    if (s.kind == StageKind::Scan && inner) return false;
    // Each lane keeps the number of its best position.
    int64_t step = 0;
    bool countable = k.indices.affine_in(s.position, axis, step) &&
                     k.indices.range(s.position).high <= INT32_MAX;
    if (is_arg_reduce(s) && inner && !countable) return false;
  }
  return true;
}

std::optional<std::pair<Dim, size_t>> choose_lane(const Lowered& lowered, int lanes,
                                                  bool dots) {
  const Kernel& k = lowered.kernel;
  double best = 0;
  for (const Stage& s : k.stages) {
    std::vector<bool> seen(k.exprs.size());
    std::vector<ExprId> loads;
    int operations = 0;
    walk(k, s.value, seen, loads, operations);
    best += product(k.indices, loops_of(k, s)) * (operations + loads.size() + 1.0) * 0.9;
  }
  std::optional<std::pair<Dim, size_t>> choice;
  for (const auto& [dim, axes] : lowered.axes)
    for (size_t place = axes.size(); place-- > 0;) {
      AxisId axis = axes[place];
      int64_t extent = k.indices.extent(axis);
      // Only the outermost axis of a dimension may run over its end.
      bool whole = place == 0 || extent % lanes == 0;
      bool looped = lowered.unrolled.count(axis) == 0 && extent >= 2;
      if (!looped || !whole || !can_vectorise(k, axis)) continue;
      double cost = 0;
      for (const Stage& s : k.stages) cost += stage_cost(k, s, axis, lanes, dots);
      if (cost < best) best = cost, choice = {dim, place};
    }
  return choice;
}

// The axes a packed weight is stored along, outermost first.
static std::vector<AxisId> packed_axes(const Kernel& k, const Stage& s,
                                       const Expr& load) {
  std::vector<bool> used(k.indices.axis_count());
  k.indices.collect_axes(load.index, used);
  for (const Bound& b : load.bounds) k.indices.collect_axes(b.index, used);
  std::vector<AxisId> order;
  auto take = [&](const std::vector<AxisId>& axes) {
    for (AxisId a : axes)
      if (used[a] && !k.is_lane(a) && !k.is_dot(a) && !contains(order, a))
        order.push_back(a);
  };
  take(loops_of(k, s));
  if (k.has_lane_axis && used[k.lane_axis]) order.push_back(k.lane_axis);
  if (k.has_dot_axis && used[k.dot_axis]) order.push_back(k.dot_axis);
  return order;
}

static bool is_affine(const IndexPool& pool, const Index& index) {
  return std::all_of(index.terms.begin(), index.terms.end(), [&](const auto& t) {
    return pool.term(t.first).kind == Term::Kind::Axis;
  });
}

static int64_t coefficient(const IndexPool& pool, const Index& index, AxisId axis) {
  int64_t out = 0;
  pool.affine_in(index, axis, out);
  return out;
}

// Drops a reduction's condition when the weight factor is zero there anyway: the other
// factor reads padding lanes, which hold zeros. Loops may still end before them.
static void drop_covered_domain(Kernel& k, Stage& s, ExprId weight,
                                const std::vector<Bound>& bounds) {
  const Expr& v = k.exprs[s.value];
  bool product = s.op == Op::ReduceSum && v.kind == Expr::Kind::Map && v.op == Op::Mul;
  if (!product || s.kind != StageKind::Reduce) return;
  ExprId first = below_casts(k, v.inputs[0]), second = below_casts(k, v.inputs[1]);
  if (first != weight && second != weight) return;
  ExprId other = first == weight ? second : first;
  if (k.exprs[other].kind != Expr::Kind::Load) return;
  std::erase_if(s.domain, [&](const Bound& b) {
    const bool covered = std::ranges::find(bounds, b) != bounds.end();
    if (covered && std::ranges::find(s.useful, b) == s.useful.end())
      s.useful.push_back(b);
    return covered;
  });
}

static void pack_load(Kernel& k, Stage& s, ExprId id, std::vector<PackedWeight>& packed) {
  Expr& load = k.exprs[id];
  const PackedWeight dense = packed[k.arguments[load.argument].id];
  bool is_dense = dense.strides == std::vector<int64_t>{1} && dense.offset == 0 &&
                  dense.limits.empty();
  if (!is_dense || load.bits != 0) return;
  bool affine = is_affine(k.indices, load.index);
  for (const Bound& b : load.bounds) affine &= is_affine(k.indices, b.index);
  if (!affine) return;
  std::vector<AxisId> axes = packed_axes(k, s, load);
  PackedWeight p{dense.source, dense.dtype, {}, {}, load.index.constant, {}, 0};
  for (AxisId a : axes) {
    p.extents.push_back(k.indices.extent(a));
    p.strides.push_back(coefficient(k.indices, load.index, a));
  }
  if (element_count(p.extents) > 2 * dense.extents[0] + 64 * k.lanes) return;
  for (const Bound& b : load.bounds) {
    PackedWeight::Limit limit{b.index.constant, b.low, b.high, {}};
    for (AxisId a : axes)
      limit.coefficients.push_back(coefficient(k.indices, b.index, a));
    p.limits.push_back(std::move(limit));
  }
  auto found = std::find(packed.begin(), packed.end(), p);
  auto number = static_cast<uint32_t>(found - packed.begin());
  if (found == packed.end()) packed.push_back(p);
  k.arguments.push_back({Argument::Kind::Packed, number, p.dtype, false, true});
  Index index;
  for (size_t i = 0; i < axes.size(); ++i) {
    index = IndexPool::scale(index, p.extents[i]);
    index = IndexPool::add(index, k.indices.axis(axes[i]));
  }
  std::vector<Bound> bounds = std::move(load.bounds);
  load.bounds.clear();
  load.index = std::move(index);
  load.argument = static_cast<uint32_t>(k.arguments.size() - 1);
  drop_covered_domain(k, s, id, bounds);
}

// Arguments that no expression mentions any more go; the rest keeps its order.
static void drop_unused_arguments(Kernel& k) {
  std::vector<bool> used(k.arguments.size());
  for (const Expr& e : k.exprs) {
    bool descends = e.kind == Expr::Kind::Descend;
    if (e.kind == Expr::Kind::Load || descends) used[e.argument] = true;
    if (descends) used[e.table] = true;
  }
  for (const Stage& s : k.stages)
    if (s.kind != StageKind::Reduce) used[s.argument] = true;
  std::vector<uint32_t> number(k.arguments.size());
  std::vector<Argument> kept;
  for (size_t i = 0; i < used.size(); ++i) {
    number[i] = static_cast<uint32_t>(kept.size());
    if (used[i]) kept.push_back(k.arguments[i]);
  }
  k.arguments = std::move(kept);
  for (Expr& e : k.exprs) {
    bool descends = e.kind == Expr::Kind::Descend;
    if (e.kind == Expr::Kind::Load || descends) e.argument = number[e.argument];
    if (descends) e.table = number[e.table];
  }
  for (Stage& s : k.stages)
    if (s.kind != StageKind::Reduce) s.argument = number[s.argument];
}

void pack_weights(Kernel& k, std::vector<PackedWeight>& packed) {
  for (Stage& s : k.stages)
    for (ExprId id : loads_below(k, s.value))
      if (k.arguments[k.exprs[id].argument].kind == Argument::Kind::Packed)
        pack_load(k, s, id, packed);
  drop_unused_arguments(k);
}

// By ascending key; equal ones stay as they were.
template <class Key> static void sort_axes(std::vector<AxisId>& axes, Key key) {
  std::vector<std::pair<int64_t, size_t>> order;
  for (size_t i = 0; i < axes.size(); ++i) order.emplace_back(key(axes[i]), i);
  std::sort(order.begin(), order.end());
  std::vector<AxisId> sorted;
  for (auto [unused, i] : order) sorted.push_back(axes[i]);
  axes = std::move(sorted);
}

// Inner axes run with the smallest activation stride innermost, so that neighbouring
// steps read neighbouring memory.
static void order_inner(Kernel& k, Stage& s) {
  bool reorder = s.kind == StageKind::Reduce && !is_arg_reduce(s);
  if (!reorder || s.inner.size() < 2) return;
  const Expr* widest = nullptr;
  for (ExprId id : loads_below(k, s.value)) {
    const Expr& e = k.exprs[id];
    if (k.arguments[e.argument].kind == Argument::Kind::Buffer && widest == nullptr)
      widest = &e;
  }
  if (widest == nullptr) return;
  sort_axes(s.inner, [&](AxisId a) {
    return -std::abs(coefficient(k.indices, widest->index, a));
  });
}

static constexpr int64_t kResidentWeights = 128 << 10;

void order_loops(Kernel& k, const std::vector<PackedWeight>& packed) {
  for (Stage& s : k.stages) order_inner(k, s);
  if (k.stages[0].kind != StageKind::Reduce || k.stages[0].inner.empty()) return;
  std::vector<bool> weight(k.indices.axis_count()), data(k.indices.axis_count());
  int64_t weight_bytes = 0;
  for (ExprId id : loads_below(k, k.stages[0].value)) {
    const Expr& e = k.exprs[id];
    const Argument& a = k.arguments[e.argument];
    bool is_weight = a.kind == Argument::Kind::Packed;
    if (is_weight) weight_bytes += packed[a.id].bytes();
    k.indices.collect_axes(e.index, is_weight ? weight : data);
  }
  for (ExprId id : descents_below(k, k.stages[0].value)) {
    const PackedWeight& nodes = packed[k.arguments[k.exprs[id].table].id];
    weight_bytes += nodes.bytes();
    k.indices.collect_axes(k.exprs[id].index, data);
  }
  // Products apart from each other, as those of groups or of Winograd's positions, come
  // one after the other.
  const bool resident = weight_bytes <= kResidentWeights;
  auto apart = [&](AxisId a) { return weight[a] && data[a]; };
  sort_axes(k.outer, [&](AxisId a) {
    if (resident) return int64_t(apart(a) || k.indices.extent(a) == 1 ? 0 : 1);
    return int64_t(apart(a) ? 0 : weight[a] ? 1 : 2);
  });
}

static void count_work(Kernel& k, const std::vector<PackedWeight>& packed,
                       const std::vector<Buffer>& buffers) {
  double flops = 0;
  for (const Stage& s : k.stages) {
    std::vector<bool> seen(k.exprs.size());
    std::vector<ExprId> loads;
    int operations = 0;
    walk(k, s.value, seen, loads, operations);
    if (s.kind == StageKind::Reduce || s.kind == StageKind::Scan) ++operations;
    flops += operations * product(k.indices, loops_of(k, s));
  }
  k.flops = static_cast<int64_t>(flops);
  k.bytes = 0;
  for (const Argument& a : k.arguments)
    k.bytes +=
        a.kind == Argument::Kind::Packed ? packed[a.id].bytes() : buffers[a.id].bytes();
}

// About 30 us of work on one core; fewer chunks than this leave a core idle, more cost
// hand-outs.
static constexpr double kChunkWork = 400000;
static constexpr int64_t kMaxChunks = 64;

// Blocks are whole register tiles: a block below the tile would leave it no work. They
// are equal where that takes at most twice the block; rows of a prime number end with a
// shorter one.
static int64_t pick_block(int64_t extent, int64_t parts, int tile) {
  int64_t unit = extent >= 336 && 42 % tile == 0 ? 42 : tile; // 42: tiles of 6 and 14
  int64_t units = (extent + unit - 1) / unit;
  int64_t block = (units + parts - 1) / parts;
  int64_t equal = block;
  while (unit < 42 && units % equal != 0) ++equal;
  return std::min((equal <= 2 * block ? equal : block) * unit, extent);
}

void choose_chunks(Kernel& k, const std::vector<PackedWeight>& packed,
                   const std::vector<Buffer>& buffers, const Level& level) {
  count_work(k, packed, buffers);
  k.chunks.clear();
  double work = double(k.flops) + double(k.bytes);
  auto wanted = std::min<int64_t>(kMaxChunks, static_cast<int64_t>(work / kChunkWork));
  for (const Stage& s : k.stages)
    if (s.kind == StageKind::Scatter) wanted = 1;
  Tile tile = choose_tile(k, level);
  for (AxisId axis : k.outer) {
    int64_t have = k.chunk_count(), extent = k.indices.extent(axis);
    if (2 * have > wanted || (k.has_lane_axis && axis == k.lane_axis) || extent == 1)
      continue;
    int64_t parts = std::min(extent, (wanted + have - 1) / have);
    k.chunks.push_back({axis, pick_block(extent, parts, tile.count(axis))});
  }
}

} // namespace svod
