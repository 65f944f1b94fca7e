// Quantisations: round(x) + zero as a byte is one function of the prelude, in vectors
// that are neighbours four at a time, and a byte that only becomes a float again never is
// one. What takes a byte to a byte by way of exponentials or divisions (the GELU of a
// quantised network: 49 cycles for 16) is a table of 256, computed when packing.
#include "compiler/codegen/kernel_emitter.h"
#include "compiler/ir/fold.h"

#include <algorithm>

namespace svod {

namespace {

// A byte made of round(value) + zero, zero in [0, 255].
struct RoundedByte {
  ExprId id = 0; // of the byte
  ExprId value = 0;
  int zero = 0;
  bool near = false; // known to be far from what 32 bits take
  std::string function(const std::string& name) const {
    return name + (near ? "<true>(" : "(");
  }
};

std::optional<RoundedByte> rounded_byte(const ScheduledKernel& k, ExprId id) {
  const Expr& cast = k.exprs[id];
  if (cast.kind != Expr::Kind::Cast || cast.dtype != DType::U8) return std::nullopt;
  RoundedByte out;
  out.id = id;
  out.near = cast.near;
  const Expr* number = &k.exprs[cast.inputs[0]];
  if (number->dtype != DType::F32) return std::nullopt;
  if (number->kind == Expr::Kind::Map && number->op == Op::Add) {
    const Expr& zero = k.exprs[number->inputs[1]];
    if (zero.kind != Expr::Kind::Constant) return std::nullopt;
    const double value = scalar_value(zero.dtype, zero.bits);
    if (!(value >= 0 && value <= 255) || value != static_cast<int>(value))
      return std::nullopt;
    out.zero = static_cast<int>(value);
    number = &k.exprs[number->inputs[0]];
  }
  if (number->kind != Expr::Kind::Map || number->op != Op::Round) return std::nullopt;
  out.value = number->inputs[0];
  return out;
}

// Such a byte as a float again, after adding `beside` in 32 bits.
struct FloatOfByte {
  RoundedByte byte;
  int beside = 0;
};

std::optional<FloatOfByte> float_of_byte(const ScheduledKernel& k, const Expr& e) {
  constexpr int kMost = 1 << 16;
  if (e.kind != Expr::Kind::Cast || e.dtype != DType::F32) return std::nullopt;
  int beside = 0;
  ExprId id = e.inputs[0];
  const Expr& sum = k.exprs[id];
  if (sum.kind == Expr::Kind::Map && sum.op == Op::Add && sum.dtype == DType::I32) {
    const Expr& other = k.exprs[sum.inputs[1]];
    if (other.kind != Expr::Kind::Constant) return std::nullopt;
    beside = static_cast<int32_t>(other.bits);
    if (beside < -kMost || beside > kMost) return std::nullopt;
    id = sum.inputs[0];
  }
  const Expr& wide = k.exprs[id];
  if (wide.kind == Expr::Kind::Cast && wide.dtype == DType::I32) id = wide.inputs[0];
  std::optional<RoundedByte> byte = rounded_byte(k, id);
  if (!byte) return std::nullopt;
  return FloatOfByte{*byte, beside};
}

bool is_byte(DType dtype) { return dtype == DType::U8 || dtype == DType::I8; }

// The same computation over all 256 bytes, as a graph.
class ByteFunction {
public:
  ByteFunction(const ScheduledKernel& k, ExprId root) : k_(k), root_(root) {}

  // Its values by the bits of the byte it takes; nothing where it takes anything else, or
  // would be cheaper computed.
  std::optional<Tensor> table() {
    const std::optional<NodeId> result = node(root_);
    if (!result || !costly_ || !source) return std::nullopt;
    return known_tensor(g_, *result);
  }
  std::optional<ExprId> source;

private:
  static constexpr int64_t kBytes = 256;

  std::optional<NodeId> node(ExprId id) {
    if (auto found = nodes_.find(id); found != nodes_.end()) return found->second;
    return nodes_[id] = make_node(id);
  }

  std::optional<NodeId> make_node(ExprId id) {
    const Expr& e = k_.exprs[id];
    if (e.kind == Expr::Kind::Constant)
      return constant_bits(g_, e.dtype, {kBytes}, e.bits);
    if (is_byte(e.dtype) && id != root_) return bytes(id);
    const bool converts = e.kind == Expr::Kind::Cast || e.kind == Expr::Kind::Bitcast;
    if (e.kind != Expr::Kind::Map && !converts) return std::nullopt;
    std::vector<NodeId> inputs;
    for (ExprId in : e.inputs) {
      const std::optional<NodeId> input = node(in);
      if (!input) return std::nullopt;
      inputs.push_back(*input);
    }
    if (e.kind == Expr::Kind::Cast) return cast(g_, inputs[0], e.dtype);
    if (e.kind == Expr::Kind::Bitcast) return bitcast(g_, inputs[0], e.dtype);
    costly_ = costly_ || is_costly(e.op);
    return map(g_, e.op, std::move(inputs));
  }

  // Every byte there is; the one that the computation starts from.
  std::optional<NodeId> bytes(ExprId id) {
    if (source && *source != id) return std::nullopt;
    source = id;
    Tensor all{k_.exprs[id].dtype, {kBytes}, {}};
    for (int64_t i = 0; i < kBytes; ++i) all.bytes.push_back(static_cast<std::byte>(i));
    return tensor_node(g_, std::move(all));
  }

  const ScheduledKernel& k_;
  ExprId root_;
  bool costly_ = false;
  Graph g_;
  std::map<ExprId, std::optional<NodeId>> nodes_;
};

} // namespace

bool makes_bytes(const ScheduledKernel& k) {
  return std::ranges::any_of(k.exprs, [&](const Expr& e) {
    return e.kind == Expr::Kind::Cast && is_byte(e.dtype) &&
           is_float(k.exprs[e.inputs[0]].dtype);
  });
}

const KernelEmitter::Lookup* KernelEmitter::lookup_of(ExprId id) {
  if (!is_byte(k_.exprs[id].dtype)) return nullptr;
  const auto [found, is_new] = lookups_.try_emplace(id);
  if (!is_new) return found->second ? &*found->second : nullptr;
  ByteFunction function(k_, id);
  const std::optional<Tensor> table = function.table();
  if (!table) return nullptr;
  std::string values;
  for (std::byte b : table->bytes)
    values += std::to_string(std::to_integer<int>(b)) + ",";
  const std::string name = fresh("table");
  functions_[name] = "alignas(64) static const u8 " + name + "[] = {" + values + "};\n";
  found->second = Lookup{name, *function.source};
  return &*found->second;
}

KernelEmitter::Value KernelEmitter::make_lookup(const Lookup& table, DType dtype,
                                                const Point& p) {
  const Value x = eval(table.source, p);
  const std::string bytes = (x.vector ? "bits_<vu8>(" : "bits_<u8>(") + x.name + ")";
  const std::string to = type(dtype, x.vector);
  return {declare(to, "bits_<" + to + ">(lookup(" + table.name + ", " + bytes + "))"),
          x.vector};
}

std::optional<KernelEmitter::Value> KernelEmitter::make_byte_cast(const Expr& e,
                                                                  const Point& p) {
  std::optional<FloatOfByte> f = float_of_byte(k_, e);
  if (f && lookup_of(f->byte.id) == nullptr) {
    const Value x = eval(f->byte.value, p);
    const int zero = f->byte.zero;
    return Value{declare(type(DType::F32, x.vector),
                         "round_within(" + x.name + ", f32(" + std::to_string(-zero) +
                             "), f32(" + std::to_string(255 - zero) + "), f32(" +
                             std::to_string(zero + f->beside) + "))"),
                 x.vector};
  }
  const auto id = static_cast<ExprId>(&e - k_.exprs.data());
  if (const Lookup* table = lookup_of(id)) return make_lookup(*table, e.dtype, p);
  std::optional<RoundedByte> byte = rounded_byte(k_, id);
  if (!byte) return std::nullopt;
  const Value x = eval(byte->value, p);
  return Value{declare(type(DType::U8, x.vector), byte->function("round_to_byte") +
                                                      x.name + ", " +
                                                      std::to_string(byte->zero) + ")"),
               x.vector};
}

// Four vectors along a tile axis whose positions follow each other in memory as vectors
// do.
bool KernelEmitter::emit_byte_rows(const Stage& s, const std::vector<Point>& all) {
  constexpr int kRows = 4;
  const std::optional<RoundedByte> byte = rounded_byte(k_, s.value);
  int64_t lanes = 0, step = 0;
  if (!byte || !on_lanes(byte->value) || !k_.inner(s).empty()) return false;
  if (lookup_of(s.value) != nullptr) return false;
  if (!k_.indices.affine_in(s.index, *k_.loops.lane, lanes) || lanes != 1) return false;
  const auto may_fail = [&](const Point& p) {
    return std::ranges::any_of(s.domain, [&](const Bound& b) { return !holds(b, p); });
  };
  if (std::ranges::any_of(all, may_fail)) return false;
  size_t axis = 0;
  while (axis < counts_.size() &&
         !(counts_[axis] >= kRows &&
           k_.indices.affine_in(s.index, tile_.counts[axis].first, step) &&
           step == k_.loops.lanes))
    ++axis;
  if (axis == counts_.size()) return false;
  for (const Point& p : all) {
    if (p[axis] % kRows != 0 && p[axis] / kRows < counts_[axis] / kRows) continue;
    if (p[axis] / kRows >= counts_[axis] / kRows) {
      emit_write(s, eval(s.value, p), p);
      continue;
    }
    std::string rows;
    Point row = p;
    for (int i = 0; i < kRows; ++i, ++row[axis])
      rows += ", " + splat(eval(byte->value, row), DType::F32);
    line(byte->function("store_bytes") + "a" + std::to_string(s.argument) + " + " +
         index_text(s.index, p, false) + ", " + std::to_string(byte->zero) + rows + ");");
  }
  return true;
}

} // namespace svod
