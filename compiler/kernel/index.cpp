// Normalisation rules: with L = c*Q + R, where R collects the terms whose coefficient c
// does not divide, and 0 <= R < c:  L / c = Q  and  L mod c = R. Where that fails, R
// takes what is left of the nearest multiples:  391 i + j  by 392 is  i  and  j - i,
// which shifts each row of an attention's scores by one more. One of the multiples may be
// the second nearest:  768 + 384 i + j  by 1152, with i of {0, 1} and j < 384, is  i  and
// 768 - 768 i + j,  as where heads lie on both sides of a cut. Everything else stays a
// term.
#include "compiler/kernel/index.h"

#include "compiler/support/check.h"
#include "compiler/support/divide.h"

#include <algorithm>
#include <numeric>

namespace svod {

AxisId IndexPool::add_axis(int64_t extent) {
  extents_.push_back(extent);
  return static_cast<AxisId>(extents_.size() - 1);
}

TermId IndexPool::intern(Term term) {
  auto found = std::find(terms_.begin(), terms_.end(), term);
  if (found != terms_.end()) return static_cast<TermId>(found - terms_.begin());
  terms_.push_back(std::move(term));
  return static_cast<TermId>(terms_.size() - 1);
}

void IndexPool::limit(const Index& position, int64_t extent) {
  const bool known = std::ranges::any_of(
      limits_, [&](const Limit& l) { return l.position == position; });
  if (!known) limits_.push_back({position, extent});
}

Index IndexPool::axis(AxisId axis) {
  if (extents_[axis] <= 1) return {};
  Term term{Term::Kind::Axis, axis, 0, {}, 0, extents_[axis] - 1};
  return {0, {{intern(std::move(term)), 1}}};
}

Index IndexPool::dynamic(ExprId expr, int64_t extent) {
  Term term{Term::Kind::Dynamic, expr, 0, {}, 0, std::max<int64_t>(extent - 1, 0)};
  return {0, {{intern(std::move(term)), 1}}};
}

Index IndexPool::add(const Index& a, const Index& b) {
  Index sum{a.constant + b.constant, {}};
  size_t i = 0, j = 0;
  while (i < a.terms.size() || j < b.terms.size()) {
    bool only_a = j == b.terms.size() ||
                  (i < a.terms.size() && a.terms[i].first < b.terms[j].first);
    bool only_b = i == a.terms.size() ||
                  (j < b.terms.size() && b.terms[j].first < a.terms[i].first);
    if (only_a) {
      sum.terms.push_back(a.terms[i++]);
    } else if (only_b) {
      sum.terms.push_back(b.terms[j++]);
    } else {
      int64_t coefficient = a.terms[i].second + b.terms[j].second;
      if (coefficient != 0) sum.terms.emplace_back(a.terms[i].first, coefficient);
      ++i, ++j;
    }
  }
  return sum;
}

Index IndexPool::scale(const Index& a, int64_t factor) {
  if (factor == 0) return {};
  Index out = a;
  out.constant *= factor;
  for (auto& [term, coefficient] : out.terms) coefficient *= factor;
  return out;
}

Range IndexPool::range(const Index& a) const {
  Range out{a.constant, a.constant};
  for (auto [id, coefficient] : a.terms) {
    const Term& t = terms_[id];
    out.low += coefficient * (coefficient > 0 ? t.low : t.high);
    out.high += coefficient * (coefficient > 0 ? t.high : t.low);
  }
  return out;
}

Range IndexPool::range(const Index& a, const std::vector<Range>& narrowed) const {
  Range out{a.constant, a.constant};
  for (auto [id, coefficient] : a.terms) {
    const Term& t = terms_[id];
    Range r{t.low, t.high};
    if (t.kind == Term::Kind::Axis && t.id < narrowed.size()) r = narrowed[t.id];
    if (t.kind == Term::Kind::Div) {
      Range of = range(t.of, narrowed);
      r = {floor_div(of.low, t.divisor), floor_div(of.high, t.divisor)};
    }
    out.low += coefficient * (coefficient > 0 ? r.low : r.high);
    out.high += coefficient * (coefficient > 0 ? r.high : r.low);
  }
  return out;
}

static int64_t coefficient_of(const Index& a, TermId term) {
  for (auto [id, coefficient] : a.terms)
    if (id == term) return coefficient;
  return 0;
}

// Of the positions that mean something.
Range IndexPool::meant_range(const Index& a) const {
  Range out = range(a);
  for (const Limit& limit : limits_) {
    auto [first, unit] = limit.position.terms.front();
    const int64_t times = coefficient_of(a, first) / unit;
    const bool whole =
        times != 0 && std::ranges::all_of(limit.position.terms, [&](const auto& term) {
          return coefficient_of(a, term.first) == times * term.second;
        });
    if (!whole) continue;
    const int64_t beyond = range(limit.position).high - (limit.extent - 1);
    (times > 0 ? out.high : out.low) -= times * beyond;
  }
  return out;
}

Index IndexPool::recombine(Index a) {
  for (size_t j = 0; j < a.terms.size(); ++j) {
    const Term mod = terms_[a.terms[j].first];
    if (mod.kind != Term::Kind::Mod) continue;
    // Written by div, as the quotient was: (x / 8) / 8 is x / 64.
    const Index quotient = div(mod.of, mod.divisor);
    if (quotient.constant != 0 || quotient.terms.size() != 1) continue;
    auto [term, once] = quotient.terms[0];
    int64_t factor = a.terms[j].second;
    for (size_t i = 0; i < a.terms.size(); ++i) {
      if (i == j || a.terms[i].first != term) continue;
      if (a.terms[i].second != once * factor * mod.divisor) continue;
      Index rest{a.constant, {}};
      for (size_t k = 0; k < a.terms.size(); ++k)
        if (k != i && k != j) rest.terms.push_back(a.terms[k]);
      return recombine(add(rest, scale(mod.of, factor)));
    }
  }
  return a;
}

// Splits a into divisor * quotient + rest; the constant is split so that rest's is in [0,
// c).
static void split_by(const Index& a, int64_t divisor, Index& quotient, Index& rest) {
  quotient.constant = floor_div(a.constant, divisor);
  rest.constant = a.constant - quotient.constant * divisor;
  for (auto [term, coefficient] : a.terms) {
    if (coefficient % divisor == 0)
      quotient.terms.emplace_back(term, coefficient / divisor);
    else
      rest.terms.emplace_back(term, coefficient);
  }
}

// The same with rests as near to zero as they can be, and of one term, `beyond`, on the
// other side of it.
static void split_nearest_by(const Index& a, int64_t divisor, size_t beyond,
                             Index& quotient, Index& rest) {
  quotient = {}, rest = {a.constant, {}};
  for (size_t i = 0; i < a.terms.size(); ++i) {
    const auto [term, coefficient] = a.terms[i];
    int64_t times = floor_div(coefficient + divisor / 2, divisor);
    if (i == beyond) times += coefficient >= times * divisor ? 1 : -1;
    if (times != 0) quotient.terms.emplace_back(term, times);
    if (coefficient != times * divisor)
      rest.terms.emplace_back(term, coefficient - times * divisor);
  }
}

// Such a split where all rests lie in [0, c).
std::optional<std::pair<Index, Index>> IndexPool::split_nearest(const Index& a,
                                                                int64_t divisor) const {
  for (size_t beyond = a.terms.size() + 1; beyond-- > 0;) {
    Index quotient, rest;
    split_nearest_by(a, divisor, beyond, quotient, rest);
    const Range r = meant_range(rest);
    const int64_t base = floor_div(r.low, divisor);
    if (base != floor_div(r.high, divisor)) continue;
    quotient.constant = base;
    rest.constant -= base * divisor;
    return std::pair(std::move(quotient), std::move(rest));
  }
  return std::nullopt;
}

// (g*x + k) by (g*d), 0 <= k < g: g divides every coefficient of rest and the divisor.
static int64_t common_factor(const Index& rest, int64_t divisor) {
  int64_t common = divisor;
  for (auto [term, coefficient] : rest.terms) common = std::gcd(common, coefficient);
  return common;
}

static Index divide_coefficients(const Index& a, int64_t factor) {
  Index out{floor_div(a.constant, factor), {}};
  for (auto [term, coefficient] : a.terms)
    out.terms.emplace_back(term, coefficient / factor);
  return out;
}

Index IndexPool::div(const Index& a, int64_t divisor) {
  SVOD_CHECK(divisor > 0) << "index division by " << divisor;
  if (divisor == 1) return a;
  Index quotient, rest;
  split_by(a, divisor, quotient, rest);
  Range r = range(rest);
  int64_t low = floor_div(r.low, divisor), high = floor_div(r.high, divisor);
  if (low == high) {
    quotient.constant += low;
    return quotient;
  }
  if (auto nearest = split_nearest(a, divisor)) return std::move(nearest->first);
  int64_t common = common_factor(rest, divisor);
  if (common > 1)
    return add(quotient, div(divide_coefficients(rest, common), divisor / common));
  // (x / m) / d = x / (m * d)
  if (rest.terms.size() == 1 && rest.terms[0].second == 1 && rest.constant == 0) {
    const Term inner = terms_[rest.terms[0].first];
    if (inner.kind == Term::Kind::Div)
      return add(quotient, div(inner.of, inner.divisor * divisor));
  }
  Term term{Term::Kind::Div, 0, divisor, std::move(rest), low, high};
  return add(quotient, Index{0, {{intern(std::move(term)), 1}}});
}

Index IndexPool::mod(const Index& a, int64_t divisor) {
  SVOD_CHECK(divisor > 0) << "index remainder by " << divisor;
  if (divisor == 1) return {};
  Index quotient, rest;
  split_by(a, divisor, quotient, rest);
  Range r = range(rest);
  int64_t base = floor_div(r.low, divisor);
  if (base == floor_div(r.high, divisor)) {
    rest.constant -= base * divisor;
    return rest;
  }
  if (auto nearest = split_nearest(a, divisor)) return std::move(nearest->second);
  int64_t common = common_factor(rest, divisor);
  if (common > 1) {
    Index reduced = divide_coefficients(rest, common);
    int64_t left = rest.constant - reduced.constant * common;
    Index out = scale(mod(reduced, divisor / common), common);
    out.constant += left;
    return out;
  }
  Term term{Term::Kind::Mod, 0, divisor, std::move(rest), 0, divisor - 1};
  return {0, {{intern(std::move(term)), 1}}};
}

bool IndexPool::term_depends_on(const Term& term, AxisId axis) const {
  if (term.kind == Term::Kind::Axis) return term.id == axis;
  if (term.kind == Term::Kind::Dynamic) return false;
  return depends_on(term.of, axis);
}

bool IndexPool::depends_on(const Index& a, AxisId axis) const {
  for (auto [id, coefficient] : a.terms)
    if (term_depends_on(terms_[id], axis)) return true;
  return false;
}

bool IndexPool::affine_in(const Index& a, AxisId axis, int64_t& coefficient) const {
  coefficient = 0;
  for (auto [id, factor] : a.terms) {
    const Term& t = terms_[id];
    if (t.kind == Term::Kind::Axis) {
      if (t.id == axis) coefficient = factor;
    } else if (term_depends_on(t, axis)) {
      return false;
    }
  }
  return true;
}

int64_t IndexPool::coefficient(const Index& a, AxisId axis) const {
  int64_t out = 0;
  affine_in(a, axis, out);
  return out;
}

bool IndexPool::has_dynamic(const Index& a) const {
  for (auto [id, coefficient] : a.terms) {
    const Term& t = terms_[id];
    if (t.kind == Term::Kind::Dynamic) return true;
    if (t.kind != Term::Kind::Axis && has_dynamic(t.of)) return true;
  }
  return false;
}

void IndexPool::collect_axes(const Index& a, std::vector<bool>& used) const {
  used.resize(std::max(used.size(), extents_.size()));
  for (auto [id, coefficient] : a.terms) {
    const Term& t = terms_[id];
    if (t.kind == Term::Kind::Axis) used[t.id] = true;
    if (t.kind == Term::Kind::Div || t.kind == Term::Kind::Mod) collect_axes(t.of, used);
  }
}

void IndexPool::collect_dynamic(const Index& a, std::vector<ExprId>& out) const {
  for (auto [id, coefficient] : a.terms) {
    const Term& t = terms_[id];
    if (t.kind == Term::Kind::Dynamic) out.push_back(t.id);
    if (t.kind == Term::Kind::Div || t.kind == Term::Kind::Mod)
      collect_dynamic(t.of, out);
  }
}

} // namespace svod
