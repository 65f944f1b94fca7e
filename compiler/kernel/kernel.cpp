// The text form of kernels. Names depend on positions only, so equal kernels print
// equally.
#include "compiler/kernel/schedule.h"

#include <algorithm>

namespace svod {

ExprId Kernel::add(Expr expr) {
  auto found = std::find(exprs.begin(), exprs.end(), expr);
  if (found != exprs.end()) return static_cast<ExprId>(found - exprs.begin());
  exprs.push_back(std::move(expr));
  return static_cast<ExprId>(exprs.size() - 1);
}

static std::string term_text(const Kernel& k, const Term& t) {
  std::string of = t.kind == Term::Kind::Div || t.kind == Term::Kind::Mod
                       ? print(k, t.of)
                       : std::to_string(t.id);
  switch (t.kind) {
  case Term::Kind::Axis:
    return "i" + of;
  case Term::Kind::Dynamic:
    return "e" + of;
  case Term::Kind::Div:
    return "(" + of + ")/" + std::to_string(t.divisor);
  case Term::Kind::Mod:
    return "(" + of + ")%" + std::to_string(t.divisor);
  }
  return "";
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

static std::string bounds_text(const Kernel& k, const std::vector<Bound>& bounds) {
  std::string out;
  for (const Bound& b : bounds)
    out += (out.empty() ? " if " : ", ") + std::to_string(b.low) +
           " <= " + print(k, b.index) + " < " + std::to_string(b.high);
  return out;
}

SortRoom::SortRoom(int64_t elements, int64_t wanted, DType dtype) {
  // Twice the wanted, and some, for the number of sorts to stay small.
  const int64_t key_bytes = byte_size(dtype) == 8 ? 8 : 4, word_bytes = 2 * key_bytes;
  const int64_t kept = 2 * wanted + 8;
  selects = kept < elements;
  words = selects ? kept : elements;
  first = selects ? (elements * key_bytes + 15) / 16 * 16 : 0;
  second = first + words * word_bytes;
  end = (second + words * word_bytes + 63) / 64 * 64;
}

static std::string expr_text(const Kernel& k, const Expr& e) {
  std::string inputs;
  for (ExprId in : e.inputs)
    inputs += (inputs.empty() ? " e" : ", e") + std::to_string(in);
  std::string type(info(e.dtype).text);
  switch (e.kind) {
  case Expr::Kind::Load:
    return "load " + type + " a" + std::to_string(e.argument) + "[" + print(k, e.index) +
           "]" + bounds_text(k, e.bounds) +
           (e.bits != 0 ? " else " + std::to_string(e.bits) : "");
  case Expr::Kind::Constant:
    return "constant " + type + " " + std::to_string(e.bits);
  case Expr::Kind::Position:
    return "position " + type + " " + print(k, e.index);
  case Expr::Kind::Map:
    return std::string(info(e.op).text) + " " + type + inputs;
  case Expr::Kind::Cast:
    return "cast " + type + inputs + (e.near ? " near" : "");
  case Expr::Kind::Bitcast:
    return "bitcast " + type + inputs;
  case Expr::Kind::Guard:
    return "guard " + type + inputs + bounds_text(k, e.bounds) + " else " +
           std::to_string(e.bits);
  case Expr::Kind::Local:
    return "local " + type + " s" + std::to_string(e.stage);
  case Expr::Kind::Descend:
    return "descend " + type + inputs + " by a" + std::to_string(e.table) + ", a" +
           std::to_string(e.argument) + "[" + print(k, e.index) + " + " +
           std::to_string(e.stride) + "*column], " + std::to_string(e.limit) + " steps";
  case Expr::Kind::Checked:
    return "checked " + type + inputs + " < " + std::to_string(e.limit);
  }
  return "";
}

static std::string axes_text(const std::vector<AxisId>& axes) {
  std::string out;
  for (AxisId a : axes) out += " i" + std::to_string(a);
  return out;
}

static std::string stage_text(const ScheduledKernel& k, const Stage& s) {
  static const char* kinds[] = {"reduce", "store", "scan", "scatter", "sort"};
  std::string out = kinds[static_cast<int>(s.kind)];
  if (s.kind == StageKind::Reduce || s.kind == StageKind::Scan)
    out += " " + std::string(info(s.op).text);
  out += " " + std::string(info(s.dtype).text) + " over" + axes_text(k.inner(s));
  out += ": e" + std::to_string(s.value);
  if (s.kind != StageKind::Reduce || s.keeps)
    out += " -> a" + std::to_string(s.argument) + "[" + print(k, s.index) + "]";
  if (s.kind == StageKind::Reduce && !s.position.is_constant())
    out += " at " + print(k, s.position);
  out += bounds_text(k, s.domain);
  if (!s.useful.empty()) out += " useful" + bounds_text(k, s.useful);
  if (s.pad_lanes && !s.domain.empty()) out += " else 0";
  if (s.nested) out += " nested";
  if (s.flag) out += " flag";
  if (s.kind == StageKind::Sort) out += " first " + std::to_string(s.count);
  if (s.combiner != 0) out += " combiner " + std::to_string(s.combiner);
  return out;
}

static std::string call_text(const CallStep& call) {
  std::string out = "  call " + call.digest.hex();
  for (int64_t tensor : call.tensors)
    out += tensor >= 0 ? " a" + std::to_string(tensor)
                       : " scratch+" + std::to_string(-1 - tensor);
  return out + "\n";
}

static std::string place_text(const SequenceStep::Place& place) {
  std::string out =
      " a" + std::to_string(place.argument) + "+" + std::to_string(place.offset);
  for (const SequenceStep::Move& m : place.moves)
    out += (m.alternates ? "~" : "+") + std::to_string(m.stride) + "*n" +
           std::to_string(m.depth);
  return out;
}

static std::string sequence_text(const ScheduledKernel& k) {
  std::string out;
  for (const SequenceStep& step : k.sequence) {
    switch (step.kind) {
    case SequenceStep::Kind::Launch:
      out += "  launch part " + std::to_string(step.part);
      break;
    case SequenceStep::Kind::Copy:
      out += "  copy " + std::to_string(step.count);
      break;
    case SequenceStep::Kind::Loop:
      out += "  loop n" + std::to_string(step.depth) + " < " + std::to_string(step.count);
      break;
    case SequenceStep::Kind::End:
      out += "  end n" + std::to_string(step.depth);
    }
    for (const SequenceStep::Place& place : step.places) out += place_text(place);
    out += "\n";
  }
  for (size_t i = 0; i < k.parts.size(); ++i)
    out += "  part " + std::to_string(i) + "\n" + print(k.parts[i]);
  return out;
}

std::string print(const ScheduledKernel& k) {
  std::string out = "  axes";
  for (AxisId a = 0; a < k.indices.axis_count(); ++a)
    out += " i" + std::to_string(a) + ":" + std::to_string(k.indices.extent(a));
  if (k.has_lane_axis()) out += " lanes i" + std::to_string(*k.loops.lane);
  if (k.has_dot_axis()) out += " dot i" + std::to_string(*k.loops.dot);
  out += "\n  outer" + axes_text(k.loops.outer) + "\n";
  for (const ChunkAxis& c : k.loops.chunks)
    out += "  chunk i" + std::to_string(c.axis) + " by " + std::to_string(c.block) +
           (k.loops.in_parts ? " in parts\n" : "\n");
  for (size_t i = 0; i < k.arguments.size(); ++i) {
    const Argument& a = k.arguments[i];
    out += "  a" + std::to_string(i) + " = " +
           (a.kind == Argument::Kind::Buffer ? "buffer b" : "weight w") +
           std::to_string(a.id) + " " + std::string(info(a.dtype).text) +
           (a.read ? " read" : "") + (a.written ? " write" : "") + "\n";
  }
  if (k.call) out += call_text(*k.call);
  out += sequence_text(k);
  for (size_t i = 0; i < k.exprs.size(); ++i)
    out += "  e" + std::to_string(i) + " = " + expr_text(k, k.exprs[i]) + "\n";
  for (size_t i = 0; i < k.stages.size(); ++i)
    out += "  s" + std::to_string(i) + " = " + stage_text(k, k.stages[i]) + "\n";
  return out;
}

} // namespace svod
