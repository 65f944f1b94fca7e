#include "compiler/select/size_facts.h"

#include "compiler/ir/build.h"

#include <algorithm>
#include <ranges>

namespace svod::select {

std::optional<Steps> steps_along(const IndexPool& pool, const Position& position) {
  if (position.empty()) return std::nullopt;
  const auto widest =
      std::ranges::max_element(position, {}, &std::pair<AxisId, int64_t>::second);
  int64_t others = 0;
  for (const auto& [axis, factor] : position)
    if (axis != widest->first) others += factor * (pool.extent(axis) - 1);
  if (others >= widest->second) return std::nullopt;
  return Steps{widest->first, widest->second};
}

// Where an index lies along the dimension of that stride and extent; nullopt where its
// axes are not each inside of it, along it, or around it. The last step of an axis of
// blocks may reach beyond the extent, and the last vector beyond the stride, where
// conditions let nobody read or write.
static std::optional<Position> position_along(const IndexPool& pool, const Index& index,
                                              int64_t stride, int64_t extent) {
  Position out, inside;
  if (index.constant < 0 || index.constant / stride % extent != 0) return std::nullopt;
  for (const auto& [id, factor] : index.terms) {
    const Term& t = pool.term(id);
    if (t.kind != Term::Kind::Axis || factor < 0) return std::nullopt;
    if (factor % (stride * extent) == 0) continue;
    if (factor < stride)
      inside.emplace_back(t.id, factor);
    else if (factor % stride == 0)
      out.emplace_back(t.id, factor / stride);
    else
      return std::nullopt;
  }
  std::ranges::sort(out);
  std::ranges::sort(inside, std::greater(), &std::pair<AxisId, int64_t>::second);
  int64_t last_vector = index.constant % stride;
  for (size_t i = 0; i + 1 < inside.size(); ++i)
    last_vector += inside[i].second * (pool.extent(inside[i].first) - 1);
  const std::optional<Steps> steps = steps_along(pool, out);
  if (last_vector >= stride || !steps ||
      (pool.extent(steps->axis) - 1) * steps->each >= extent)
    return std::nullopt;
  return out;
}

// The stride and extent of the dimension along which an index lies at the position, in
// memory of so many elements: it ends where the next one that the index has begins.
static std::optional<std::pair<int64_t, int64_t>> dimension_of(const IndexPool& pool,
                                                               const Index& index,
                                                               const Position& position,
                                                               int64_t elements) {
  const auto [axis, factor] = position.front();
  const int64_t whole = pool.coefficient(index, axis);
  if (whole <= 0 || whole % factor != 0) return std::nullopt;
  const int64_t stride = whole / factor,
                widest = std::ranges::max(position | std::views::values) * stride;
  int64_t end = elements / stride * stride;
  for (const auto& [id, of_term] : index.terms)
    if (of_term > widest) end = std::min(end, of_term);
  if (end % stride != 0 || position_along(pool, index, stride, end / stride) != position)
    return std::nullopt;
  return std::pair(stride, end / stride);
}

Facts facts_in(const ScheduledKernel& k, const Index& index,
               const std::optional<Parts>& parts) {
  Facts out;
  for (const Part& p : parts ? *parts : Parts())
    if (const auto position = position_along(k.indices, index, p.stride, p.extent))
      out.insert({*position, p.size});
  return out;
}

bool is_plain(const ScheduledKernel& k) {
  return !k.stages.empty() && !k.call() && !k.sequence() &&
         std::ranges::all_of(k.stages, [](const Stage& s) {
           return s.kind == StageKind::Store || s.kind == StageKind::Reduce;
         });
}

SizeFacts::SizeFacts(const FusedGraph& fused)
    : f_(fused), masks_(fused.buffers.size()), zeros_(fused.buffers.size()),
      places_(fused.buffers.size()) {
  for (const FusedRegion& region : fused.regions)
    for (const BufferId id : region.results)
      if (id != kNoBuffer) forget(id);
  for (BufferId id = 0; id < fused.buffers.size(); ++id)
    if (fused.buffers[id].input >= 0) forget(id);
}

Size SizeFacts::origin_of(const Size& size) const {
  const auto copy = copies_.find(size);
  return copy == copies_.end() ? size : copy->second;
}

std::optional<Size> SizeFacts::size_of(const ScheduledKernel& k, ExprId id) const {
  const Expr& e = k.exprs[id];
  if (e.kind != Expr::Kind::Load || e.dtype != DType::I64 || !e.index.is_constant() ||
      !e.bounds.empty() || k.arguments[e.argument].kind != Argument::Kind::Buffer)
    return std::nullopt;
  return origin_of({k.arguments[e.argument].id, e.index.constant});
}

Facts SizeFacts::where_true(const ScheduledKernel& k, ExprId condition) const {
  const Expr& e = k.exprs[condition];
  Facts out;
  if (e.kind == Expr::Kind::Map && e.op == Op::And) {
    out = where_true(k, e.inputs[0]);
    out.merge(where_true(k, e.inputs[1]));
  } else if (e.kind == Expr::Kind::Map && e.op == Op::Less) {
    const Expr& left = k.exprs[e.inputs[0]];
    const std::optional<Size> size = size_of(k, e.inputs[1]);
    if (left.kind != Expr::Kind::Position || !size) return out;
    const int64_t extent = k.indices.range(left.index).high + 1;
    if (const auto position = position_along(k.indices, left.index, 1, extent))
      out.insert({*position, *size});
  } else if (e.kind == Expr::Kind::Load && (e.bounds.empty() || e.bits == 0) &&
             k.arguments[e.argument].kind == Argument::Kind::Buffer) {
    out = facts_in(k, e.index, masks_[k.arguments[e.argument].id]);
  }
  return out;
}

// The sizes that a place in memory is made of: the sum of terms that each are below one,
// as a remainder by it is, or what is compared with it before it is taken. A condition
// that fails gives the first place, or one that no memory has.
std::vector<Bounded> SizeFacts::bounded_terms(const ScheduledKernel& k, ExprId id,
                                              int64_t factor) const {
  constexpr int64_t kNoPlace = int64_t{1} << 40;
  const Expr& e = k.exprs[id];
  const auto constant = [&](ExprId of) -> std::optional<int64_t> {
    const Expr& c = k.exprs[of];
    if (c.kind != Expr::Kind::Constant || c.dtype != DType::I64) return std::nullopt;
    return static_cast<int64_t>(c.bits);
  };
  if (e.kind == Expr::Kind::Checked) return bounded_terms(k, e.inputs[0], factor);
  if (e.kind == Expr::Kind::Load && e.bounds.empty() &&
      k.arguments[e.argument].kind == Argument::Kind::Buffer) {
    const auto& places = places_[k.arguments[e.argument].id];
    std::vector<Bounded> out = places ? *places : std::vector<Bounded>();
    for (Bounded& term : out) term.factor *= factor;
    return out;
  }
  if (e.kind != Expr::Kind::Map) return {};
  if (e.op == Op::Mod)
    if (const auto size = size_of(k, e.inputs[1])) return {{factor, *size}};
  if (e.op == Op::Mul)
    if (const auto by = constant(e.inputs[1]); by && *by > 0)
      return bounded_terms(k, e.inputs[0], factor * *by);
  if (e.op == Op::Add) {
    std::vector<Bounded> out = bounded_terms(k, e.inputs[0], factor),
                         more = bounded_terms(k, e.inputs[1], factor);
    if (out.empty() || more.empty()) return {};
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
  if (e.op != Op::Select) return {};
  const auto otherwise = constant(e.inputs[2]);
  if (!otherwise || (*otherwise != 0 && *otherwise < kNoPlace)) return {};
  const Expr& condition = k.exprs[e.inputs[0]];
  if (condition.kind == Expr::Kind::Map && condition.op == Op::Less &&
      condition.inputs[0] == e.inputs[1])
    if (const auto size = size_of(k, condition.inputs[1])) return {{factor, *size}};
  return bounded_terms(k, e.inputs[1], factor);
}

// The parts of a buffer that an index reaches which data gives: one for each term of a
// place along a dimension that is several.
Parts SizeFacts::parts_of_place(const ScheduledKernel& k, const Index& index) const {
  const auto dynamic = std::ranges::find_if(index.terms, [&](const auto& t) {
    return k.indices.term(t.first).kind == Term::Kind::Dynamic;
  });
  if (dynamic == index.terms.end()) return {};
  const Term& place = k.indices.term(dynamic->first);
  const int64_t stride = dynamic->second, limit = place.high + 1;
  Index others = index;
  others.terms.erase(others.terms.begin() + (dynamic - index.terms.begin()));
  if (stride <= 0 || k.indices.has_dynamic(others)) return {};
  const Range inside = k.indices.range(others);
  if (inside.low < 0 || inside.high >= stride) return {};
  std::vector<Bounded> terms = bounded_terms(k, place.id, 1);
  std::ranges::sort(terms);
  Parts out;
  for (size_t i = 0; i < terms.size(); ++i) {
    const int64_t next = i + 1 < terms.size() ? terms[i + 1].factor : limit;
    if ((i == 0 && terms[i].factor != 1) || next % terms[i].factor != 0 ||
        next == terms[i].factor)
      return {};
    out.insert({stride * terms[i].factor, next / terms[i].factor, terms[i].size});
  }
  return out;
}

Parts SizeFacts::parts_below(const ScheduledKernel& k, uint32_t argument,
                             const Index& index, const Facts& facts) const {
  const Buffer& buffer = f_.buffers[k.arguments[argument].id];
  Parts out = parts_of_place(k, index);
  for (const Below& b : facts)
    if (const auto dimension = dimension_of(k.indices, index, b.position,
                                            physical_count(buffer.layout, buffer.shape)))
      out.insert({dimension->first, dimension->second, b.size});
  return out;
}

// Of a buffer whose values are not looked at.
void SizeFacts::forget(BufferId buffer) {
  masks_[buffer] = zeros_[buffer] = Parts();
  places_[buffer].emplace();
}

Facts SizeFacts::where_other_than_zero(const ScheduledKernel& k, const Expr& e) const {
  if (e.kind != Expr::Kind::Load || !e.bounds.empty()) return {};
  // What a reduction keeps where the result will be is no result.
  const Argument& from = k.arguments[e.argument];
  if (from.kind != Argument::Kind::Buffer || from.written) return {};
  return facts_in(k, e.index, zeros_[from.id]);
}

void SizeFacts::learn(const ScheduledKernel& k) {
  if (!is_plain(k)) {
    for (const Argument& a : k.arguments)
      if (a.kind == Argument::Kind::Buffer && a.written) forget(a.id);
    return;
  }
  for (const Stage& s : k.stages) {
    if (s.kind != StageKind::Store) continue;
    const BufferId buffer = k.arguments[s.argument].id;
    const std::optional<Size> size = size_of(k, s.value);
    const Expr& value = k.exprs[s.value];
    if (size && s.index.is_constant()) copies_[{buffer, s.index.constant}] = *size;
    if (value.kind == Expr::Kind::Constant && s.index.is_constant())
      constants_.insert({buffer, s.index.constant});
    meet(masks_[buffer], parts_below(k, s.argument, s.index, where_true(k, s.value)));
    Parts zeros;
    if (value.kind == Expr::Kind::Map && value.op == Op::Select) {
      const Expr& otherwise = k.exprs[value.inputs[2]];
      if (otherwise.kind == Expr::Kind::Constant && otherwise.bits == 0)
        zeros = parts_below(k, s.argument, s.index, where_true(k, value.inputs[0]));
    }
    meet(zeros_[buffer], zeros);
    const std::vector<Bounded> terms =
        s.dtype == DType::I64 ? bounded_terms(k, s.value, 1) : std::vector<Bounded>();
    std::optional<std::vector<Bounded>>& places = places_[buffer];
    places = !places || places == terms ? terms : std::vector<Bounded>();
  }
}

} // namespace svod::select
