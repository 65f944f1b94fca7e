// Quantisations: round(x) + zero as a byte is one function of the prelude, in vectors
// that are neighbours four at a time, and a byte that only becomes a float again never is
// one. What takes a byte to a byte by way of exponentials or divisions (the GELU of a
// quantised network: 49 cycles for 16) is a table of 256, computed when packing.
#include "compiler/codegen/element_text.h"
#include "compiler/codegen/kernel_emitter.h"
#include "compiler/ir/fold.h"
#include "compiler/kernel/byte_table.h"
#include "compiler/support/check.h"

#include <algorithm>

namespace svod::codegen {

namespace {

// A byte made of round(value) + zero, zero in what the byte takes.
struct RoundedByte {
  ExprId id = 0; // of the byte
  ExprId value = 0;
  int zero = 0;
  DType dtype = DType::U8;
  bool near = false; // known to be far from what 32 bits take
  int least() const { return dtype == DType::I8 ? -128 : 0; }
  int most() const { return least() + 255; }
  std::string rounding() const {
    return dtype == DType::I8 ? "round_to_signed" : "round_to_byte";
  }
  std::string function(const std::string& name) const {
    return name + (near ? "<true>(" : "(");
  }
};

std::optional<RoundedByte> rounded_byte(const ScheduledKernel& k, ExprId id) {
  const Expr& cast = k.exprs[id];
  if (cast.kind != Expr::Kind::Cast || !is_byte(cast.dtype)) return std::nullopt;
  RoundedByte out;
  out.id = id;
  out.dtype = cast.dtype;
  out.near = cast.near;
  const Expr* number = &k.exprs[cast.inputs[0]];
  if (number->dtype != DType::F32) return std::nullopt;
  if (number->kind == Expr::Kind::Map && number->op == Op::Add) {
    const Expr& zero = k.exprs[number->inputs[1]];
    if (zero.kind != Expr::Kind::Constant) return std::nullopt;
    const double value = scalar_value(zero.dtype, zero.bits);
    if (!(value >= out.least() && value <= out.most()) ||
        value != static_cast<int>(value))
      return std::nullopt;
    out.zero = static_cast<int>(value);
    number = &k.exprs[number->inputs[0]];
  }
  if (number->kind != Expr::Kind::Map || number->op != Op::Round) return std::nullopt;
  out.value = number->inputs[0];
  return out;
}

// The same of a signed byte whose top bit is flipped, as products of bytes read it: an
// unsigned one with another zero point, but for NaN.
std::optional<RoundedByte> stored_byte(const ScheduledKernel& k, ExprId id) {
  const Expr& flip = k.exprs[id];
  if (flip.kind != Expr::Kind::Map || flip.op != Op::Xor || flip.dtype != DType::U8)
    return rounded_byte(k, id);
  const Expr &bits = k.exprs[flip.inputs[0]], &top = k.exprs[flip.inputs[1]];
  if (bits.kind != Expr::Kind::Bitcast || top.kind != Expr::Kind::Constant ||
      top.bits != 128)
    return std::nullopt;
  std::optional<RoundedByte> byte = rounded_byte(k, bits.inputs[0]);
  if (!byte || byte->dtype != DType::I8 || !byte->near) return std::nullopt;
  byte->dtype = DType::U8;
  byte->zero += 128;
  return byte;
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

} // namespace

bool makes_bytes(const ScheduledKernel& k) {
  return std::ranges::any_of(k.exprs, [&](const Expr& e) {
    return e.kind == Expr::Kind::Cast && is_byte(e.dtype) &&
           is_float(k.exprs[e.inputs[0]].dtype);
  });
}

const ExpressionEmitter::Lookup* ExpressionEmitter::lookup_of(ExprId id) {
  if (std::ranges::count(how_.tables, id) == 0) return nullptr;
  const auto [found, is_new] = lookups_.try_emplace(id);
  if (!is_new) return &found->second;
  const std::optional<ByteTable> table = byte_table(k_, id);
  SVOD_CHECK(table) << "e" << id << " is not made of one byte";
  std::string values;
  for (std::byte b : table->values.bytes)
    values += std::to_string(std::to_integer<int>(b)) + ",";
  const std::string name = fresh("table");
  functions_[name] = "alignas(64) static const u8 " + name + "[] = {" + values + "};\n";
  found->second = Lookup{name, table->source};
  return &found->second;
}

ExpressionEmitter::Value ExpressionEmitter::make_lookup(const Lookup& table, DType dtype,
                                                        const Point& p) {
  const Value x = eval(table.source, p);
  const std::string bytes = (x.vector ? "bits_<vu8>(" : "bits_<u8>(") + x.name + ")";
  const std::string to = type(dtype, x.vector);
  return {declare(to, "bits_<" + to + ">(lookup(" + table.name + ", " + bytes + "))"),
          x.vector};
}

std::optional<ExpressionEmitter::Value>
ExpressionEmitter::make_byte_cast(const Expr& e, const Point& p) {
  std::optional<FloatOfByte> f = float_of_byte(k_, e);
  if (f && lookup_of(f->byte.id) == nullptr) {
    const Value x = eval(f->byte.value, p);
    const RoundedByte& byte = f->byte;
    const bool keeps_nan = byte.dtype == DType::I8 && !byte.near;
    const auto number = [](int value) { return "f32(" + std::to_string(value) + ")"; };
    return Value{declare(type(DType::F32, x.vector),
                         (keeps_nan ? "round_within_signed(" : "round_within(") + x.name +
                             ", " + number(byte.least() - byte.zero) + ", " +
                             number(byte.most() - byte.zero) + ", " +
                             number(byte.zero + f->beside) + ")"),
                 x.vector};
  }
  const auto id = static_cast<ExprId>(&e - k_.exprs.data());
  if (const Lookup* table = lookup_of(id)) return make_lookup(*table, e.dtype, p);
  std::optional<RoundedByte> byte = rounded_byte(k_, id);
  if (!byte) return std::nullopt;
  const Value x = eval(byte->value, p);
  return Value{declare(type(byte->dtype, x.vector), byte->function(byte->rounding()) +
                                                        x.name + ", " +
                                                        std::to_string(byte->zero) + ")"),
               x.vector};
}

// Four vectors along a tile axis whose positions follow each other in memory as vectors
// do.
bool WriteEmitter::emit_byte_rows(const Stage& s, const std::vector<Point>& all) {
  constexpr int kRows = 4;
  const std::optional<RoundedByte> byte = stored_byte(k_, s.value);
  int64_t lanes = 0, step = 0;
  if (!how(s).byte_rows || !byte || !on_lanes(byte->value)) return false;
  if (lookup_of(s.value) != nullptr || lookup_of(byte->id) != nullptr) return false;
  if (!k_.indices.affine_in(s.index, *k_.loops.lane, lanes) || lanes != 1) return false;
  const auto may_fail = [&](const Point& p) {
    return std::ranges::any_of(s.domain, [&](const Bound& b) { return !holds(b, p); });
  };
  if (std::ranges::any_of(all, may_fail)) return false;
  size_t axis = 0;
  while (axis < counts_.size() &&
         !(counts_[axis] >= kRows && k_.indices.affine_in(s.index, axes_[axis], step) &&
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

} // namespace svod::codegen
