// Kernels are told apart by their digests: those that two graphs share cost the same in
// both and are not looked at, so a gain is that of the kernels that differ. A kernel is
// scheduled and priced once, however many graphs it is in.
//
// What a launch costs is left out: short launches become one after the plan
// (plan/join_steps.h), which prices do not see.
#include "compiler/equal_programs.h"

#include "compiler/fuse.h"
#include "compiler/optimize/schedule_kernel.h"
#include "compiler/price_cut.h"

#include <algorithm>

namespace svod {

std::string_view text_of(EqualSearch::End end) {
  constexpr std::string_view kTexts[] = {"off", "done", "budget"};
  return kTexts[static_cast<size_t>(end)];
}

PassEnd end_of(const EqualSearch& found) {
  PassEnd out;
  if (found.end == EqualSearch::End::Budget) out.reason = PassEnd::Budget;
  out.rounds = static_cast<int>(found.aims.size());
  out.steps = std::ranges::count_if(found.aims, &AskedAim::taken);
  return out;
}

namespace {

// A graph's kernels.
struct Lowered {
  std::map<Digest, int64_t> launches;
  std::set<Digest> chained; // run part by part, of which their prices know nothing
  int64_t weight_bytes = 0;
};

struct Change {
  double before = 0, after = 0;
};

class EqualSearcher {
public:
  EqualSearcher(const Target& target, const EqualOptions& options, EqualSearch& found)
      : target_(target), options_(options), found_(found) {}
  Graph run(const Graph& graph);

private:
  bool spent() const { return found_.priced >= options_.budget; }
  bool ask(egraph::Aim aim, Graph& now);
  Lowered lower(const Graph& graph);
  void add_kernels(const FusedGraph& fused, Lowered& out);
  void price(const ScheduledKernel& kernel, const Digest& digest);
  double seconds_of(const Lowered& lowered) const;
  Change change(const Lowered& before, const Lowered& after, size_t level) const;
  bool pays(const Lowered& before, const Lowered& after) const;

  const Target& target_;
  const EqualOptions& options_;
  EqualSearch& found_;
  std::optional<cost::Surroundings> around_;     // those of the given graph
  std::map<Digest, std::vector<double>> prices_; // by level
  std::optional<Lowered> lowered_;               // the graph that is the best so far
};

void EqualSearcher::price(const ScheduledKernel& kernel, const Digest& digest) {
  const auto [entry, is_new] = prices_.try_emplace(digest);
  if (!is_new) return;
  for (const Level& level : target_.levels) {
    const LevelSchedule how = optimize::schedule_kernel(kernel, level);
    const cost::KernelCost cost = cost::cost_of(kernel, how, level, *around_);
    entry->second.push_back(std::max(cost.total - cost.launch, 0.0));
  }
}

// Bodies count as if they ran once.
void EqualSearcher::add_kernels(const FusedGraph& fused, Lowered& out) {
  std::vector<Digest> digests;
  for (const ScheduledKernel& kernel : fused.kernels) {
    digests.push_back(digest_of(kernel));
    price(kernel, digests.back());
    ++out.launches[digests.back()];
  }
  for (const Chain& chain : fused.chains)
    for (size_t k = chain.first; k < chain.first + chain.count; ++k)
      out.chained.insert(digests[k]);
  for (const PackedWeight& weight : fused.packed) out.weight_bytes += weight.bytes();
  for (const FusedRegion& region : fused.regions)
    for (const FusedGraph& body : region.bodies) add_kernels(body, out);
}

Lowered EqualSearcher::lower(const Graph& graph) {
  ++found_.priced;
  const FusedGraph fused = fuse(graph, target_, options_.direct_only);
  if (!around_) around_ = surroundings_of(fused);
  Lowered out;
  add_kernels(fused, out);
  return out;
}

double EqualSearcher::seconds_of(const Lowered& lowered) const {
  double seconds = 0;
  for (const auto& [digest, count] : lowered.launches)
    seconds += double(count) * prices_.at(digest).back();
  return seconds;
}

Change EqualSearcher::change(const Lowered& before, const Lowered& after,
                             size_t level) const {
  Change out;
  std::map<Digest, int64_t> more = after.launches;
  for (const auto& [digest, count] : before.launches) more[digest] -= count;
  for (const auto& [digest, count] : more)
    (count < 0 ? out.before : out.after) +=
        double(std::abs(count)) * prices_.at(digest)[level];
  return out;
}

// What other levels run is the same graph, so it is no slower there.
bool EqualSearcher::pays(const Lowered& before, const Lowered& after) const {
  for (const auto& [digest, count] : before.launches) {
    const auto left = after.launches.find(digest);
    const bool gone = left == after.launches.end() || left->second < count;
    if (gone && before.chained.contains(digest)) return false;
  }
  if (after.weight_bytes > before.weight_bytes) return false;
  for (size_t level = 0; level + 1 < target_.levels.size(); ++level) {
    const Change c = change(before, after, level);
    if (c.after > c.before) return false;
  }
  const Change c = change(before, after, target_.levels.size() - 1);
  const double gain = c.before - c.after;
  return gain > 0 && gain >= options_.least_gain * c.before &&
         gain >= options_.least_share * seconds_of(before) &&
         gain >= options_.least_seconds;
}

// Whether `now` became another graph.
bool EqualSearcher::ask(egraph::Aim aim, Graph& now) {
  egraph::AlternativeOptions how;
  how.keep_rounding = options_.keep_rounding;
  egraph::Alternatives all = egraph::alternatives(now, aim, target_.machine(), how);
  AskedAim asked;
  asked.aim = aim;
  asked.stop = all.saturation.stop;
  asked.iterations = all.saturation.iterations;
  asked.nodes = all.saturation.nodes;
  asked.classes = all.saturation.classes;
  const size_t level = target_.levels.size() - 1;
  std::optional<size_t> best;
  std::optional<Lowered> best_lowered;
  for (size_t i = 0; i < all.graphs.size(); ++i) {
    if (!lowered_ && !spent()) {
      lowered_ = lower(now);
      found_.before = seconds_of(*lowered_);
    }
    if (spent()) {
      found_.end = EqualSearch::End::Budget;
      break;
    }
    Lowered lowered = lower(all.graphs[i].graph);
    ++asked.priced;
    const Change c = change(*lowered_, lowered, level);
    const bool paying = pays(*lowered_, lowered);
    const bool first = asked.priced == 1;
    const bool more = c.before - c.after > asked.before - asked.after;
    if ((paying && (!best || more)) || (!best && (first || more))) {
      asked.before = c.before, asked.after = c.after;
      asked.places = all.graphs[i].places;
    }
    if (paying && (!best || more)) best = i, best_lowered = std::move(lowered);
  }
  asked.taken = best.has_value();
  found_.aims.push_back(asked);
  if (!best) return false;
  now = std::move(all.graphs[*best].graph);
  lowered_ = std::move(best_lowered);
  return true;
}

Graph EqualSearcher::run(const Graph& graph) {
  found_ = {};
  if (options_.budget == 0) return graph;
  found_.end = EqualSearch::End::Done;
  Graph now = graph;
  for (egraph::Aim aim : egraph::kAims) {
    // A kind of places at a time; extraction has one answer.
    while (ask(aim, now) && (aim == egraph::Aim::Join || aim == egraph::Aim::Split)) {
    }
  }
  if (lowered_) found_.after = seconds_of(*lowered_);
  return now;
}

} // namespace

Graph search_equal(const Graph& graph, const Target& target, const EqualOptions& options,
                   EqualSearch& found) {
  return EqualSearcher(target, options, found).run(graph);
}

} // namespace svod
