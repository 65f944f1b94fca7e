// A kernel that walks down a picture has read the rows above when it writes one, so the
// result may lie on those rows. How far it may be moved into what is read follows from
// two facts, both read off the loops in the order in which they run: when each element is
// read for the last time, and how far up and down the result has been written until then.
//
//   result    |0 1 2 3 4 5 6 7 ... |        `below`: no element of what is read is
//   is read        |0 1 2 3 4 5 ... |        written over before its last time
//
// A step of the loops is one tile: what is read and written in the same step counts as
// written first. Where an index is no sum of axes, or pieces are many, the whole range
// stands for them; that moves the buffers further apart than need be, never too close.
#include "compiler/plan/apart.h"

#include "compiler/kernel/matrix_tiles.h"

#include <algorithm>
#include <limits>

namespace svod::plan {

namespace {

// The compiler's own time.
constexpr int64_t kMostSteps = int64_t{1} << 22, kMostElements = int64_t{1} << 22;
constexpr size_t kMostPieces = 256;
constexpr double kMostMarks = double{1 << 28}; // elements that all steps mark as read
constexpr int64_t kNever = -1;

// The elements of one load or store in one step: a piece at each of `offsets`, all of
// them [low, high] around it; and where the step moves them.
struct Access {
  int64_t constant = 0;
  std::vector<int64_t> moves; // by loop
  std::vector<int64_t> offsets{0};
  int64_t low = 0, high = 0;

  bool stays() const {
    return std::ranges::all_of(moves, [](int64_t by) { return by == 0; });
  }
};

struct Loop {
  AxisId axis;
  int64_t extent, step;
};

class Walk {
public:
  Walk(const ScheduledKernel& k, uint32_t read, uint32_t written)
      : k_(k), read_(read), written_(written) {}
  std::optional<Apart> run();

private:
  bool is_plain() const;
  void find_loops();
  bool find_accesses();
  Access access(const Index& index) const;
  int64_t elements(const std::vector<Access>& all) const;
  double marks(int64_t steps, int64_t most) const;
  template <class F> void for_each_step(const F& visit) const;
  template <class F>
  void for_each_piece(const std::vector<Access>& all, const std::vector<int64_t>& at,
                      int64_t most, const F& visit) const;
  Apart distance(const std::vector<int64_t>& last_read, const std::vector<int64_t>& up,
                 const std::vector<int64_t>& down) const;

  const ScheduledKernel& k_;
  const uint32_t read_, written_;
  std::vector<Loop> loops_;
  std::vector<Access> reads_, writes_;
};

bool Walk::is_plain() const {
  if (k_.call() || k_.sequence() || k_.levels.size() != 1 || k_.chunk_count() != 1)
    return false;
  if (k_.arguments[read_].written || k_.arguments[written_].read || k_.ends_at(read_))
    return false;
  return std::ranges::all_of(k_.stages, [](const Stage& s) {
    return s.kind == StageKind::Store || s.kind == StageKind::Reduce;
  });
}

void Walk::find_loops() {
  const std::vector<TileAxis> step = step_of_loops(k_.levels[0]);
  for (const AxisId axis : k_.loops.outer) {
    if (!k_.is_loop(axis)) continue;
    loops_.push_back({axis, k_.indices.extent(axis), tile_count(step, axis)});
  }
}

// The axes that are no loop, and the positions of a tile, are what a step has.
Access Walk::access(const Index& index) const {
  const IndexPool& pool = k_.indices;
  const Range all = pool.range(index);
  Access whole;
  whole.moves.assign(loops_.size(), 0);
  whole.low = all.low, whole.high = all.high;
  if (pool.has_dynamic(index)) return whole;
  Access out;
  out.constant = index.constant;
  std::vector<std::pair<int64_t, int64_t>> spans; // coefficient, positions
  for (AxisId axis = 0; axis < pool.axis_count(); ++axis) {
    int64_t by = 0;
    if (!pool.affine_in(index, axis, by)) return whole;
    const auto loop = std::ranges::find(loops_, axis, &Loop::axis);
    const bool moves = loop != loops_.end();
    if (by != 0) spans.emplace_back(by, moves ? loop->step : pool.extent(axis));
  }
  for (const Loop& loop : loops_) {
    int64_t by = 0;
    pool.affine_in(index, loop.axis, by);
    out.moves.push_back(by);
  }
  std::ranges::sort(spans, {}, [](const auto& span) { return std::abs(span.first); });
  for (const auto& [by, count] : spans) {
    const int64_t reach = by * (count - 1);
    if (std::abs(by) <= out.high - out.low + 1 && out.offsets.size() == 1) {
      (reach < 0 ? out.low : out.high) += reach;
      continue;
    }
    if (out.offsets.size() * static_cast<size_t>(count) > kMostPieces) return whole;
    std::vector<int64_t> offsets;
    for (int64_t i = 0; i < count; ++i)
      for (const int64_t offset : out.offsets) offsets.push_back(offset + i * by);
    out.offsets = std::move(offsets);
  }
  return out;
}

bool Walk::find_accesses() {
  for (const Expr& e : k_.exprs) {
    const bool loads = e.kind == Expr::Kind::Load || e.kind == Expr::Kind::Descend;
    if (!loads || (e.argument != read_ && e.table != read_)) continue;
    if (e.kind == Expr::Kind::Descend) return false;
    if (e.argument == read_) reads_.push_back(access(e.index));
  }
  for (const Stage& s : k_.stages)
    if (s.kind == StageKind::Store && s.argument == written_)
      writes_.push_back(access(s.index));
  return !reads_.empty() && !writes_.empty();
}

// Where the last one that is touched ends.
int64_t Walk::elements(const std::vector<Access>& all) const {
  int64_t out = 0;
  for (const Access& a : all) {
    int64_t end = a.constant + a.high + *std::ranges::max_element(a.offsets) + 1;
    for (size_t i = 0; i < loops_.size(); ++i)
      end += std::max<int64_t>(0, a.moves[i] * (loops_[i].extent - 1));
    out = std::max(out, end);
  }
  return out;
}

// What a step reads that others read, too, is marked by the last one alone.
double Walk::marks(int64_t steps, int64_t most) const {
  double out = 0;
  for (const Access& a : reads_)
    if (!a.stays())
      out += double(steps) * double(a.offsets.size()) *
             double(std::min(most, a.high - a.low + 1));
  return out;
}

// In the order of the loops, the last one being the innermost.
template <class F> void Walk::for_each_step(const F& visit) const {
  std::vector<int64_t> at(loops_.size());
  for (int64_t step = 0;; ++step) {
    visit(step, at);
    size_t i = loops_.size();
    while (i > 0 && (at[i - 1] += loops_[i - 1].step) >= loops_[i - 1].extent)
      at[--i] = 0;
    if (i == 0) return;
  }
}

template <class F>
void Walk::for_each_piece(const std::vector<Access>& all, const std::vector<int64_t>& at,
                          int64_t most, const F& visit) const {
  for (const Access& a : all) {
    int64_t base = a.constant;
    for (size_t i = 0; i < at.size(); ++i) base += a.moves[i] * at[i];
    for (const int64_t offset : a.offsets) {
      const int64_t low = std::max<int64_t>(0, base + offset + a.low);
      const int64_t high = std::min(most - 1, base + offset + a.high);
      if (low <= high) visit(low, high);
    }
  }
}

// `up`: how far the result has been written after each step, `down` from where.
Apart Walk::distance(const std::vector<int64_t>& last_read,
                     const std::vector<int64_t>& up,
                     const std::vector<int64_t>& down) const {
  const int64_t from = byte_size(k_.arguments[read_].dtype);
  const int64_t to = byte_size(k_.arguments[written_].dtype);
  int64_t below = 0, above = 0;
  for (size_t y = 0; y < last_read.size(); ++y) {
    if (last_read[y] == kNever) continue;
    const auto step = static_cast<size_t>(last_read[y]), place = y;
    if (up[step] == 0) continue; // nothing is written yet
    below = std::max(below, up[step] * to - static_cast<int64_t>(place) * from);
    above = std::max(above, static_cast<int64_t>(place + 1) * from - down[step] * to);
  }
  return {static_cast<uint64_t>(below), static_cast<uint64_t>(above)};
}

std::optional<Apart> Walk::run() {
  if (!is_plain()) return std::nullopt;
  find_loops();
  int64_t steps = 1;
  for (const Loop& loop : loops_)
    if (__builtin_mul_overflow(steps, (loop.extent + loop.step - 1) / loop.step, &steps))
      return std::nullopt;
  if (steps > kMostSteps || !find_accesses()) return std::nullopt;
  const int64_t read = elements(reads_), written = elements(writes_);
  if (read > kMostElements || written > kMostElements) return std::nullopt;
  if (marks(steps, read) > kMostMarks) return std::nullopt;
  const auto moving =
      std::ranges::partition(reads_, [](const Access& a) { return !a.stays(); });
  const std::vector<Access> staying(moving.begin(), moving.end());
  reads_.erase(moving.begin(), moving.end());
  std::vector<int64_t> last_read(static_cast<size_t>(std::max<int64_t>(read, 0)), kNever);
  std::vector<int64_t> up, down;
  int64_t top = 0, bottom = std::numeric_limits<int64_t>::max();
  for_each_step([&](int64_t step, const std::vector<int64_t>& at) {
    for_each_piece(reads_, at, read, [&](int64_t low, int64_t high) {
      std::fill(last_read.begin() + low, last_read.begin() + high + 1, step);
    });
    for_each_piece(writes_, at, written, [&](int64_t low, int64_t high) {
      top = std::max(top, high + 1), bottom = std::min(bottom, low);
    });
    up.push_back(top);
    down.push_back(bottom);
  });
  const std::vector<int64_t> begin(loops_.size());
  for_each_piece(staying, begin, read, [&](int64_t low, int64_t high) {
    std::fill(last_read.begin() + low, last_read.begin() + high + 1, steps - 1);
  });
  return distance(last_read, up, down);
}

} // namespace

std::optional<Apart> least_apart(const ScheduledKernel& kernel, uint32_t read,
                                 uint32_t written) {
  // Parts of a vector are on a loop of their own: the first is written before the last
  // is read.
  const bool in_parts = kernel.has_lane_axis() && kernel.levels.size() == 1 &&
                        kernel.levels[0].lanes != kernel.loops.lanes;
  if (!in_parts) return Walk(kernel, read, written).run();
  const std::optional<ScheduledKernel> cut =
      cut_lanes(kernel, kernel.loops.lanes / kernel.levels[0].lanes);
  return cut ? Walk(*cut, read, written).run() : std::nullopt;
}

} // namespace svod::plan
