// The end of a quantised layer in integers: the upper half of a product with a known
// number, shifted and clamped to a byte. Where the level has instructions that narrow
// with saturation, the clamp to what a byte holds is theirs.
#include "compiler/codegen/element_text.h"
#include "compiler/codegen/kernel_emitter.h"
#include "compiler/ir/fold.h"

#include <algorithm>

namespace svod::codegen {

namespace {

// A byte made of value >> right, clamped to [low, high].
struct NarrowByte {
  ExprId value = 0;
  int64_t right = 0, low = INT32_MIN, high = INT32_MAX;
};

bool is_map(const Expr& e, Op op) {
  return e.kind == Expr::Kind::Map && e.op == op && e.dtype == DType::I32;
}

// The constant among the operands, as the second one; nothing where it is none.
std::optional<int64_t> known_operand(const ScheduledKernel& k, const Expr& e) {
  const Expr& known = k.exprs[e.inputs[1]];
  if (known.kind != Expr::Kind::Constant) return std::nullopt;
  return static_cast<int32_t>(known.bits);
}

std::optional<NarrowByte> narrow_byte(const ScheduledKernel& k, const Expr& cast) {
  if (cast.kind != Expr::Kind::Cast || !is_byte(cast.dtype)) return std::nullopt;
  NarrowByte out;
  const Expr* e = &k.exprs[out.value = cast.inputs[0]];
  if (e->dtype != DType::I32) return std::nullopt;
  for (Op op : {Op::Max, Op::Min, Op::Max}) {
    const std::optional<int64_t> bound =
        is_map(*e, op) ? known_operand(k, *e) : std::nullopt;
    if (!bound) continue;
    // The outer clamp wins where they cross, which those of quantisations do not.
    if (op == Op::Max)
      out.low = std::max(out.low, *bound);
    else
      out.high = std::min(out.high, *bound);
    e = &k.exprs[out.value = e->inputs[0]];
  }
  const int64_t least = cast.dtype == DType::I8 ? INT8_MIN : 0,
                most = cast.dtype == DType::I8 ? INT8_MAX : UINT8_MAX;
  if (out.low < least || out.high > most || out.low > out.high) return std::nullopt;
  const std::optional<int64_t> right =
      is_map(*e, Op::ShiftRight) ? known_operand(k, *e) : std::nullopt;
  if (right && *right >= 0 && *right < 32) out.right = *right, out.value = e->inputs[0];
  return out;
}

// Half of the even number that the upper half of a product is with.
std::optional<int64_t> half_factor(const ScheduledKernel& k, const Expr& e) {
  if (!is_map(e, Op::MulHigh)) return std::nullopt;
  const std::optional<int64_t> factor = known_operand(k, e);
  if (!factor || *factor % 2 != 0) return std::nullopt;
  return *factor / 2;
}

} // namespace

bool narrows_integers(const ScheduledKernel& k) {
  return std::ranges::any_of(
      k.exprs, [&](const Expr& e) { return narrow_byte(k, e) || half_factor(k, e); });
}

std::optional<ExpressionEmitter::Value>
ExpressionEmitter::make_narrow_cast(const Expr& e, const Point& p) {
  const std::optional<NarrowByte> byte = how_.narrows ? narrow_byte(k_, e) : std::nullopt;
  if (!byte || !on_lanes(byte->value)) return std::nullopt;
  const Value x = eval(byte->value, p);
  const std::string element = compute_type(e.dtype), to = type(e.dtype, true);
  std::string text =
      "narrowed<" + element + ", " + std::to_string(byte->right) + ">(" + x.name + ")";
  const bool is_signed = e.dtype == DType::I8;
  const auto clamp = [&](const char* function, int64_t bound) {
    text = function +
           ("(" + text + ", " + to + "(" + element + "(" + std::to_string(bound) + ")))");
  };
  if (byte->low > (is_signed ? INT8_MIN : 0)) clamp("max_", byte->low);
  if (byte->high < (is_signed ? INT8_MAX : UINT8_MAX)) clamp("min_", byte->high);
  return Value{declare(to, text), true};
}

std::optional<ExpressionEmitter::Value>
ExpressionEmitter::make_high_product(const Expr& e, const Point& p) {
  const std::optional<int64_t> half = how_.narrows ? half_factor(k_, e) : std::nullopt;
  if (!half || !on_lanes(e.inputs[0])) return std::nullopt;
  const Value x = eval(e.inputs[0], p);
  return Value{declare(type(e.dtype, true), "high_products(" + x.name + ", i32(" +
                                                std::to_string(*half) + "))"),
               true};
}

} // namespace svod::codegen
