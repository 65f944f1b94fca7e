#include "compiler/ir/text.h"
#include "compiler/kernel/text.h"

#include <algorithm>
#include <set>

namespace svod {

namespace {

std::string term_text(const Kernel& k, const Term& t) {
  switch (t.kind) {
  case Term::Kind::Axis:
    return "i" + std::to_string(t.id);
  case Term::Kind::Dynamic:
    return "e" + std::to_string(t.id) + "<" + std::to_string(t.high + 1);
  case Term::Kind::Div:
    return "(" + print(k, t.of) + ")/" + std::to_string(t.divisor);
  case Term::Kind::Mod:
    return "(" + print(k, t.of) + ")%" + std::to_string(t.divisor);
  }
  return "";
}

std::string bounds_text(const Kernel& k, const std::vector<Bound>& bounds) {
  std::string out;
  for (const Bound& b : bounds)
    out += (out.empty() ? " " : ", ") + std::to_string(b.low) +
           " <= " + print(k, b.index) + " < " + std::to_string(b.high);
  return out;
}

std::string condition_text(const Kernel& k, const Expr& e) {
  std::string out;
  if (!e.bounds.empty()) out = " if" + bounds_text(k, e.bounds);
  if (e.bits != 0) out += " else " + scalar_text(e.dtype, e.bits);
  return out;
}

std::string expr_text(const Kernel& k, const Expr& e) {
  std::string inputs;
  for (ExprId in : e.inputs)
    inputs += (inputs.empty() ? " e" : ", e") + std::to_string(in);
  const std::string type(info(e.dtype).text);
  switch (e.kind) {
  case Expr::Kind::Load:
    return "load " + type + " a" + std::to_string(e.argument) + "[" + print(k, e.index) +
           "]" + condition_text(k, e);
  case Expr::Kind::Constant:
    return "constant " + type + " " + scalar_text(e.dtype, e.bits);
  case Expr::Kind::Position:
    return "position " + type + " " + print(k, e.index);
  case Expr::Kind::Map:
    return "map " + type + " " + std::string(info(e.op).text) + inputs;
  case Expr::Kind::Cast:
    return "cast " + type + inputs + (e.near ? " near" : "");
  case Expr::Kind::Bitcast:
    return "bitcast " + type + inputs;
  case Expr::Kind::Guard:
    return "guard " + type + inputs + condition_text(k, e);
  case Expr::Kind::Local:
    return "local " + type + " s" + std::to_string(e.stage);
  case Expr::Kind::Descend:
    return "descend " + type + inputs + " by a" + std::to_string(e.table) + " a" +
           std::to_string(e.argument) + "[" + print(k, e.index) + "] step " +
           std::to_string(e.stride) + " times " + std::to_string(e.limit) +
           condition_text(k, e);
  case Expr::Kind::Checked:
    return "checked " + type + inputs + " < " + std::to_string(e.limit);
  }
  return "";
}

std::string stage_text(const Kernel& k, const Stage& s) {
  static constexpr const char* kKinds[] = {"reduce", "store", "scan", "scatter", "sort"};
  std::string out = kKinds[static_cast<int>(s.kind)];
  if (s.kind == StageKind::Reduce || s.kind == StageKind::Scan)
    out += " " + std::string(info(s.op).text);
  out += " " + std::string(info(s.dtype).text) + " over" + axes_text(s.inner);
  out += ": e" + std::to_string(s.value);
  if (s.kind != StageKind::Reduce || s.keeps)
    out += " -> a" + std::to_string(s.argument) + "[" + print(k, s.index) + "]";
  if (s.position != Index{}) out += " at " + print(k, s.position);
  if (!s.domain.empty()) out += " if" + bounds_text(k, s.domain);
  if (!s.useful.empty()) out += " useful" + bounds_text(k, s.useful);
  if (!s.short_sums.empty()) out += " short" + counts_text(s.short_sums);
  if (s.pad_lanes) out += " padded";
  if (s.nested) out += " nested";
  if (s.amplified) out += " amplified";
  if (s.flag) out += " flag";
  if (s.count != 0) out += " first " + std::to_string(s.count);
  if (s.combiner != 0) out += " combiner " + std::to_string(s.combiner);
  return out;
}

std::string call_text(const CallStep& call) {
  std::string out = "call " + call.digest.hex() + " " + std::to_string(call.function);
  for (int64_t tensor : call.tensors)
    out += tensor >= 0 ? " a" + std::to_string(tensor)
                       : " scratch+" + std::to_string(-1 - tensor);
  return out + "\n";
}

std::string place_text(const SequenceStep::Place& place) {
  std::string out =
      " a" + std::to_string(place.argument) + "+" + std::to_string(place.offset);
  for (const SequenceStep::Move& m : place.moves)
    out += (m.alternates ? "~" : "+") + std::to_string(m.stride) + "*n" +
           std::to_string(m.depth);
  return out;
}

std::string step_text(const SequenceStep& step) {
  std::string out;
  switch (step.kind) {
  case SequenceStep::Kind::Launch:
    out = "launch part " + std::to_string(step.part);
    break;
  case SequenceStep::Kind::Copy:
    out = "copy " + std::to_string(step.count);
    break;
  case SequenceStep::Kind::Loop:
    out = "loop n" + std::to_string(step.depth) + " < " + std::to_string(step.count);
    break;
  case SequenceStep::Kind::End:
    out = "end n" + std::to_string(step.depth);
  }
  for (const SequenceStep::Place& place : step.places) out += place_text(place);
  return out + "\n";
}

// The terms of the kernel's indices, with those inside of them.
class UsedTerms {
public:
  explicit UsedTerms(const Kernel& k) : k_(k) {
    for (const Expr& e : k.exprs) {
      add(e.index);
      add(e.bounds);
    }
    for (const Stage& s : k.stages) {
      add(s.index);
      add(s.position);
      add(s.domain);
      add(s.useful);
    }
  }
  std::string text() const {
    std::string out;
    for (TermId id : ids_) out += " " + term_text(k_, k_.indices.term(id));
    return out;
  }

private:
  void add(const Index& index) {
    for (auto [id, coefficient] : index.terms)
      if (ids_.insert(id).second) add(k_.indices.term(id).of);
  }
  void add(const std::vector<Bound>& bounds) {
    for (const Bound& b : bounds) add(b.index);
  }

  const Kernel& k_;
  std::set<TermId> ids_;
};

std::string argument_text(const Argument& a) {
  return (a.kind == Argument::Kind::Buffer ? "buffer b" : "weight w") +
         std::to_string(a.id) + " " + std::string(info(a.dtype).text) +
         (a.read ? " read" : "") + (a.written ? " write" : "");
}

// All but the terms.
std::string body_text(const Kernel& k) {
  std::string out = "  outer" + axes_text(k.outer) + "\n";
  if (k.scratch_bytes != 0) out += "  scratch " + std::to_string(k.scratch_bytes) + "\n";
  for (size_t i = 0; i < k.arguments.size(); ++i)
    out += "  a" + std::to_string(i) + " = " + argument_text(k.arguments[i]) + "\n";
  for (const RunEnd& e : k.ends)
    out += "  ends i" + std::to_string(e.axis) + " a" + std::to_string(e.argument) + "[" +
           std::to_string(e.element) + "] by " + std::to_string(e.step) + "\n";
  if (k.call()) out += "  " + call_text(*k.call());
  if (const Sequence* s = k.sequence())
    for (const SequenceStep& step : s->steps) out += "  " + step_text(step);
  for (size_t i = 0; i < k.exprs.size(); ++i)
    out += "  e" + std::to_string(i) + " = " + expr_text(k, k.exprs[i]) + "\n";
  for (size_t i = 0; i < k.stages.size(); ++i)
    out += "  s" + std::to_string(i) + " = " + stage_text(k, k.stages[i]) + "\n";
  return out;
}

std::string axes_line(const Kernel& k) {
  std::string out = "  axes";
  for (AxisId a = 0; a < k.indices.axis_count(); ++a)
    out += " i" + std::to_string(a) + ":" + std::to_string(k.indices.extent(a));
  return out + "\n";
}

} // namespace

std::string axes_text(const std::vector<AxisId>& axes) {
  std::string out;
  for (AxisId a : axes) out += " i" + std::to_string(a);
  return out;
}

std::string counts_text(const std::vector<TileAxis>& axes) {
  std::string out;
  for (const TileAxis& a : axes)
    out += " i" + std::to_string(a.axis) + ":" + std::to_string(a.count);
  return out;
}

std::string print(const Kernel& k, const Index& index) {
  std::string out;
  for (auto [id, coefficient] : index.terms) {
    if (!out.empty()) out += " + ";
    if (coefficient != 1) out += std::to_string(coefficient) + "*";
    out += term_text(k, k.indices.term(id));
  }
  if (index.constant != 0 || out.empty())
    out += (out.empty() ? "" : " + ") + std::to_string(index.constant);
  return out;
}

std::string print(const Kernel& k) {
  const std::string terms = UsedTerms(k).text();
  std::string out =
      axes_line(k) + (terms.empty() ? "" : "  terms" + terms + "\n") + body_text(k);
  const std::span<const ScheduledKernel> parts = k.parts();
  for (size_t i = 0; i < parts.size(); ++i)
    out += "  part " + std::to_string(i) + "\n" +
           print(static_cast<const Kernel&>(parts[i]));
  return out;
}

template <class AnyKernel> static AnyKernel without_numbers(AnyKernel k) {
  for (Argument& a : k.arguments) a.id = 0;
  if (k.call()) k.call()->function = 0;
  return k;
}

std::string program_text(const ScheduledKernel& kernel) {
  const ScheduledKernel k = without_numbers(kernel);
  std::string out = axes_line(k) + body_text(k) + print(k.loops);
  for (const ScheduledKernel& part : k.parts()) out += "  part\n" + program_text(part);
  return out;
}

Digest digest_of(const ScheduledKernel& kernel, bool joined) {
  Kernel k = without_numbers<Kernel>(kernel);
  for (ScheduledKernel& part : k.parts()) part = without_numbers(part);
  Loops fixed = kernel.loops;
  fixed.outer.clear();
  fixed.inner.clear();
  if (!fixed.in_parts) fixed.chunks.clear();
  return sha256(print(k) + print(fixed) + (joined ? "  joined\n" : ""));
}

} // namespace svod
