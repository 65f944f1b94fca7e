#include "compiler/ir/text.h"
#include "compiler/kernel/line_scanner.h"

#include <algorithm>

namespace svod {

namespace {

// Reads the lines of one kernel; those after a line `part N` belong to that part.
class KernelReader {
public:
  std::optional<Kernel> read(std::string_view text, TextFault& fault) {
    kernels_.emplace_back();
    if (!read_lines(text, fault, [&](std::string_view line) { read_line(line); }))
      return std::nullopt;
    Kernel out = std::move(kernels_[0]);
    for (size_t i = 1; i < kernels_.size(); ++i) {
      ScheduledKernel part;
      static_cast<Kernel&>(part) = std::move(kernels_[i]);
      sequence_of(out).parts.push_back(std::move(part));
    }
    return out;
  }

private:
  static Sequence& sequence_of(Kernel& k) {
    return k.sequence() ? *k.sequence() : k.other.emplace<Sequence>();
  }
  Kernel& k() { return kernels_.back(); }
  void read_line(std::string_view text);
  void read_terms(LineScanner& in);
  Index read_term(LineScanner& in);
  Index read_index(LineScanner& in);
  std::vector<Bound> read_bounds(LineScanner& in);
  void read_condition(LineScanner& in, Expr& e);
  void read_argument(LineScanner& in);
  void read_end(LineScanner& in);
  void read_expr(LineScanner& in);
  void read_load(LineScanner& in, Expr& e);
  void read_stage(LineScanner& in);
  void read_stage_ends(LineScanner& in, Stage& s);
  void read_call(LineScanner& in);
  void read_step(LineScanner& in);

  std::vector<Kernel> kernels_; // the kernel, then its parts
};

DType read_dtype(LineScanner& in) {
  const std::optional<DType> dtype = dtype_from_text(in.word());
  if (!dtype) in.fail("an element type");
  return *dtype;
}

uint64_t read_scalar(LineScanner& in, DType dtype) {
  const std::optional<uint64_t> bits = scalar_from_text(dtype, in.word(","));
  if (!bits) in.fail("a value");
  return *bits;
}

void KernelReader::read_line(std::string_view text) {
  LineScanner in(text);
  if (in.accept("axes")) {
    while (!in.done()) {
      if (in.numbered('i') != k().indices.axis_count()) in.fail("the next axis");
      in.expect(":");
      k().indices.add_axis(in.number());
    }
  } else if (in.accept("terms")) {
    read_terms(in);
  } else if (in.accept("outer")) {
    k().outer = in.all_numbered('i');
  } else if (in.accept("scratch")) {
    k().scratch_bytes = in.number();
  } else if (in.accept("ends")) {
    read_end(in);
  } else if (in.accept("part")) {
    in.number();
    kernels_.emplace_back();
  } else if (in.accept("call")) {
    read_call(in);
  } else if (in.at_numbered('a')) {
    read_argument(in);
  } else if (in.at_numbered('e')) {
    read_expr(in);
  } else if (in.at_numbered('s')) {
    read_stage(in);
  } else {
    read_step(in);
  }
  in.end();
}

// In the order of the line, so that terms have the numbers that they had.
void KernelReader::read_terms(LineScanner& in) {
  while (!in.done()) read_term(in);
}

Index KernelReader::read_term(LineScanner& in) {
  IndexPool& pool = k().indices;
  if (in.at_numbered('i')) {
    const AxisId axis = in.numbered('i');
    if (axis >= pool.axis_count()) in.fail("an axis of the kernel");
    return pool.axis(axis);
  }
  if (in.at_numbered('e')) {
    const ExprId expr = in.numbered('e');
    in.expect("<");
    return pool.dynamic(expr, in.number());
  }
  in.expect("(");
  const Index of = read_index(in);
  in.expect(")");
  const bool divides = in.accept("/");
  if (!divides) in.expect("%");
  const int64_t divisor = in.number();
  if (divisor <= 0) in.fail("a positive divisor");
  return divides ? pool.div(of, divisor) : pool.mod(of, divisor);
}

Index KernelReader::read_index(LineScanner& in) {
  Index out;
  do {
    if (in.at_numbered('i') || in.at_numbered('e') || in.at("(")) {
      out = IndexPool::add(out, read_term(in));
      continue;
    }
    const int64_t factor = in.number();
    if (in.accept("*"))
      out = IndexPool::add(out, IndexPool::scale(read_term(in), factor));
    else
      out.constant += factor;
  } while (in.accept("+"));
  return out;
}

std::vector<Bound> KernelReader::read_bounds(LineScanner& in) {
  std::vector<Bound> out;
  do {
    Bound b;
    b.low = in.number();
    in.expect("<=");
    b.index = read_index(in);
    in.expect("<");
    b.high = in.number();
    out.push_back(std::move(b));
  } while (in.accept(","));
  return out;
}

void KernelReader::read_condition(LineScanner& in, Expr& e) {
  if (in.accept("if")) e.bounds = read_bounds(in);
  if (in.accept("else")) e.bits = read_scalar(in, e.dtype);
}

void KernelReader::read_argument(LineScanner& in) {
  if (in.numbered('a') != k().arguments.size()) in.fail("the next argument");
  in.expect("=");
  Argument a;
  a.kind = in.accept("buffer") ? Argument::Kind::Buffer : Argument::Kind::Packed;
  if (a.kind == Argument::Kind::Packed) in.expect("weight");
  a.id = in.numbered(a.kind == Argument::Kind::Buffer ? 'b' : 'w');
  a.dtype = read_dtype(in);
  a.read = in.accept("read");
  a.written = in.accept("write");
  k().arguments.push_back(a);
}

void KernelReader::read_end(LineScanner& in) {
  RunEnd end{in.numbered('i')};
  end.argument = in.numbered('a');
  in.expect("[");
  end.element = in.number();
  in.expect("]");
  in.expect("by");
  end.step = in.number();
  k().ends.push_back(end);
}

void KernelReader::read_load(LineScanner& in, Expr& e) {
  e.argument = in.numbered('a');
  in.expect("[");
  e.index = read_index(in);
  in.expect("]");
}

void KernelReader::read_expr(LineScanner& in) {
  if (in.numbered('e') != k().exprs.size()) in.fail("the next expression");
  in.expect("=");
  static constexpr std::pair<std::string_view, Expr::Kind> kKinds[] = {
      {"load", Expr::Kind::Load},         {"constant", Expr::Kind::Constant},
      {"position", Expr::Kind::Position}, {"map", Expr::Kind::Map},
      {"cast", Expr::Kind::Cast},         {"bitcast", Expr::Kind::Bitcast},
      {"guard", Expr::Kind::Guard},       {"local", Expr::Kind::Local},
      {"checked", Expr::Kind::Checked},   {"descend", Expr::Kind::Descend}};
  const std::string_view kind = in.word();
  const auto row =
      std::ranges::find(kKinds, kind, &std::pair<std::string_view, Expr::Kind>::first);
  if (row == std::end(kKinds)) in.fail("a kind of expression");
  Expr e{row->second, read_dtype(in)};
  if (e.kind == Expr::Kind::Map) {
    const std::optional<Op> op = op_from_text(in.word());
    if (!op) in.fail("an operation");
    e.op = *op;
  }
  while (in.at_numbered('e') && e.kind != Expr::Kind::Position) {
    e.inputs.push_back(in.numbered('e'));
    in.accept(",");
  }
  switch (e.kind) {
  case Expr::Kind::Load:
    read_load(in, e);
    break;
  case Expr::Kind::Constant:
    e.bits = read_scalar(in, e.dtype);
    break;
  case Expr::Kind::Position:
    e.index = read_index(in);
    break;
  case Expr::Kind::Cast:
    e.near = in.accept("near");
    break;
  case Expr::Kind::Local:
    e.stage = in.numbered('s');
    break;
  case Expr::Kind::Checked:
    in.expect("<");
    e.limit = in.number();
    break;
  case Expr::Kind::Descend:
    in.expect("by");
    e.table = in.numbered('a');
    read_load(in, e);
    in.expect("step");
    e.stride = in.number();
    in.expect("times");
    e.limit = in.number();
    break;
  default:
    break;
  }
  read_condition(in, e);
  k().exprs.push_back(std::move(e));
}

void KernelReader::read_stage(LineScanner& in) {
  if (in.numbered('s') != k().stages.size()) in.fail("the next stage");
  in.expect("=");
  static constexpr std::string_view kKinds[] = {"reduce", "store", "scan", "scatter",
                                                "sort"};
  const auto kind = std::ranges::find(kKinds, in.word());
  if (kind == std::end(kKinds)) in.fail("a kind of stage");
  Stage s;
  s.kind = static_cast<StageKind>(kind - std::begin(kKinds));
  if (s.kind == StageKind::Reduce || s.kind == StageKind::Scan) {
    const std::optional<Op> op = op_from_text(in.word());
    if (!op) in.fail("a reduction");
    s.op = *op;
  }
  s.dtype = read_dtype(in);
  in.expect("over");
  s.inner = in.all_numbered('i');
  in.expect(":");
  s.value = in.numbered('e');
  read_stage_ends(in, s);
  k().stages.push_back(std::move(s));
}

void KernelReader::read_stage_ends(LineScanner& in, Stage& s) {
  if (in.accept("->")) {
    s.keeps = s.kind == StageKind::Reduce;
    s.argument = in.numbered('a');
    in.expect("[");
    s.index = read_index(in);
    in.expect("]");
  }
  if (in.accept("at")) s.position = read_index(in);
  if (in.accept("if")) s.domain = read_bounds(in);
  if (in.accept("useful")) s.useful = read_bounds(in);
  if (in.accept("short")) s.short_sums = in.all_counts();
  s.pad_lanes = in.accept("padded");
  s.nested = in.accept("nested");
  s.amplified = in.accept("amplified");
  s.flag = in.accept("flag");
  if (in.accept("first")) s.count = in.number();
  if (in.accept("combiner")) s.combiner = in.number();
}

void KernelReader::read_call(LineScanner& in) {
  CallStep call;
  const std::optional<Digest> digest = digest_from_hex(in.word());
  if (!digest) in.fail("a digest");
  call.digest = *digest;
  call.function = static_cast<uint32_t>(in.number());
  while (!in.done()) {
    if (in.at_numbered('a')) {
      call.tensors.push_back(in.numbered('a'));
      continue;
    }
    in.expect("scratch+");
    call.tensors.push_back(-1 - in.number());
  }
  k().other = std::move(call);
}

// A step of a sequence; it belongs to the kernel, whose parts come after it.
void KernelReader::read_step(LineScanner& in) {
  SequenceStep step;
  if (in.accept("launch part")) {
    step.part = static_cast<uint32_t>(in.number());
  } else if (in.accept("copy")) {
    step.kind = SequenceStep::Kind::Copy;
    step.count = in.number();
  } else if (in.accept("loop")) {
    step.kind = SequenceStep::Kind::Loop;
    step.depth = in.numbered('n');
    in.expect("<");
    step.count = in.number();
  } else {
    in.expect("end");
    step.kind = SequenceStep::Kind::End;
    step.depth = in.numbered('n');
  }
  while (!in.done()) {
    SequenceStep::Place place;
    place.argument = in.numbered('a');
    in.expect("+");
    place.offset = in.number();
    while (in.at("+") || in.at("~")) {
      SequenceStep::Move move;
      move.alternates = in.accept("~");
      if (!move.alternates) in.expect("+");
      move.stride = in.number();
      in.expect("*");
      move.depth = in.numbered('n');
      place.moves.push_back(move);
    }
    step.places.push_back(std::move(place));
  }
  sequence_of(k()).steps.push_back(std::move(step));
}

} // namespace

std::optional<Kernel> parse_kernel(std::string_view text, TextFault& fault) {
  return KernelReader().read(text, fault);
}

} // namespace svod
