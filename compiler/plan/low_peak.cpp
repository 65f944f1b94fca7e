// What runs one after the other by need stays so; where branches meet, which of them runs
// first decides how much waits for the others. A unit that every other unit comes before
// or behind cuts the graph, and what lies between two cuts is ordered on its own: Ahn et
// al., Ordering Chaos: Memory-Aware Scheduling of Irregularly Wired Neural Networks for
// Edge Devices, MLSys 2020. Sets of units that may have run are met by their number; of
// each the order with the lowest peak is kept, and of the sets of one number those of the
// lowest peaks. Only pieces that the peak lies in change: elsewhere what was written last
// stays what is read next.
#include "compiler/plan/low_peak.h"

#include "compiler/support/splitmix.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <span>

namespace svod::plan {

namespace {

// Sets of units of one number that are kept, in a piece of so many units.
constexpr size_t kMostSets = 256, kFewestSets = 8, kSetsTimesUnits = 16000;
// Who comes before whom is a bit for each pair.
constexpr size_t kMostUnits = 8192;

using Bits = std::vector<uint64_t>;

bool has(const Bits& bits, size_t at) { return (bits[at / 64] >> (at % 64) & 1) != 0; }
void add(Bits& bits, size_t at) { bits[at / 64] |= uint64_t{1} << (at % 64); }

// Sets are told apart by the exclusive or of their units' marks: two of one number would
// be taken for one, of which an order is kept all the same.
uint64_t mark_of(uint32_t unit) {
  uint64_t state = unit;
  return next_splitmix(state);
}

// By position in the order.
std::vector<uint64_t> alive_at(const UnitGraph& graph,
                               const std::vector<uint32_t>& order) {
  std::vector<size_t> place(order.size());
  for (size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  std::vector<int64_t> change(order.size() + 1);
  for (const UnitGraph::Block& b : graph.blocks) {
    size_t first = order.size(), last = 0;
    for (const uint32_t u : b.users)
      first = std::min(first, place[u]), last = std::max(last, place[u]);
    change[first] += static_cast<int64_t>(b.bytes);
    change[last + 1] -= static_cast<int64_t>(b.bytes);
  }
  std::vector<uint64_t> out;
  for (int64_t alive = 0; const int64_t by : std::span(change).first(order.size()))
    out.push_back(static_cast<uint64_t>(alive += by));
  return out;
}

class Order {
public:
  explicit Order(const UnitGraph& graph)
      : graph_(graph), touched_(graph.needs.size()), needed_by_(graph.needs.size()),
        order_(as_written(graph)) {
    for (uint32_t u = 0; u < graph.needs.size(); ++u)
      for (const uint32_t need : graph.needs[u]) needed_by_[need].push_back(u);
    for (uint32_t b = 0; b < graph.blocks.size(); ++b)
      for (const uint32_t u : graph.blocks[b].users) touched_[u].push_back(b);
  }
  void lower_peak();
  const std::vector<uint32_t>& order() const { return order_; }

private:
  struct Piece {
    size_t begin = 0, end = 0;
    uint64_t peak = 0; // as written
  };
  // Units of a piece that have run, and those that may run next, by their numbers in it.
  struct State {
    Bits run;
    std::vector<uint32_t> ready; // ascending
    uint64_t set = 0;            // a number of those that have run
    uint64_t alive = 0, peak = 0;
    size_t before = 0; // among the states of one unit less
    uint32_t unit = 0; // that ran last
  };
  using States = std::vector<State>;
  // One more unit, and what comes of it.
  struct Move {
    uint64_t set = 0, peak = 0, alive = 0;
    size_t from = 0; // of the states
    uint32_t unit = 0;
  };

  uint64_t peak_of(const Piece& piece) const;
  std::vector<Piece> pieces() const;
  std::vector<uint32_t> best_order(const Piece& piece) const;
  State first_state(const Piece& piece) const;
  Move move(const State& from, size_t number, uint32_t unit, const Piece& piece) const;
  State after(const State& from, const Move& move, const Piece& piece) const;
  bool may_run(const State& from, size_t unit, const Piece& piece) const;

  const UnitGraph& graph_;
  std::vector<std::vector<uint32_t>> touched_;   // blocks by unit
  std::vector<std::vector<uint32_t>> needed_by_; // units by unit
  std::vector<uint32_t> order_;                  // units; pieces stay where they are
};

static uint64_t highest(std::span<const uint64_t> alive, size_t begin, size_t end) {
  return std::ranges::max(alive.subspan(begin, end - begin));
}

uint64_t Order::peak_of(const Piece& piece) const {
  return highest(alive_at(graph_, order_), piece.begin, piece.end);
}

// What lies between units that all others come before or behind.
std::vector<Order::Piece> Order::pieces() const {
  const size_t n = order_.size();
  std::vector<Bits> before(n, Bits((n + 63) / 64));
  std::vector<size_t> behind(n), count(n);
  for (uint32_t u = 0; u < n; ++u) {
    for (const uint32_t need : graph_.needs[u]) {
      add(before[u], need);
      for (size_t w = 0; w < before[u].size(); ++w) before[u][w] |= before[need][w];
    }
    for (uint32_t b = 0; b < u; ++b)
      if (has(before[u], b)) ++behind[b], ++count[u];
  }
  const std::vector<uint64_t> alive = alive_at(graph_, order_);
  std::vector<Piece> out;
  for (size_t begin = 0, u = 0; u < n; ++u) {
    if (u + 1 != n && behind[u] + count[u] + 1 != n) continue;
    out.push_back({begin, u + 1, highest(alive, begin, u + 1)});
    begin = u + 1;
  }
  return out;
}

// All of the pieces before have run.
bool Order::may_run(const State& from, size_t unit, const Piece& piece) const {
  return !has(from.run, unit) &&
         std::ranges::all_of(graph_.needs[piece.begin + unit], [&](uint32_t need) {
           return need < piece.begin || has(from.run, need - piece.begin);
         });
}

Order::Move Order::move(const State& from, size_t number, uint32_t unit,
                        const Piece& piece) const {
  Move out{from.set ^ mark_of(unit), from.peak, from.alive, number, unit};
  uint64_t freed = 0;
  for (const uint32_t b : touched_[piece.begin + unit]) {
    bool fresh = true, last = true;
    for (const uint32_t user : graph_.blocks[b].users) {
      const bool has_run =
          user < piece.begin || (user < piece.end && has(from.run, user - piece.begin));
      if (has_run) fresh = false;
      if (!has_run && user != piece.begin + unit) last = false;
    }
    if (fresh) out.alive += graph_.blocks[b].bytes;
    if (last) freed += graph_.blocks[b].bytes;
  }
  out.peak = std::max(out.peak, out.alive);
  out.alive -= freed;
  return out;
}

Order::State Order::after(const State& from, const Move& move, const Piece& piece) const {
  State out{from.run, from.ready, move.set, move.alive, move.peak, move.from, move.unit};
  add(out.run, move.unit);
  std::erase(out.ready, move.unit);
  for (const uint32_t next : needed_by_[piece.begin + move.unit])
    if (next < piece.end && may_run(out, next - piece.begin, piece))
      out.ready.push_back(static_cast<uint32_t>(next - piece.begin));
  std::ranges::sort(out.ready);
  out.ready.erase(std::ranges::unique(out.ready).begin(), out.ready.end());
  return out;
}

Order::State Order::first_state(const Piece& piece) const {
  const size_t n = piece.end - piece.begin;
  State out{Bits((n + 63) / 64), {}};
  for (const UnitGraph::Block& b : graph_.blocks)
    if (b.users.front() < piece.begin && b.users.back() >= piece.begin)
      out.alive += b.bytes;
  for (size_t unit = 0; unit < n; ++unit)
    if (may_run(out, unit, piece)) out.ready.push_back(static_cast<uint32_t>(unit));
  return out;
}

std::vector<uint32_t> Order::best_order(const Piece& piece) const {
  const size_t n = piece.end - piece.begin;
  const size_t most = std::clamp(kSetsTimesUnits / n, kFewestSets, kMostSets);
  std::vector<States> steps{{first_state(piece)}};
  while (steps.size() <= n) {
    const States& last = steps.back();
    std::vector<Move> moves;
    for (size_t s = 0; s < last.size(); ++s)
      for (const uint32_t unit : last[s].ready)
        moves.push_back(move(last[s], s, unit, piece));
    // Equal ones in the order of the states and of the units.
    std::ranges::stable_sort(moves, {},
                             [](const Move& m) { return std::pair(m.peak, m.alive); });
    States next;
    std::set<uint64_t> known;
    for (const Move& m : moves)
      if (next.size() < most && known.insert(m.set).second)
        next.push_back(after(last[m.from], m, piece));
    steps.push_back(std::move(next));
  }
  std::vector<uint32_t> out(n);
  for (size_t step = n, s = 0; step > 0; s = steps[step--][s].before)
    out[step - 1] = static_cast<uint32_t>(piece.begin) + steps[step][s].unit;
  return out;
}

// From the highest piece on, as long as one is higher than those that are ordered.
void Order::lower_peak() {
  std::vector<Piece> all = pieces();
  std::ranges::stable_sort(all, std::greater(), &Piece::peak);
  uint64_t reached = 0;
  for (const Piece& piece : all) {
    if (piece.peak <= reached) break;
    const std::vector<uint32_t> was = order_;
    std::ranges::copy(best_order(piece),
                      order_.begin() + static_cast<std::ptrdiff_t>(piece.begin));
    const uint64_t peak = peak_of(piece);
    if (peak >= piece.peak) order_ = was;
    reached = std::max(reached, std::min(peak, piece.peak));
  }
}

} // namespace

std::vector<uint32_t> as_written(const UnitGraph& graph) {
  std::vector<uint32_t> out(graph.needs.size());
  std::iota(out.begin(), out.end(), 0);
  return out;
}

uint64_t peak_of(const UnitGraph& graph, const std::vector<uint32_t>& order) {
  return order.empty() ? 0 : std::ranges::max(alive_at(graph, order));
}

std::vector<uint32_t> low_peak_order(const UnitGraph& graph) {
  if (graph.needs.size() > kMostUnits) return as_written(graph);
  Order order(graph);
  order.lower_peak();
  return order.order();
}

} // namespace svod::plan
