// Sizes are numbers in memory, which kernels compare with positions. From there two facts
// follow along the kernels' indices. Forwards: a mask is true only below a size, and what
// is selected by it is zero behind. Backwards: what no reader needs. An output is needed
// below its extents; what a mask selects, where that is true; factors of a sum of
// products, in front of the zeros of the other one; and everything that a loop reads,
// where it has not ended.
//
// An element's position along a dimension is its offset over a stride, modulo an extent:
// layouts are not asked for.
#include "compiler/select/run_ends.h"

#include "compiler/ir/build.h"
#include "compiler/kernel/buffer_uses.h"
#include "compiler/kernel/stage_work.h"
#include "compiler/select/size_kernels.h"

#include <algorithm>
#include <ranges>
#include <set>

namespace svod::select {

namespace {

// A size in memory: an i64 that some kernel, or the caller, writes.
struct Size {
  BufferId buffer = kNoBuffer;
  int64_t element = 0;
  auto operator<=>(const Size&) const = default;
};

// Elements of a buffer whose position along a dimension is below a size.
struct Part {
  int64_t stride = 1, extent = 1;
  Size size;
  auto operator<=>(const Part&) const = default;
};
using Parts = std::set<Part>;

// A position along a dimension: a sum of axes, each times its factor.
using Position = std::vector<std::pair<AxisId, int64_t>>;

// Positions below a size.
struct Below {
  Position position;
  Size size;
  auto operator<=>(const Below&) const = default;
};
using Facts = std::set<Below>;

// A term of a place in memory, so many times what is below a size.
struct Bounded {
  int64_t factor = 1;
  Size size;
  auto operator<=>(const Bounded&) const = default;
};

template <class T> std::set<T> common(const std::set<T>& a, const std::set<T>& b) {
  std::set<T> out;
  std::ranges::set_intersection(a, b, std::inserter(out, out.end()));
  return out;
}

// What is so of all that was met: of the first, all that is known.
void meet(std::optional<Parts>& of, const Parts& parts) {
  of = of ? common(*of, parts) : parts;
}

// The axis with the largest factor: so many neighbouring positions are one step of it, as
// of an axis of blocks. nullopt where the others reach beyond a step.
struct Steps {
  AxisId axis;
  int64_t each;
};
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
std::optional<Position> position_along(const IndexPool& pool, const Index& index,
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
std::optional<std::pair<int64_t, int64_t>> dimension_of(const IndexPool& pool,
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

// Positions at which an index is in those parts.
Facts facts_in(const ScheduledKernel& k, const Index& index,
               const std::optional<Parts>& parts) {
  Facts out;
  for (const Part& p : parts ? *parts : Parts())
    if (const auto position = position_along(k.indices, index, p.stride, p.extent))
      out.insert({*position, p.size});
  return out;
}

class RunEnds {
public:
  explicit RunEnds(FusedGraph& fused)
      : f_(fused), masks_(fused.buffers.size()), zeros_(fused.buffers.size()),
        places_(fused.buffers.size()), needed_(fused.buffers.size()),
        uses_(buffer_uses(fused)) {}
  void run();

  // What is so where the condition is true.
  Facts facts_of(const ScheduledKernel& k, ExprId condition) const;
  // Where what is loaded is other than zero.
  Facts zeros_of(const ScheduledKernel& k, const Expr& e) const;

private:
  void forget(BufferId buffer);
  void look_forwards(const ScheduledKernel& k);
  void look_at_outputs();
  void look_backwards(ScheduledKernel& k, size_t number);
  Size origin_of(const Size& size) const;
  std::optional<Size> size_of(const ScheduledKernel& k, ExprId id) const;
  std::vector<Bounded> bounded_terms(const ScheduledKernel& k, ExprId id,
                                     int64_t factor) const;
  Parts parts_of_place(const ScheduledKernel& k, const Index& index) const;
  Parts parts_below(const ScheduledKernel& k, uint32_t argument, const Index& index,
                    const Facts& facts) const;
  Facts needed_of(const ScheduledKernel& k, const Stage& s) const;
  Facts outer_ends(const ScheduledKernel& k) const;
  Facts facts_below(const ScheduledKernel& k, ExprId id) const;
  Facts stage_ends(const ScheduledKernel& k, const Stage& s) const;
  void give_end(ScheduledKernel& k, const Below& below) const;
  void need(BufferId buffer, const Parts& parts);
  void need_loads(const ScheduledKernel& k, const std::vector<Facts>& of_stages);
  bool is_known(const Size& size, size_t before) const;

  FusedGraph& f_;
  std::map<Size, Size> copies_; // of sizes
  std::set<Size> constants_;    // extents that no run decides
  // By buffer: what is true, or other than zero, lies in each of these; nullopt: nobody
  // has written it yet.
  std::vector<std::optional<Parts>> masks_, zeros_;
  // Of what all that is written is the sum, where it is places in memory.
  std::vector<std::optional<std::vector<Bounded>>> places_;
  // By buffer: what is needed lies in each of these; nullopt: nobody needs any.
  std::vector<std::optional<Parts>> needed_;
  const std::vector<BufferUse> uses_;
};

// Whether what an expression is given decides more than its value: a place in memory.
bool may_fail(const Expr& e) {
  return e.kind == Expr::Kind::Checked || e.kind == Expr::Kind::Descend;
}

bool is_plain(const ScheduledKernel& k) {
  return !k.stages.empty() && !k.call() && !k.sequence() &&
         std::ranges::all_of(k.stages, [](const Stage& s) {
           return s.kind == StageKind::Store || (s.kind == StageKind::Reduce && !s.keeps);
         });
}

// What a size is a copy of, or itself.
Size RunEnds::origin_of(const Size& size) const {
  const auto copy = copies_.find(size);
  return copy == copies_.end() ? size : copy->second;
}

std::optional<Size> RunEnds::size_of(const ScheduledKernel& k, ExprId id) const {
  const Expr& e = k.exprs[id];
  if (e.kind != Expr::Kind::Load || e.dtype != DType::I64 || !e.index.is_constant() ||
      !e.bounds.empty() || k.arguments[e.argument].kind != Argument::Kind::Buffer)
    return std::nullopt;
  return origin_of({k.arguments[e.argument].id, e.index.constant});
}

Facts RunEnds::facts_of(const ScheduledKernel& k, ExprId condition) const {
  const Expr& e = k.exprs[condition];
  Facts out;
  if (e.kind == Expr::Kind::Map && e.op == Op::And) {
    out = facts_of(k, e.inputs[0]);
    out.merge(facts_of(k, e.inputs[1]));
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
std::vector<Bounded> RunEnds::bounded_terms(const ScheduledKernel& k, ExprId id,
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
Parts RunEnds::parts_of_place(const ScheduledKernel& k, const Index& index) const {
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

// The parts of an argument that an index reaches at such positions.
Parts RunEnds::parts_below(const ScheduledKernel& k, uint32_t argument,
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
void RunEnds::forget(BufferId buffer) {
  masks_[buffer] = zeros_[buffer] = Parts();
  places_[buffer].emplace();
}

void RunEnds::look_forwards(const ScheduledKernel& k) {
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
    meet(masks_[buffer], parts_below(k, s.argument, s.index, facts_of(k, s.value)));
    Parts zeros;
    if (value.kind == Expr::Kind::Map && value.op == Op::Select) {
      const Expr& otherwise = k.exprs[value.inputs[2]];
      if (otherwise.kind == Expr::Kind::Constant && otherwise.bits == 0)
        zeros = parts_below(k, s.argument, s.index, facts_of(k, value.inputs[0]));
    }
    meet(zeros_[buffer], zeros);
    const std::vector<Bounded> terms =
        s.dtype == DType::I64 ? bounded_terms(k, s.value, 1) : std::vector<Bounded>();
    std::optional<std::vector<Bounded>>& places = places_[buffer];
    places = !places || places == terms ? terms : std::vector<Bounded>();
  }
}

// What all readers need is what some reader does.
void RunEnds::need(BufferId buffer, const Parts& parts) { meet(needed_[buffer], parts); }

void RunEnds::look_at_outputs() {
  for (BufferId id = 0; id < f_.buffers.size(); ++id) {
    const Buffer& b = f_.buffers[id];
    for (const int32_t number : b.outputs) {
      const Interface& seen = f_.graph.outputs()[static_cast<size_t>(number)].seen;
      Parts parts;
      const auto extents = std::ranges::find_if(f_.buffers, [&](const Buffer& of) {
        return seen.extents >= 0 && std::ranges::count(of.outputs, seen.extents) != 0;
      });
      const bool plain = seen.shape == b.shape && b.layout == row_major(b.shape.size());
      if (extents != f_.buffers.end() && plain) {
        const Shape strides = row_major_strides(b.shape);
        const auto buffer = static_cast<BufferId>(extents - f_.buffers.begin());
        for (size_t d = 0; d < b.shape.size(); ++d)
          if (const Size own{buffer, static_cast<int64_t>(d)};
              !constants_.contains(own)) {
            parts.insert({strides[d], b.shape[d], origin_of(own)});
          }
      }
      need(id, parts);
    }
  }
  for (const FusedRegion& region : f_.regions)
    for (const Argument& a : region.inputs)
      if (a.kind == Argument::Kind::Buffer) need(a.id, {});
}

// What somebody writes before that kernel.
bool RunEnds::is_known(const Size& size, size_t before) const {
  const std::vector<size_t>& writers = uses_[size.buffer].writers;
  return f_.buffers[size.buffer].input >= 0 ||
         (!writers.empty() && writers.back() < before);
}

// Positions that are needed of what a stage stores.
Facts RunEnds::needed_of(const ScheduledKernel& k, const Stage& s) const {
  return facts_in(k, s.index, needed_[k.arguments[s.argument].id]);
}

// Likewise of all that the kernel stores.
Facts RunEnds::outer_ends(const ScheduledKernel& k) const {
  std::optional<Facts> out;
  for (const Stage& s : k.stages) {
    if (s.kind != StageKind::Store) continue;
    const Facts needed = needed_of(k, s);
    out = out ? common(*out, needed) : needed;
  }
  return out ? *out : Facts();
}

// All that a value knows of positions: of masks in it and of zeros that it loads.
Facts RunEnds::facts_below(const ScheduledKernel& k, ExprId root) const {
  Facts out;
  std::set<ExprId> seen;
  std::vector<ExprId> open = {root};
  while (!open.empty()) {
    const ExprId id = open.back();
    open.pop_back();
    if (!seen.insert(id).second) continue;
    const Expr& e = k.exprs[id];
    out.merge(zeros_of(k, e));
    if (e.kind == Expr::Kind::Map && e.op == Op::Select)
      out.merge(facts_of(k, e.inputs[0]));
    open.insert(open.end(), e.inputs.begin(), e.inputs.end());
  }
  return out;
}

Facts RunEnds::zeros_of(const ScheduledKernel& k, const Expr& e) const {
  if (e.kind != Expr::Kind::Load || !e.bounds.empty() ||
      k.arguments[e.argument].kind != Argument::Kind::Buffer)
    return {};
  return facts_in(k, e.index, zeros_[k.arguments[e.argument].id]);
}

// What an expression is behind a size: less than any number that is meant, as what masks
// hide from a softmax, or zero. Loads may be asked only where no other element of their
// vector is read beyond the end.
class BehindSize {
public:
  enum class Value : uint8_t { Any, Zero, Lowest };
  BehindSize(const RunEnds& ends, const ScheduledKernel& k, const Below& below,
             bool with_loads)
      : ends_(ends), k_(k), below_(below), with_loads_(with_loads) {}
  Value of(ExprId id) {
    if (const auto known = known_.find(id); known != known_.end()) return known->second;
    return known_[id] = find(k_.exprs[id]);
  }

private:
  Value find(const Expr& e);
  Value find_map(const Expr& e);

  const RunEnds& ends_;
  const ScheduledKernel& k_;
  const Below& below_;
  const bool with_loads_;
  std::map<ExprId, Value> known_;
};

BehindSize::Value BehindSize::find(const Expr& e) {
  constexpr double kLowest = -3e38;
  switch (e.kind) {
  case Expr::Kind::Load:
    return with_loads_ && ends_.zeros_of(k_, e).contains(below_) ? Value::Zero
                                                                 : Value::Any;
  case Expr::Kind::Constant:
    if (e.bits == 0) return Value::Zero;
    return is_float(e.dtype) && scalar_value(e.dtype, e.bits) <= kLowest ? Value::Lowest
                                                                         : Value::Any;
  case Expr::Kind::Map:
    return find_map(e);
  default:
    return Value::Any;
  }
}

BehindSize::Value BehindSize::find_map(const Expr& e) {
  switch (e.op) {
  case Op::Select:
    if (ends_.facts_of(k_, e.inputs[0]).contains(below_)) return of(e.inputs[2]);
    return of(e.inputs[1]) == of(e.inputs[2]) ? of(e.inputs[1]) : Value::Any;
  case Op::Sub: // the greatest that is meant
    return of(e.inputs[0]) == Value::Lowest ? Value::Lowest : Value::Any;
  case Op::Exp:
    return of(e.inputs[0]) == Value::Lowest ? Value::Zero : Value::Any;
  case Op::Mul:
    return of(e.inputs[0]) == Value::Zero || of(e.inputs[1]) == Value::Zero ? Value::Zero
                                                                            : Value::Any;
  default:
    return Value::Any;
  }
}

// Positions that a stage need not go through: those of a reduction that leave it as it
// is, and those of a store that nobody needs.
Facts RunEnds::stage_ends(const ScheduledKernel& k, const Stage& s) const {
  if (s.nested) return {};
  if (s.kind == StageKind::Store) return needed_of(k, s);
  const bool sum = s.op == Op::ReduceSum;
  if (!is_float(s.dtype) || (!sum && s.op != Op::ReduceMax)) return {};
  const auto neutral = sum ? BehindSize::Value::Zero : BehindSize::Value::Lowest;
  Facts out;
  for (const Below& b : facts_below(k, s.value)) {
    const std::optional<Steps> steps = steps_along(k.indices, b.position);
    if (steps && BehindSize(*this, k, b, steps->each == 1).of(s.value) == neutral)
      out.insert(b);
  }
  return out;
}

void RunEnds::give_end(ScheduledKernel& k, const Below& below) const {
  const Steps steps = *steps_along(k.indices, below.position);
  const Argument asked{Argument::Kind::Buffer, below.size.buffer, DType::I64, false,
                       true};
  auto argument = std::ranges::find_if(k.arguments, [&](const Argument& a) {
    return a.kind == asked.kind && a.id == asked.id;
  });
  if (argument == k.arguments.end()) {
    k.arguments.push_back(asked);
    argument = k.arguments.end() - 1;
  }
  k.ends.push_back({steps.axis, static_cast<uint32_t>(argument - k.arguments.begin()),
                    below.size.element, steps.each});
}

// What the loads of a kernel reach where its loops have not ended, and where masks are
// true.
void RunEnds::need_loads(const ScheduledKernel& k, const std::vector<Facts>& of_stages) {
  std::vector<std::optional<Facts>> facts(k.exprs.size());
  std::vector<std::pair<ExprId, Facts>> open;
  // Whole tiles run beyond an end, where anything may lie but a place in memory.
  const auto ask_index = [&](const Index& index) {
    std::vector<ExprId> dynamic;
    k.indices.collect_dynamic(index, dynamic);
    for (const ExprId id : dynamic) open.emplace_back(id, Facts());
  };
  for (size_t i = 0; i < k.stages.size(); ++i) {
    const Stage& s = k.stages[i];
    open.emplace_back(s.value, of_stages[i]);
    ask_index(s.index);
    ask_index(s.position);
    for (const Bound& b : s.domain) ask_index(b.index);
  }
  while (!open.empty()) {
    const auto [id, where] = open.back();
    open.pop_back();
    const Facts now = facts[id] ? common(*facts[id], where) : where;
    if (facts[id] == now) continue;
    facts[id] = now;
    const Expr& e = k.exprs[id];
    ask_index(e.index);
    for (const Bound& b : e.bounds) ask_index(b.index);
    for (size_t i = 0; i < e.inputs.size(); ++i) {
      Facts of_input = may_fail(e) ? Facts() : now;
      if (e.kind == Expr::Kind::Map && e.op == Op::Select && i == 1)
        of_input.merge(facts_of(k, e.inputs[0]));
      open.emplace_back(e.inputs[i], of_input);
    }
  }
  for (size_t id = 0; id < k.exprs.size(); ++id) {
    const Expr& e = k.exprs[id];
    if (!facts[id]) continue;
    const auto is_buffer = [&](uint32_t argument) {
      return k.arguments[argument].kind == Argument::Kind::Buffer;
    };
    if (e.kind == Expr::Kind::Load && is_buffer(e.argument))
      need(k.arguments[e.argument].id, parts_below(k, e.argument, e.index, *facts[id]));
    if (e.kind == Expr::Kind::Descend)
      for (const uint32_t argument : {e.argument, e.table})
        if (is_buffer(argument)) need(k.arguments[argument].id, {});
  }
}

void RunEnds::look_backwards(ScheduledKernel& k, size_t number) {
  const auto ends_along = [&](const Below& b, const std::vector<AxisId>& loops) {
    const std::optional<Steps> steps = steps_along(k.indices, b.position);
    return steps && contains(loops, steps->axis) && k.is_loop(steps->axis) &&
           k.run_end(steps->axis) == nullptr && is_known(b.size, number);
  };
  if (!is_plain(k)) {
    for (const Argument& a : k.arguments)
      if (a.kind == Argument::Kind::Buffer && a.read) need(a.id, {});
    return;
  }
  Facts outer;
  for (const Below& b : outer_ends(k))
    if (ends_along(b, k.loops.outer)) give_end(k, b), outer.insert(b);
  std::vector<Facts> of_stages(k.stages.size(), outer);
  // One loop's end is that of all stages that have the loop.
  std::vector<Facts> ends_of;
  for (const Stage& s : k.stages) ends_of.push_back(stage_ends(k, s));
  std::map<AxisId, Facts> inner;
  for (size_t i = 0; i < k.stages.size(); ++i)
    for (const Below& b : ends_of[i])
      if (ends_along(b, k.inner(k.stages[i])))
        inner[steps_along(k.indices, b.position)->axis].insert(b);
  for (const auto& [axis, found] : inner) {
    const Below& b = *found.begin();
    std::vector<size_t> with_loop;
    for (size_t i = 0; i < k.stages.size(); ++i)
      if (contains(k.inner(k.stages[i]), axis)) with_loop.push_back(i);
    if (!std::ranges::all_of(with_loop, [&](size_t i) { return ends_of[i].contains(b); }))
      continue;
    give_end(k, b);
    for (const size_t i : with_loop) of_stages[i].insert(b);
  }
  need_loads(k, of_stages);
  for (const RunEnd& e : k.ends) need(k.arguments[e.argument].id, {});
}

void RunEnds::run() {
  for (const FusedRegion& region : f_.regions)
    for (const BufferId id : region.results)
      if (id != kNoBuffer) forget(id);
  for (BufferId id = 0; id < f_.buffers.size(); ++id)
    if (f_.buffers[id].input >= 0) forget(id);
  for (const ScheduledKernel& k : f_.kernels) look_forwards(k);
  look_at_outputs();
  for (size_t i = f_.kernels.size(); i-- > 0;) look_backwards(f_.kernels[i], i);
}

} // namespace

void find_run_ends(FusedGraph& fused) {
  const auto is_open = [](const GraphOutput& output) { return output.seen.extents >= 0; };
  if (std::ranges::none_of(fused.graph.outputs(), is_open)) return;
  put_sizes_first(fused);
  RunEnds(fused).run();
}

} // namespace svod::select
