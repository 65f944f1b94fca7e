// What no reader needs, from the outputs backwards. An output is needed below its
// extents; what a mask selects, where that is true; factors of a sum of products, in
// front of the zeros of the other one; and everything that a loop reads, where it has not
// ended.
#include "compiler/select/run_ends.h"

#include "compiler/ir/build.h"
#include "compiler/kernel/buffer_uses.h"
#include "compiler/kernel/stage_work.h"
#include "compiler/select/size_facts.h"
#include "compiler/select/size_kernels.h"

#include <algorithm>

namespace svod::select {

namespace {

class RunEnds {
public:
  explicit RunEnds(FusedGraph& fused)
      : f_(fused), sizes_(fused), needed_(fused.buffers.size()),
        uses_(buffer_uses(fused)) {}
  void run();

private:
  void look_at_outputs();
  void look_backwards(ScheduledKernel& k, size_t number);
  Facts needed_of(const ScheduledKernel& k, const Stage& s) const;
  Facts outer_ends(const ScheduledKernel& k) const;
  Facts facts_below(const ScheduledKernel& k, ExprId id) const;
  Facts stage_ends(const ScheduledKernel& k, const Stage& s) const;
  void give_end(ScheduledKernel& k, const Below& below) const;
  void need(BufferId buffer, const Parts& parts);
  void need_loads(const ScheduledKernel& k, const std::vector<Facts>& of_stages);
  bool is_known(const Size& size, size_t before) const;

  FusedGraph& f_;
  SizeFacts sizes_;
  // By buffer: what is needed lies in each of these; nullopt: nobody needs any.
  std::vector<std::optional<Parts>> needed_;
  const std::vector<BufferUse> uses_;
};

// Whether what an expression is given decides more than its value: a place in memory.
bool may_fail(const Expr& e) {
  return e.kind == Expr::Kind::Checked || e.kind == Expr::Kind::Descend;
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
          if (const Size own{buffer, static_cast<int64_t>(d)}; !sizes_.is_constant(own)) {
            parts.insert({strides[d], b.shape[d], sizes_.origin_of(own)});
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
    out.merge(sizes_.where_other_than_zero(k, e));
    if (e.kind == Expr::Kind::Map && e.op == Op::Select)
      out.merge(sizes_.where_true(k, e.inputs[0]));
    open.insert(open.end(), e.inputs.begin(), e.inputs.end());
  }
  return out;
}

// What an expression is behind a size: less than any number that is meant, as what masks
// hide from a softmax, or zero. Loads may be asked only where no other element of their
// vector is read beyond the end.
class BehindSize {
public:
  enum class Value : uint8_t { Any, Zero, Lowest };
  BehindSize(const SizeFacts& sizes, const ScheduledKernel& k, const Below& below,
             bool with_loads)
      : sizes_(sizes), k_(k), below_(below), with_loads_(with_loads) {}
  Value of(ExprId id) {
    if (const auto known = known_.find(id); known != known_.end()) return known->second;
    return known_[id] = find(k_.exprs[id]);
  }

private:
  Value find(const Expr& e);
  Value find_map(const Expr& e);

  const SizeFacts& sizes_;
  const ScheduledKernel& k_;
  const Below& below_;
  const bool with_loads_;
  std::map<ExprId, Value> known_;
};

BehindSize::Value BehindSize::find(const Expr& e) {
  constexpr double kLowest = -3e38;
  switch (e.kind) {
  case Expr::Kind::Load:
    return with_loads_ && sizes_.where_other_than_zero(k_, e).contains(below_)
               ? Value::Zero
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
    if (sizes_.where_true(k_, e.inputs[0]).contains(below_)) return of(e.inputs[2]);
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
    if (steps && BehindSize(sizes_, k, b, steps->each == 1).of(s.value) == neutral)
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
        of_input.merge(sizes_.where_true(k, e.inputs[0]));
      open.emplace_back(e.inputs[i], of_input);
    }
  }
  for (size_t id = 0; id < k.exprs.size(); ++id) {
    const Expr& e = k.exprs[id];
    if (!facts[id]) continue;
    const auto is_buffer = [&](uint32_t argument) {
      return k.arguments[argument].kind == Argument::Kind::Buffer;
    };
    // What a reduction keeps is read where it was written: their loops end together.
    if (e.kind == Expr::Kind::Load && is_buffer(e.argument) &&
        !k.arguments[e.argument].written)
      need(k.arguments[e.argument].id,
           sizes_.parts_below(k, e.argument, e.index, *facts[id]));
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
  for (const ScheduledKernel& k : f_.kernels) sizes_.learn(k);
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
