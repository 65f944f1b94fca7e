// A walk over the last kernel's stages that copies their expressions. Where it meets a
// load of what another kernel stores, it goes on in that kernel, at the position that was
// asked for: the axes along which the other one stores are quotients and remainders of
// the element's number, which the pool of indices knows to be axes of the last kernel
// again. A reduction that is met so becomes a stage in front of the one that reads it.
#include "compiler/kernel/join_kernels.h"

#include "compiler/kernel/dependence.h"
#include "compiler/kernel/stage_work.h"

#include <algorithm>
#include <functional>
#include <memory>

namespace svod {

namespace {

class Joiner {
public:
  Joiner(const ScheduledKernel& last, const std::map<uint32_t, Producer>& producers)
      : last_(last), producers_(producers) {}
  std::optional<ScheduledKernel> run();

private:
  // A kernel whose outer axes, and those of its store, lie at positions of the last
  // one's.
  struct Place {
    const ScheduledKernel& kernel;
    std::map<AxisId, Index> asked; // outer axes and the store's
    std::map<AxisId, Index> at;    // with those of reductions
    std::map<ExprId, ExprId> exprs;
    std::map<uint32_t, uint32_t> stages;
  };

  IndexPool& pool() { return out_.indices; }
  Place& place_of(const ScheduledKernel& kernel, std::map<AxisId, Index> at);
  std::optional<std::map<AxisId, Index>> positions(const ScheduledKernel& from,
                                                   const Stage& store, Index element);
  Index moved(Place& place, const Index& index);
  std::vector<Bound> moved(Place& place, const std::vector<Bound>& bounds);
  uint32_t argument(const Argument& a, bool written);
  ExprId copy(Place& place, ExprId id);
  ExprId copy_load(Place& place, const Expr& e);
  ExprId computed(const Producer& producer, const Index& element);
  std::optional<std::vector<AxisId>> loops(Place& place, const Stage& s);
  uint32_t stage(Place& place, uint32_t number);
  bool is_nested(const Stage& s);
  ExprId fail() {
    fails_ = true;
    return out_.add({Expr::Kind::Constant, DType::F32});
  }

  const ScheduledKernel& last_;
  const std::map<uint32_t, Producer>& producers_;
  ScheduledKernel out_;
  std::vector<std::unique_ptr<Place>> places_;
  bool fails_ = false;
};

Joiner::Place& Joiner::place_of(const ScheduledKernel& kernel,
                                std::map<AxisId, Index> at) {
  for (const auto& place : places_)
    if (&place->kernel == &kernel && place->asked == at) return *place;
  places_.push_back(std::make_unique<Place>(Place{kernel, at, at, {}, {}}));
  return *places_.back();
}

// Where the axes are that the store walks along when it writes this element.
std::optional<std::map<AxisId, Index>>
Joiner::positions(const ScheduledKernel& from, const Stage& store, Index element) {
  std::map<AxisId, Index> at;
  std::vector<std::pair<int64_t, AxisId>> strides;
  for (auto [id, coefficient] : store.index.terms) {
    const Term& t = from.indices.term(id);
    if (t.kind != Term::Kind::Axis || coefficient <= 0) return std::nullopt;
    strides.emplace_back(coefficient, t.id);
  }
  std::ranges::sort(strides);
  element.constant -= store.index.constant;
  // From the axis whose positions are neighbours on: what is asked for may have one axis
  // for several.
  for (size_t i = 0; i < strides.size(); ++i) {
    auto [stride, axis] = strides[i];
    if (i == 0) {
      if (pool().mod(element, stride) != Index()) return std::nullopt;
      element = pool().div(element, stride);
    }
    Index position = element;
    if (i + 1 < strides.size()) {
      const int64_t next = strides[i + 1].first;
      if (next % stride != 0) return std::nullopt;
      position = pool().mod(element, next / stride);
      element = pool().div(element, next / stride);
    }
    const Range r = pool().range(position);
    if (r.low < 0 || r.high >= from.indices.extent(axis)) return std::nullopt;
    at[axis] = std::move(position);
  }
  for (const std::vector<AxisId>* axes : {&from.outer, &store.inner})
    for (AxisId a : *axes)
      if (!at.contains(a)) {
        if (from.indices.extent(a) != 1) return std::nullopt;
        at[a] = Index();
      }
  return at;
}

Index Joiner::moved(Place& place, const Index& index) {
  Index out = IndexPool::constant(index.constant);
  for (auto [id, coefficient] : index.terms) {
    const Term t = place.kernel.indices.term(id);
    Index term;
    if (t.kind == Term::Kind::Dynamic)
      term = pool().dynamic(copy(place, t.id), t.high + 1);
    else if (t.kind == Term::Kind::Div)
      term = pool().div(moved(place, t.of), t.divisor);
    else if (t.kind == Term::Kind::Mod)
      term = pool().mod(moved(place, t.of), t.divisor);
    else if (auto found = place.at.find(t.id); found != place.at.end())
      term = found->second;
    else
      fails_ = true;
    out = IndexPool::add(out, IndexPool::scale(term, coefficient));
  }
  return pool().recombine(std::move(out));
}

std::vector<Bound> Joiner::moved(Place& place, const std::vector<Bound>& bounds) {
  std::vector<Bound> out;
  for (const Bound& b : bounds) {
    Bound there{moved(place, b.index), b.low, b.high};
    const Range r = pool().range(there.index);
    if (r.low < b.low || r.high >= b.high) out.push_back(std::move(there));
  }
  return out;
}

uint32_t Joiner::argument(const Argument& a, bool written) {
  for (uint32_t i = 0; i < out_.arguments.size(); ++i) {
    Argument& known = out_.arguments[i];
    if (known.kind != a.kind || known.id != a.id) continue;
    (written ? known.written : known.read) = true;
    return i;
  }
  out_.arguments.push_back({a.kind, a.id, a.dtype, written, !written});
  return static_cast<uint32_t>(out_.arguments.size() - 1);
}

// What the producer's store writes to the element.
ExprId Joiner::computed(const Producer& producer, const Index& element) {
  const Stage& store = producer.kernel->stages[producer.stage];
  auto at = positions(*producer.kernel, store, element);
  if (!at) return fail();
  return copy(place_of(*producer.kernel, std::move(*at)), store.value);
}

ExprId Joiner::copy_load(Place& place, const Expr& e) {
  const Argument& from = place.kernel.arguments[e.argument];
  // What a reduction keeps of its values is what they are computed from.
  for (const Stage& s : place.kernel.stages)
    if (s.keeps && s.argument == e.argument)
      return s.index == e.index && e.bounds.empty() ? copy(place, s.value) : fail();
  Index element = moved(place, e.index);
  const auto found =
      from.kind == Argument::Kind::Buffer ? producers_.find(from.id) : producers_.end();
  if (found != producers_.end())
    return e.bounds.empty() ? computed(found->second, element) : fail();
  Expr out = e;
  out.index = std::move(element);
  out.bounds = moved(place, e.bounds);
  out.argument = argument(from, false);
  return out_.add(std::move(out));
}

ExprId Joiner::copy(Place& place, ExprId id) {
  if (auto found = place.exprs.find(id); found != place.exprs.end()) return found->second;
  const Expr& e = place.kernel.exprs[id];
  ExprId made = 0;
  if (e.kind == Expr::Kind::Load) {
    made = copy_load(place, e);
  } else if (e.kind == Expr::Kind::Descend) {
    made = fail();
  } else {
    Expr out = e;
    out.index = moved(place, e.index);
    const std::vector<Bound> bounds = moved(place, e.bounds);
    for (ExprId& in : out.inputs) in = copy(place, in);
    if (e.kind == Expr::Kind::Local) out.stage = stage(place, e.stage);
    made = e.kind == Expr::Kind::Guard && bounds.empty() ? out.inputs[0] : 0;
    out.bounds = bounds;
    if (e.kind != Expr::Kind::Guard || !bounds.empty()) made = out_.add(std::move(out));
  }
  place.exprs[id] = made;
  return made;
}

// The loops of a reduction that is computed there. An axis of its kernel's store is one
// that is looped over there already, or several.
std::optional<std::vector<AxisId>> Joiner::loops(Place& place, const Stage& s) {
  std::vector<AxisId> out;
  for (AxisId axis : s.inner) {
    const int64_t extent = place.kernel.indices.extent(axis);
    auto found = place.at.find(axis);
    if (found == place.at.end()) {
      out.push_back(pool().add_axis(extent));
      place.at[axis] = pool().axis(out.back());
      continue;
    }
    std::vector<std::pair<int64_t, AxisId>> steps;
    for (auto [id, coefficient] : found->second.terms) {
      const Term& t = pool().term(id);
      if (t.kind != Term::Kind::Axis || contains(out_.outer, t.id)) return std::nullopt;
      steps.emplace_back(coefficient, t.id);
    }
    std::ranges::sort(steps);
    int64_t inside = 1;
    for (auto [step, a] : steps) {
      if (step != inside) return std::nullopt;
      inside *= pool().extent(a);
    }
    if (found->second.constant != 0 || inside != extent) return std::nullopt;
    for (size_t i = steps.size(); i-- > 0;) out.push_back(steps[i].second);
  }
  return out;
}

// Whether there is a result for each position of loops around it that are not the
// kernel's.
bool Joiner::is_nested(const Stage& s) {
  std::vector<bool> depends = dependence_of(out_)[s.value];
  for (AxisId a : s.inner) depends[a] = false;
  for (AxisId a : out_.outer) depends[a] = false;
  return std::ranges::count(depends, true) != 0;
}

uint32_t Joiner::stage(Place& place, uint32_t number) {
  if (auto found = place.stages.find(number); found != place.stages.end())
    return found->second;
  Stage out = place.kernel.stages[number];
  const bool reduces = out.kind == StageKind::Reduce;
  auto inner = loops(place, out);
  if (!inner || (!reduces && out.kind != StageKind::Store)) {
    fail();
    return 0;
  }
  out.inner = std::move(*inner);
  out.value = copy(place, out.value);
  out.domain = moved(place, out.domain);
  out.useful = moved(place, out.useful);
  out.position = moved(place, out.position);
  out.short_sums.clear();
  out.keeps = false;
  out.index = reduces ? Index() : moved(place, out.index);
  out.argument = reduces ? 0 : argument(place.kernel.arguments[out.argument], true);
  out.nested = reduces && is_nested(out);
  out_.stages.push_back(std::move(out));
  const auto made = static_cast<uint32_t>(out_.stages.size() - 1);
  place.stages[number] = made;
  return made;
}

std::optional<ScheduledKernel> Joiner::run() {
  for (AxisId a = 0; a < last_.indices.axis_count(); ++a)
    pool().add_axis(last_.indices.extent(a));
  out_.outer = last_.outer;
  std::map<AxisId, Index> own;
  for (AxisId a = 0; a < last_.indices.axis_count(); ++a) own[a] = pool().axis(a);
  Place& place = place_of(last_, std::move(own));
  for (uint32_t i = 0; i < last_.stages.size() && !fails_; ++i) stage(place, i);
  if (fails_) return std::nullopt;
  out_.loops = plain_loops(out_);
  return std::move(out_);
}

} // namespace

std::optional<ScheduledKernel>
join_kernels(const ScheduledKernel& last, const std::map<uint32_t, Producer>& producers) {
  return Joiner(last, producers).run();
}

} // namespace svod
