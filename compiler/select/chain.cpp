// Where one kernel's part needs only the same part of the kernel before it, both run part
// by part: the scores of a few rows of an attention are made, normalised and used before
// the next rows, a row of Winograd tiles is transformed, multiplied and transformed back.
// What goes from one to the other is then as large as one part, stays in the second cache
// and takes no room in the arena, and the threads meet once per chain.
//
// Parts belong together when every access to what is passed on has the same outermost
// position as the kernel's own part: the index is  position * stride + rest  with rest
// inside [0, stride).
#include "compiler/select/chain.h"

#include "compiler/kernel/buffer_uses.h"
#include "compiler/kernel/stage_work.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace svod::select {

namespace {

// What a part passes on should leave the second cache room for the weights beside it.
int64_t part_limit(const Machine& m) { return m.second.bytes * 3 / 8; }
// It may be larger where all parts together would come from memory.
int64_t far_part_limit(const Machine& m) { return m.second.bytes * 3 / 2; }
// Weights beyond the second cache come from the last one, for every part.
int64_t weight_limit(const Machine& m) { return 4 * m.second.bytes; }
// Every part reads the weights again, from the second cache, and so what no part has for
// itself: its products should take so many times as long.
constexpr double kProductsAgain = 6;
// A picture's elements are loaded one by one, for each vector of columns, of which a part
// may have one (64 channels to 256 and twice that to be added, 56x56: 2.5 ms part by
// part, 1.4 one after the other).
constexpr int64_t kLoadsOfShared = 2;
constexpr int64_t kFewestParts = 8, kFewestRowsOfPart = 12;
constexpr size_t kLongest = 4, kMostBetween = 2;

// The dimensions of a buffer that count something.
Dims outermost(const Buffer& b) {
  const Dims all = dims_of(b.layout, b.shape);
  Dims d;
  for (size_t i = 0; i < all.extents.size(); ++i)
    if (all.extents[i] > 1) {
      d.extents.push_back(all.extents[i]);
      d.strides.push_back(all.strides[i]);
    }
  return d;
}

// Parts are runs of `rows` positions of the last of `extents`, the others outside of it.
struct Parts {
  std::vector<int64_t> extents;
  int64_t rows = 1;
  int64_t count() const {
    int64_t n = (extents.back() + rows - 1) / rows;
    for (size_t i = 0; i + 1 < extents.size(); ++i) n *= extents[i];
    return n;
  }
};

class Finder {
public:
  Finder(FusedGraph& fused, const Machine& machine) : f_(fused), machine_(machine) {}
  void run();

private:
  using Members = std::vector<size_t>;  // kernels, ascending
  using Passed = std::vector<BufferId>; // from one kernel of a chain to others
  struct Candidate {
    Members members;
    Passed passed;
    Parts parts;
    int64_t bytes; // of all parts
  };

  bool may_join(size_t kernel) const;
  bool touches(size_t kernel, BufferId id) const;
  bool independent(size_t kernel, size_t first) const;
  Members followers(size_t first) const;
  std::optional<Passed> find_passed(const Members& members) const;
  std::optional<Candidate> choose_parts(const Members& members, Passed passed) const;
  void take(std::vector<Candidate> candidates);
  bool is_good(const Members& members, const Passed& passed, const Parts& parts) const;
  bool cut(const ScheduledKernel& k, const Passed& passed, const Parts& parts,
           std::vector<ChunkAxis>& chunks) const;
  bool axes_of(const ScheduledKernel& k, const Parts& parts, const Index& index,
               const std::vector<Bound>& bounds, const Dims& dims,
               std::vector<AxisId>& axes) const;
  int64_t part_bytes(BufferId id, const Parts& parts) const;
  int64_t weight_bytes(const ScheduledKernel& k) const;
  int64_t shared_bytes(const ScheduledKernel& k,
                       const std::vector<ChunkAxis>& chunks) const;

  FusedGraph& f_;
  const Machine& machine_;
  std::vector<BufferUse> uses_;
};

bool Finder::may_join(size_t kernel) const {
  const ScheduledKernel& k = f_.kernels[kernel];
  return !k.call() && k.scratch_bytes == 0 && !k.stages.empty() &&
         std::ranges::all_of(k.stages, [](const Stage& s) {
           return s.kind == StageKind::Reduce || s.kind == StageKind::Store;
         });
}

bool Finder::touches(size_t kernel, BufferId id) const {
  return std::ranges::any_of(f_.kernels[kernel].arguments, [&](const Argument& a) {
    return a.kind == Argument::Kind::Buffer && a.id == id;
  });
}

// Whether it makes no difference if the kernel runs before those from `first` on.
bool Finder::independent(size_t kernel, size_t first) const {
  for (size_t i = first; i < kernel; ++i)
    for (const Argument& a : f_.kernels[i].arguments)
      for (const Argument& b : f_.kernels[kernel].arguments)
        if (a.kind == Argument::Kind::Buffer && b.kind == Argument::Kind::Buffer &&
            a.id == b.id && (a.written || b.written))
          return false;
  return true;
}

// `first` and those that follow it, each of which reads what the one before it writes.
// Others may stand between (as one that fills a border does) where they can as well run
// before the chain.
Finder::Members Finder::followers(size_t first) const {
  Members members;
  if (!may_join(first)) return members;
  members.push_back(first);
  for (size_t i = first + 1; i < f_.kernels.size() && members.size() < kLongest; ++i) {
    const size_t last = members.back();
    const bool apart = std::ranges::any_of(f_.regions, [&](const FusedRegion& r) {
      return r.kernels_before > first && r.kernels_before <= i;
    });
    if (apart || i > last + kMostBetween + 1) break;
    const bool reads =
        std::ranges::any_of(f_.kernels[last].arguments, [&](const auto& a) {
          return a.kind == Argument::Kind::Buffer && a.written && touches(i, a.id);
        });
    if (reads && may_join(i))
      members.push_back(i);
    else if (!independent(i, first))
      break;
  }
  return members;
}

int64_t Finder::part_bytes(BufferId id, const Parts& parts) const {
  const Buffer& b = f_.buffers[id];
  return outermost(b).strides[parts.extents.size() - 1] * parts.rows * byte_size(b.dtype);
}

int64_t Finder::weight_bytes(const ScheduledKernel& k) const {
  int64_t bytes = 0;
  for (const Argument& a : k.arguments)
    if (a.kind == Argument::Kind::Packed) bytes += f_.packed[a.id].bytes();
  return bytes;
}

// What the products of a part read that those of other parts read, too: the picture, or
// rows of it, where the outermost axis of parts is the channels of a result.
int64_t Finder::shared_bytes(const ScheduledKernel& k,
                             const std::vector<ChunkAxis>& chunks) const {
  const Stage& s = k.stages[0];
  if (s.kind != StageKind::Reduce || k.inner(s).empty()) return 0;
  std::map<BufferId, int64_t> shared;
  for (ExprId id : loads_below(k, s.value)) {
    const Expr& e = k.exprs[id];
    const Argument& a = k.arguments[e.argument];
    const auto own = [&](const ChunkAxis& c) {
      return k.indices.depends_on(e.index, c.axis);
    };
    if (a.kind != Argument::Kind::Buffer || own(chunks.front())) continue;
    int64_t parts = 1;
    for (const ChunkAxis& c : chunks)
      if (own(c)) parts *= k.indices.extent(c.axis) / c.block;
    shared[a.id] = f_.buffers[a.id].bytes() / std::max<int64_t>(parts, 1);
  }
  int64_t bytes = 0;
  for (const auto& [id, some] : shared) bytes += some;
  return bytes;
}

// Where the index can be, the bounds being met: a part of it that is one of them is
// nowhere else, as a position of rows that the last vector goes beyond.
static Range range_within(const IndexPool& pool, Index index,
                          const std::vector<Bound>& bounds) {
  Range known{0, 0};
  for (const Bound& b : bounds) {
    const bool part = std::ranges::all_of(b.index.terms, [&](const auto& term) {
      return std::ranges::count(index.terms, term) != 0;
    });
    if (!part || b.index.terms.empty()) continue;
    index = IndexPool::add(index, IndexPool::scale(b.index, -1));
    known.low += b.low, known.high += b.high - 1;
  }
  const Range rest = pool.range(index);
  return {rest.low + known.low, rest.high + known.high};
}

// The axes of the kernel that walk along the parts' dimensions, in order; where a kernel
// has one axis for all of them, that one.
bool Finder::axes_of(const ScheduledKernel& k, const Parts& parts, const Index& index,
                     const std::vector<Bound>& bounds, const Dims& dims,
                     std::vector<AxisId>& axes) const {
  const size_t n = parts.extents.size();
  auto find = [&](int64_t stride, int64_t extent) -> std::optional<AxisId> {
    for (auto [id, coefficient] : index.terms) {
      const Term& t = k.indices.term(id);
      if (t.kind == Term::Kind::Axis && coefficient == stride &&
          k.indices.extent(t.id) == extent && !k.is_lane(t.id) &&
          std::ranges::count(k.loops.outer, t.id) != 0)
        return t.id;
    }
    return std::nullopt;
  };
  axes.clear();
  const int64_t all = std::accumulate(parts.extents.begin(), parts.extents.end(),
                                      int64_t{1}, std::multiplies<>());
  if (std::optional<AxisId> merged = find(dims.strides[n - 1], all))
    axes = {*merged};
  else
    for (size_t i = 0; i < n; ++i) {
      std::optional<AxisId> axis = find(dims.strides[i], parts.extents[i]);
      if (!axis) return false;
      axes.push_back(*axis);
    }
  Index rest = index;
  std::erase_if(rest.terms, [&](const auto& term) {
    const Term& t = k.indices.term(term.first);
    return t.kind == Term::Kind::Axis && std::ranges::count(axes, t.id) != 0;
  });
  for (AxisId a : axes)
    if (k.indices.depends_on(rest, a)) return false;
  const Range range = range_within(k.indices, rest, bounds);
  return range.low >= 0 && range.high < dims.strides[n - 1];
}

// The kernel's chunks, when all it does with what is passed on stays within its part.
bool Finder::cut(const ScheduledKernel& k, const Passed& passed, const Parts& parts,
                 std::vector<ChunkAxis>& chunks) const {
  std::vector<AxisId> axes, these;
  auto fits = [&](uint32_t argument, const Index& index,
                  const std::vector<Bound>& bounds) {
    const Argument& a = k.arguments[argument];
    if (a.kind != Argument::Kind::Buffer || std::ranges::count(passed, a.id) == 0)
      return true;
    if (k.indices.has_dynamic(index) ||
        !axes_of(k, parts, index, bounds, outermost(f_.buffers[a.id]), these))
      return false;
    if (axes.empty()) axes = these;
    return axes == these;
  };
  for (const Expr& e : k.exprs) {
    if (e.kind == Expr::Kind::Load && !fits(e.argument, e.index, e.bounds)) return false;
    if (e.kind == Expr::Kind::Descend) return false;
  }
  for (const Stage& s : k.stages)
    if ((s.kind == StageKind::Store || s.keeps) && !fits(s.argument, s.index, s.domain))
      return false;
  if (axes.empty()) return false;
  chunks.clear();
  for (size_t i = 0; i < axes.size(); ++i)
    chunks.push_back({axes[i], i + 1 == axes.size() ? parts.rows : 1});
  return true;
}

// What is passed on: written by kernels of the chain, each a part of it where they are
// several, read by later ones, by nobody else. All other buffers that a kernel of the
// chain writes are of no concern to the others.
std::optional<Finder::Passed> Finder::find_passed(const Members& members) const {
  Passed passed;
  auto place = [&](size_t kernel) {
    return static_cast<size_t>(std::ranges::find(members, kernel) - members.begin());
  };
  std::vector<bool> gives(members.size()), takes(members.size());
  for (size_t i = 0; i < members.size(); ++i)
    for (const Argument& a : f_.kernels[members[i]].arguments) {
      if (a.kind != Argument::Kind::Buffer || !a.written) continue;
      const BufferUse& use = uses_[a.id];
      auto shared = [&](size_t user) {
        return user != members[i] && place(user) < members.size();
      };
      if (!std::ranges::any_of(use.readers, shared) &&
          !std::ranges::any_of(use.writers, shared))
        continue;
      auto inside = [&](size_t user) {
        return place(user) >= i && place(user) < members.size();
      };
      auto member = [&](size_t user) { return place(user) < members.size(); };
      if (use.outside || !std::ranges::all_of(use.writers, member) ||
          !std::ranges::all_of(use.readers, inside) ||
          f_.buffers[a.id].layout.has_border())
        return std::nullopt;
      if (std::ranges::count(passed, a.id) == 0) passed.push_back(a.id);
      gives[i] = true;
      for (size_t reader : use.readers)
        if (reader != members[i]) takes[place(reader)] = true;
    }
  for (size_t i = 0; i < members.size(); ++i)
    if ((i + 1 < members.size() && !gives[i]) || (i > 0 && !takes[i]))
      return std::nullopt;
  return passed;
}

// Whether so many operations of each part are worth bytes that all parts read again.
static bool pays(const Machine& m, double flops, double again) {
  const double per_byte = m.flops_per_clock / m.second.bytes_per_clock;
  const double far = again > double(m.second.bytes) ? 2 : 1;
  return flops >= kProductsAgain * per_byte * far * again;
}

bool Finder::is_good(const Members& members, const Passed& passed,
                     const Parts& parts) const {
  if (parts.count() < kFewestParts) return false;
  return std::ranges::all_of(members, [&](size_t i) {
    std::vector<ChunkAxis> chunks;
    const ScheduledKernel& k = f_.kernels[i];
    const int64_t weights = weight_bytes(k);
    const double flops = double(k.flops) / double(parts.count());
    return weights <= weight_limit(machine_) && pays(machine_, flops, double(weights)) &&
           cut(k, passed, parts, chunks) &&
           pays(machine_, flops, double(kLoadsOfShared * shared_bytes(k, chunks)));
  });
}

std::optional<Finder::Candidate> Finder::choose_parts(const Members& members,
                                                      Passed passed) const {
  int64_t all = 0;
  for (BufferId id : passed) all += f_.buffers[id].bytes();
  const int64_t near_limit = part_limit(machine_);
  if (all <= near_limit) return std::nullopt;
  const int64_t most = all > machine_.far_bytes() ? far_part_limit(machine_) : near_limit;
  const Dims dims = outermost(f_.buffers[passed[0]]);
  std::optional<Parts> best;
  int64_t best_bytes = 0;
  for (size_t n = 1; n <= 2 && n <= dims.extents.size(); ++n) {
    Parts parts{{dims.extents.begin(), dims.extents.begin() + std::ptrdiff_t(n)}, 1};
    const bool same = std::ranges::all_of(passed, [&](BufferId id) {
      const Dims d = outermost(f_.buffers[id]);
      return d.extents.size() >= n &&
             std::equal(parts.extents.begin(), parts.extents.end(), d.extents.begin());
    });
    if (!same) break;
    const int64_t extent = parts.extents.back();
    for (parts.rows = 1; parts.rows <= extent; ++parts.rows) {
      if (extent % parts.rows != 0) continue;
      if (n == 2 && parts.rows < std::min(extent, kFewestRowsOfPart)) continue;
      int64_t bytes = 0;
      for (BufferId id : passed) bytes += part_bytes(id, parts);
      // The most that still is near; else the least.
      const bool near = bytes <= near_limit, was_near = best && best_bytes <= near_limit;
      const bool better = !best || (near && (!was_near || bytes > best_bytes)) ||
                          (!near && !was_near && bytes < best_bytes);
      if (bytes > most || !better || !is_good(members, passed, parts)) continue;
      best = parts;
      best_bytes = bytes;
    }
  }
  if (!best) return std::nullopt;
  return Candidate{members, std::move(passed), *best, all};
}

// A part has few rows: a panel of what they meet stays in the first cache while all of
// them pass by. Where they meet weights, these have their order already.
static void put_rows_inside(ScheduledKernel& k) {
  const Stage& s = k.stages[0];
  const AxisId rows = k.loops.chunks.back().axis;
  if (s.kind != StageKind::Reduce || k.inner(s).empty()) return;
  bool met = false;
  for (ExprId id : loads_below(k, s.value)) {
    const Expr& e = k.exprs[id];
    if (k.arguments[e.argument].kind != Argument::Kind::Buffer) return;
    met |= !k.indices.depends_on(e.index, rows);
  }
  auto at = std::ranges::find(k.loops.outer, rows);
  if (met) std::rotate(at, at + 1, k.loops.outer.end());
}

// A kernel belongs to one chain: the one that passes on the most bytes goes first.
void Finder::take(std::vector<Candidate> candidates) {
  std::ranges::sort(candidates, {}, [](const Candidate& c) {
    return std::tuple(-c.bytes, c.members.front(), c.members.size());
  });
  std::vector<bool> taken(f_.kernels.size());
  for (const Candidate& c : candidates) {
    const auto first = static_cast<std::ptrdiff_t>(c.members.front());
    const auto end = static_cast<std::ptrdiff_t>(c.members.back()) + 1;
    if (std::find(taken.begin() + first, taken.begin() + end, true) !=
        taken.begin() + end)
      continue;
    std::fill(taken.begin() + first, taken.begin() + end, true);
    for (size_t i : c.members) {
      cut(f_.kernels[i], c.passed, c.parts, f_.kernels[i].loops.chunks);
      f_.kernels[i].loops.in_parts = true;
      put_rows_inside(f_.kernels[i]);
    }
    // Those between come first.
    std::vector<ScheduledKernel> chained;
    auto next = f_.kernels.begin() + first;
    for (auto i = next; i != f_.kernels.begin() + end; ++i)
      if (i->loops.in_parts)
        chained.push_back(std::move(*i));
      else if (next++ != i)
        *std::prev(next) = std::move(*i);
    std::ranges::move(chained, next);
    const size_t count = c.members.size();
    Chain chain{static_cast<size_t>(end) - count, count, {}};
    for (BufferId id : c.passed) chain.buffers.push_back({id, part_bytes(id, c.parts)});
    f_.chains.push_back(std::move(chain));
  }
  std::ranges::sort(f_.chains, {}, &Chain::first);
}

void Finder::run() {
  uses_ = buffer_uses(f_);
  std::vector<Candidate> candidates;
  for (size_t first = 0; first + 1 < f_.kernels.size(); ++first)
    for (Members members = followers(first); members.size() >= 2; members.pop_back()) {
      std::optional<Passed> passed = find_passed(members);
      if (!passed) continue;
      if (std::optional<Candidate> found = choose_parts(members, std::move(*passed)))
        candidates.push_back(std::move(*found));
    }
  take(std::move(candidates));
}

} // namespace

bool may_chain(const Machine& m, int64_t parts, double passed, double flops,
               double weights) {
  const auto limit = double(part_limit(m)), each = double(parts);
  return parts >= kFewestParts && passed > limit && passed / each <= limit &&
         weights <= double(weight_limit(m)) && pays(m, flops / each, weights);
}

void find_chains(FusedGraph& fused, const Machine& machine) {
  Finder(fused, machine).run();
}

} // namespace svod::select
