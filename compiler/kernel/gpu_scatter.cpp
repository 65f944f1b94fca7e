// The element that an update goes to is a sum of terms: axes times their strides, and
// what the data say times another stride. Ordered by their strides the terms are digits
// of a number. Where all larger strides are multiples of more than what the smaller terms
// add up to, equal sums have equal digits on both sides of that border; an axis with such
// a border below and above is a digit of its own, and elements tell its positions apart.
#include "compiler/kernel/gpu_scatter.h"

#include "compiler/kernel/dependence.h"
#include "compiler/kernel/stage_work.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace svod {

const Stage* whole_scatter(const Kernel& k) {
  return k.stages.size() == 1 && k.stages[0].kind == StageKind::Scatter ? &k.stages[0]
                                                                        : nullptr;
}

std::vector<AxisId> axes_apart(const Kernel& k) {
  const Stage& s = *whole_scatter(k);
  std::vector<std::pair<TermId, int64_t>> digits = s.index.terms;
  std::ranges::sort(digits, {}, [](const auto& d) { return std::abs(d.second); });
  // What all from each digit on are multiples of.
  std::vector<int64_t> unit(digits.size() + 1, 0);
  for (size_t i = digits.size(); i-- > 0;)
    unit[i] = std::gcd(unit[i + 1], std::abs(digits[i].second));
  std::vector<AxisId> out;
  int64_t below = 0; // the most that the smaller digits differ by
  for (size_t i = 0; i < digits.size(); ++i) {
    const auto [id, stride] = digits[i];
    const Term& t = k.indices.term(id);
    const int64_t up_to_it = below + std::abs(stride) * (t.high - t.low);
    const bool digit =
        unit[i] > below && (i + 1 == digits.size() || unit[i + 1] > up_to_it);
    int64_t coefficient = 0;
    if (digit && t.kind == Term::Kind::Axis &&
        k.indices.affine_in(s.index, t.id, coefficient))
      out.push_back(t.id);
    below = up_to_it;
  }
  return out;
}

ScatterTarget scatter_target(const Kernel& k, const std::vector<AxisId>& apart) {
  ScatterTarget out;
  const Index& index = whole_scatter(k)->index;
  out.base.constant = index.constant;
  int64_t stride = 0;
  for (const auto& term : index.terms) {
    const Term& t = k.indices.term(term.first);
    const bool own = t.kind == Term::Kind::Axis && contains(apart, t.id);
    (own ? out.base : out.place).terms.push_back(term);
    if (!own) stride = std::gcd(stride, std::abs(term.second));
  }
  out.stride = std::max<int64_t>(stride, 1);
  for (auto& [term, coefficient] : out.place.terms) coefficient /= out.stride;
  const Range range = k.indices.range(out.place);
  out.places = range.high - range.low + 1;
  return out;
}

std::vector<AxisId> axes_taken_apart(const GpuSchedule& s) {
  std::vector<AxisId> out = s.positions;
  out.insert(out.end(), s.scatter.slices.begin(), s.scatter.slices.end());
  return out;
}

std::vector<AxisId> axes_in_order(const ScheduledKernel& k, const GpuSchedule& s) {
  const std::vector<AxisId> apart = axes_taken_apart(s);
  std::vector<AxisId> out = k.inner(*whole_scatter(k));
  std::erase_if(out, [&](AxisId a) { return contains(apart, a); });
  return out;
}

bool place_depends_on(const Kernel& k, AxisId axis) {
  const Dependence dependence = dependence_of(k);
  std::vector<ExprId> data;
  k.indices.collect_dynamic(whole_scatter(k)->index, data);
  return std::ranges::any_of(data, [&](ExprId e) { return dependence[e][axis]; });
}

std::string scatter_misfit(const ScheduledKernel& k, const GpuSchedule& s) {
  if (whole_scatter(k) == nullptr) return "a scatter's threads where there is none";
  const ScatterShare& share = s.scatter;
  const std::vector<AxisId> taken = axes_taken_apart(s), apart = axes_apart(k);
  for (size_t i = 0; i < taken.size(); ++i)
    if (!contains(apart, taken[i]) || std::ranges::count(taken, taken[i]) != 1)
      return "threads side by side along an axis whose updates may meet in an element";
  if (share.owners == 0)
    return share.slices.empty() && share.beside == 1
               ? ""
               : "slices of a scatter whose threads have a position each";
  const auto is_power = [](int n) { return n >= 1 && (n & (n - 1)) == 0; };
  if (!is_power(share.owners) || !is_power(share.beside) || !is_power(s.threads) ||
      share.beside > s.threads || s.threads > kScatterTile)
    return "owners of elements that are no power of two";
  if (share.beside > 1 && positions_along(k, share.slices) == 1)
    return "several threads that own the same element";
  if (std::ranges::any_of(share.slices, [&](AxisId a) { return place_depends_on(k, a); }))
    return "slices whose elements go to places of their own";
  return "";
}

} // namespace svod
