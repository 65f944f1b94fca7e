// Two choices belong to one region when some kernel touches both values: of the rules'
// cut, or of the one in which nothing is stored that need not be, which has the largest
// kernels. Regions are searched one after the other, those that take longest first, each
// among the choices already made for the others.
//
// Few choices: branch and bound. The cut decides readers before what they read, so once
// the upper choices are made, kernels that touch no lower one are final, and their sum is
// a bound for all that follow. Many: beam search, a choice more at each step. Layers of a
// network repeat: a region with the programs of an earlier one is cut as that one was.
#include "compiler/select/search_cut.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace svod::select {

namespace {

// 63 cuts at most where all of a region's choices are weighed against each other.
constexpr size_t kMostExact = 6;
constexpr size_t kBeam = 3;
// One large region leaves candidates for others.
constexpr size_t kMostOfRegion = 64;

constexpr double kNever = std::numeric_limits<double>::infinity();

struct Priced {
  CutDecisions decisions;
  std::vector<uint32_t> kernels;
  double seconds = kNever;
};

using Region = std::vector<CutChoice>; // highest node first
// Its programs in the two cuts that made it, and which of its choices each of them meets.
using Pattern = std::vector<uint32_t>;

double seconds_of(const std::vector<uint32_t>& kernels, const CutPricer& pricer) {
  double seconds = 0;
  for (uint32_t k : kernels) seconds += pricer.kernel(k).seconds;
  return seconds;
}

class Search {
public:
  Search(const std::vector<CutChoice>& choices, CutPricer& pricer,
         const CutSearchOptions& options)
      : choices_(choices), pricer_(pricer), options_(options) {}
  SearchedCut run();

private:
  const Priced& price(const CutDecisions& decisions);
  double least_seconds() const {
    return std::max(options_.least_share * search_.before, options_.least_seconds);
  }
  bool spent() const {
    return search_.candidates >= options_.budget || of_region_ >= kMostOfRegion;
  }
  std::vector<Region> find_regions();
  void join_choices(const Priced& cut, std::vector<size_t>& region_of) const;
  double seconds_touching(const Region& region) const;
  void add_pattern(const Region& region, const Priced& cut, Pattern& pattern) const;
  void search_region(const Region& region);
  void choose(const Region& region, const CutDecisions& base);
  void branch(const Region& region, size_t from, const CutDecisions& decisions);
  void beam(const Region& region);
  void try_cut(const Priced& cut);
  double bound(const Priced& cut, const Region& region, size_t undecided) const;
  CutSearch::Taken change(const Priced& before, const Priced& after) const;
  bool pays(const Priced& before, const Priced& after) const;
  CutSearch::Gate ask_gate(const Priced& before, const Priced& after) const;
  void drop_idle_changes(const Region& region, const CutDecisions& base);

  const std::vector<CutChoice>& choices_;
  CutPricer& pricer_;
  const CutSearchOptions& options_;
  std::map<CutDecisions, Priced> priced_;
  CutDecisions nothing_stored_;
  std::map<Pattern, std::vector<size_t>> changes_; // numbers of choices in their region
  Priced best_;
  size_t of_region_ = 0; // candidates
  CutSearch search_;
};

CutDecisions flipped(CutDecisions decisions, const CutChoice& choice) {
  std::set<NodeId>& nodes = choice.stored ? decisions.inlined : decisions.stored;
  if (nodes.erase(choice.node) == 0) nodes.insert(choice.node);
  return decisions;
}

bool is_flipped(const CutDecisions& decisions, const CutChoice& choice) {
  return (choice.stored ? decisions.inlined : decisions.stored).count(choice.node) != 0;
}

const Priced& Search::price(const CutDecisions& decisions) {
  const auto [entry, is_new] = priced_.try_emplace(decisions);
  Priced& cut = entry->second;
  if (!is_new) return cut;
  cut.decisions = decisions;
  if (!decisions.empty()) ++search_.candidates, ++of_region_;
  auto kernels = pricer_.price(decisions);
  if (!kernels) return cut;
  cut.seconds = seconds_of(*kernels, pricer_);
  cut.kernels = std::move(*kernels);
  return cut;
}

// `region_of`: by choice, the lowest number of a choice that it belongs together with.
void Search::join_choices(const Priced& cut, std::vector<size_t>& region_of) const {
  std::map<NodeId, size_t> number;
  for (size_t i = 0; i < choices_.size(); ++i) number[choices_[i].node] = i;
  for (uint32_t k : cut.kernels) {
    std::optional<size_t> first;
    for (NodeId n : pricer_.kernel(k).touched) {
      const auto found = number.find(n);
      if (found == number.end()) continue;
      if (!first) first = found->second;
      const size_t a = region_of[*first], b = region_of[found->second];
      std::ranges::replace(region_of, std::max(a, b), std::min(a, b));
    }
  }
}

double Search::seconds_touching(const Region& region) const {
  double seconds = 0;
  for (uint32_t k : best_.kernels) {
    const CutKernelPrice& kernel = pricer_.kernel(k);
    if (std::ranges::any_of(region, [&](const CutChoice& c) {
          return std::ranges::binary_search(kernel.touched, c.node);
        }))
      seconds += kernel.seconds;
  }
  return seconds;
}

std::vector<Region> Search::find_regions() {
  for (const CutChoice& c : choices_)
    if (c.stored) nothing_stored_.inlined.insert(c.node);
  std::vector<size_t> region_of(choices_.size());
  std::iota(region_of.begin(), region_of.end(), size_t{0});
  join_choices(best_, region_of);
  join_choices(price(nothing_stored_), region_of);
  std::map<size_t, Region> regions;
  for (size_t i = 0; i < choices_.size(); ++i)
    regions[region_of[i]].push_back(choices_[i]);
  std::vector<std::pair<double, Region>> by_time;
  for (auto& [first, region] : regions)
    by_time.emplace_back(seconds_touching(region), std::move(region));
  std::ranges::stable_sort(by_time, std::ranges::greater{},
                           &std::pair<double, Region>::first);
  std::vector<Region> out;
  for (auto& [seconds, region] : by_time) out.push_back(std::move(region));
  return out;
}

// Of the kernels that no choice from `undecided` on changes any more.
double Search::bound(const Priced& cut, const Region& region, size_t undecided) const {
  double seconds = 0;
  for (uint32_t k : cut.kernels) {
    const CutKernelPrice& kernel = pricer_.kernel(k);
    const bool open =
        std::any_of(region.begin() + std::ptrdiff_t(undecided), region.end(),
                    [&](const CutChoice& c) {
                      return std::ranges::binary_search(kernel.touched, c.node);
                    });
    if (!open) seconds += kernel.seconds;
  }
  return seconds;
}

CutSearch::Taken Search::change(const Priced& before, const Priced& after) const {
  CutSearch::Taken out;
  std::vector<uint32_t> gone, come;
  std::ranges::set_difference(before.kernels, after.kernels, std::back_inserter(gone));
  std::ranges::set_difference(after.kernels, before.kernels, std::back_inserter(come));
  for (uint32_t k : gone) out.before += pricer_.kernel(k).seconds;
  for (uint32_t k : come) out.after += pricer_.kernel(k).seconds;
  return out;
}

bool Search::pays(const Priced& before, const Priced& after) const {
  if (after.seconds == kNever) return false;
  const CutSearch::Taken c = change(before, after);
  return c.after < c.before && c.before - c.after >= options_.least_gain * c.before &&
         c.before - c.after >= least_seconds();
}

void Search::try_cut(const Priced& cut) {
  if (cut.seconds == kNever) return;
  const CutSearch::Taken c = change(best_, cut);
  if (c.after < c.before) best_ = cut;
}

void Search::branch(const Region& region, size_t from, const CutDecisions& decisions) {
  for (size_t i = from; i < region.size() && !spent(); ++i) {
    const Priced& cut = price(flipped(decisions, region[i]));
    try_cut(cut);
    if (cut.seconds == kNever || bound(cut, region, i + 1) < best_.seconds)
      branch(region, i + 1, cut.decisions);
  }
}

void Search::beam(const Region& region) {
  std::vector<CutDecisions> now = {best_.decisions};
  double best = kNever;
  while (best_.seconds < best && !spent()) {
    best = best_.seconds;
    std::set<CutDecisions> next;
    for (const CutDecisions& decisions : now)
      for (const CutChoice& c : region)
        if (!spent()) next.insert(price(flipped(decisions, c)).decisions);
    std::vector<const Priced*> cuts;
    for (const CutDecisions& decisions : next) cuts.push_back(&priced_.at(decisions));
    std::ranges::stable_sort(cuts, {}, &Priced::seconds);
    cuts.resize(std::min(cuts.size(), kBeam));
    now.clear();
    for (const Priced* cut : cuts) try_cut(*cut), now.push_back(cut->decisions);
  }
}

// Changes that save too little of what their own kernels take go, one by one.
void Search::drop_idle_changes(const Region& region, const CutDecisions& base) {
  for (bool dropped = true; dropped;) {
    dropped = false;
    for (const CutChoice& c : region) {
      if (is_flipped(best_.decisions, c) == is_flipped(base, c)) continue;
      const Priced& without = price(flipped(best_.decisions, c));
      if (without.seconds == kNever || pays(without, best_)) continue;
      best_ = without;
      dropped = true;
    }
  }
}

void Search::add_pattern(const Region& region, const Priced& cut,
                         Pattern& pattern) const {
  std::map<std::pair<NodeId, uint32_t>, Pattern> kernels; // by their highest node
  for (uint32_t k : cut.kernels) {
    const CutKernelPrice& kernel = pricer_.kernel(k);
    Pattern met = {kernel.program};
    for (size_t i = 0; i < region.size(); ++i)
      if (std::ranges::binary_search(kernel.touched, region[i].node))
        met.push_back(static_cast<uint32_t>(i));
    if (met.size() > 1) kernels[{kernel.touched.back(), k}] = std::move(met);
  }
  for (const auto& [node, met] : kernels) {
    pattern.push_back(static_cast<uint32_t>(met.size()));
    pattern.insert(pattern.end(), met.begin(), met.end());
  }
}

void Search::choose(const Region& region, const CutDecisions& base) {
  Pattern pattern;
  for (const CutChoice& c : region) pattern.push_back(c.stored);
  for (const CutDecisions& cut : {CutDecisions(), nothing_stored_})
    add_pattern(region, price(cut), pattern);
  if (const auto known = changes_.find(pattern); known != changes_.end()) {
    CutDecisions decisions = base;
    for (size_t i : known->second) decisions = flipped(std::move(decisions), region[i]);
    return try_cut(price(decisions));
  }
  if (region.size() <= kMostExact)
    branch(region, 0, base);
  else
    beam(region);
  drop_idle_changes(region, base);
  std::vector<size_t>& changes = changes_[pattern];
  for (size_t i = 0; i < region.size(); ++i)
    if (is_flipped(best_.decisions, region[i])) changes.push_back(i);
}

CutSearch::Gate Search::ask_gate(const Priced& before, const Priced& after) const {
  std::vector<uint32_t> gone, come;
  std::ranges::set_difference(before.kernels, after.kernels, std::back_inserter(gone));
  std::ranges::set_difference(after.kernels, before.kernels, std::back_inserter(come));
  IoProfile apart, fused;
  for (uint32_t k : gone) apart += pricer_.kernel(k).io;
  for (uint32_t k : come) fused += pricer_.kernel(k).io;
  return options_.gate(apart, fused);
}

void Search::search_region(const Region& region) {
  of_region_ = 0;
  const Priced base = best_;
  choose(region, base.decisions);
  if (best_.decisions == base.decisions) return;
  if (!pays(base, best_)) {
    best_ = base;
    return;
  }
  CutSearch::Taken taken = change(base, best_);
  for (const CutChoice& c : region)
    if (is_flipped(best_.decisions, c))
      (c.stored ? taken.inlined : taken.stored).push_back(c.node);
  if (options_.gate) taken.gate = ask_gate(base, best_);
  if (taken.gate && !taken.gate->agrees && !taken.inlined.empty()) {
    best_ = base;
    ++search_.refused;
    return;
  }
  search_.taken.push_back(std::move(taken));
}

SearchedCut Search::run() {
  search_.end = CutSearch::End::Done;
  search_.choices = choices_.size();
  best_ = price({});
  search_.before = search_.after = best_.seconds;
  if (choices_.empty() || best_.seconds == kNever) return {{}, search_};
  const std::vector<Region> regions = find_regions();
  search_.regions = regions.size();
  for (const Region& region : regions) {
    if (seconds_touching(region) < least_seconds()) continue;
    if (search_.candidates >= options_.budget) search_.end = CutSearch::End::Budget;
    if (search_.end == CutSearch::End::Budget) break;
    search_region(region);
  }
  if (search_.candidates >= options_.budget) search_.end = CutSearch::End::Budget;
  search_.after = best_.seconds;
  return {best_.decisions, search_};
}

} // namespace

SearchedCut search_cut(const std::vector<CutChoice>& choices, CutPricer& pricer,
                       const CutSearchOptions& options) {
  return Search(choices, pricer, options).run();
}

std::optional<double> seconds_of(const CutDecisions& decisions, CutPricer& pricer) {
  const auto kernels = pricer.price(decisions);
  if (!kernels) return std::nullopt;
  return seconds_of(*kernels, pricer);
}

} // namespace svod::select
