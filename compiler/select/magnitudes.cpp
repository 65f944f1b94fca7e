// The greatest magnitude that an expression can have, from the range of integer types,
// the values of known weights, and sums, products and extremes of such.
#include "compiler/select/magnitudes.h"

#include "compiler/ir/build.h"
#include "compiler/ir/fold.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace svod::select {

namespace {

constexpr double kUnknown = INFINITY;
constexpr double kMostNear = 0x1p30;
// Elements of a weight that are looked at.
constexpr int64_t kMostElements = 1 << 20;

double of_type(DType dtype) {
  const bool narrow = dtype == DType::Bool || dtype == DType::U8 || dtype == DType::I8 ||
                      dtype == DType::U16 || dtype == DType::I16 || dtype == DType::U32 ||
                      dtype == DType::I32;
  return narrow ? std::ldexp(1.0, 8 * byte_size(dtype)) : kUnknown;
}

double of_value(DType dtype, uint64_t bits) {
  const double value = std::abs(scalar_value(dtype, bits));
  return std::isfinite(value) ? value : kUnknown;
}

class Magnitudes {
public:
  explicit Magnitudes(FusedGraph& fused) : f_(fused), weights_(fused.packed.size()) {}
  void mark(Kernel& kernel);

private:
  double of(const Kernel& k, ExprId id);
  double of_map(const Kernel& k, const Expr& e);
  double of_load(const Kernel& k, const Expr& e);
  double of_local(const Kernel& k, const Expr& e);
  double of_weight(uint32_t packed);

  FusedGraph& f_;
  std::vector<std::optional<double>> weights_; // of those asked for
  std::vector<std::optional<double>> known_;   // of the kernel's expressions
};

double Magnitudes::of_weight(uint32_t packed) {
  std::optional<double>& most = weights_[packed];
  if (most) return *most;
  const PackedWeight& w = f_.packed[packed];
  most = kUnknown;
  const auto values = unnoted_tensor(f_.graph, w.source, kMostElements);
  if (w.dtype != DType::F32 || !values || values->dtype != DType::F32) return *most;
  double of_values = 0;
  for (double value : doubles_of(*values))
    of_values = std::max(of_values, std::isfinite(value) ? std::abs(value) : kUnknown);
  if (of_values == kUnknown) return *most; // as good as not known
  // Weights of nearly these values have the same power of two.
  const int exponent = of_values == 0 ? 0 : std::ilogb(of_values) + 1;
  note_fact(f_.graph, w.source, {.question = ValueQuestion::Within, .number = exponent});
  most = std::max(of_value(w.dtype, w.fill_bits), std::ldexp(1.0, exponent));
  return *most;
}

double Magnitudes::of_load(const Kernel& k, const Expr& e) {
  const Argument& a = k.arguments[e.argument];
  if (a.kind != Argument::Kind::Packed) return kUnknown;
  const double outside = e.bounds.empty() ? 0 : of_value(e.dtype, e.bits);
  return std::max(outside, of_weight(a.id));
}

double Magnitudes::of_map(const Kernel& k, const Expr& e) {
  switch (e.op) {
  case Op::Add:
  case Op::Sub:
    return of(k, e.inputs[0]) + of(k, e.inputs[1]);
  case Op::Mul: {
    // Nothing times what is not known may be NaN.
    const double a = of(k, e.inputs[0]), b = of(k, e.inputs[1]);
    return a == kUnknown || b == kUnknown ? kUnknown : a * b;
  }
  case Op::Min:
  case Op::Max:
    return std::max(of(k, e.inputs[0]), of(k, e.inputs[1]));
  case Op::Round:
    return of(k, e.inputs[0]) + 1;
  default:
    return kUnknown;
  }
}

// The extremes of what is there; an empty extreme is infinite.
double Magnitudes::of_local(const Kernel& k, const Expr& e) {
  const Stage& s = k.stages[e.stage];
  const bool extreme = s.op == Op::ReduceMin || s.op == Op::ReduceMax;
  return extreme && s.domain.empty() ? of(k, s.value) : kUnknown;
}

double Magnitudes::of(const Kernel& k, ExprId id) {
  if (known_[id]) return *known_[id];
  const Expr& e = k.exprs[id];
  double most = of_type(e.dtype);
  if (e.dtype == DType::F32) {
    if (e.kind == Expr::Kind::Constant) most = of_value(e.dtype, e.bits);
    if (e.kind == Expr::Kind::Cast) most = of(k, e.inputs[0]);
    if (e.kind == Expr::Kind::Map) most = of_map(k, e);
    if (e.kind == Expr::Kind::Load) most = of_load(k, e);
    if (e.kind == Expr::Kind::Local) most = of_local(k, e);
  }
  known_[id] = most;
  return most;
}

void Magnitudes::mark(Kernel& k) {
  known_.assign(k.exprs.size(), std::nullopt);
  for (Expr& e : k.exprs)
    if (e.kind == Expr::Kind::Cast && e.dtype == DType::U8 &&
        k.exprs[e.inputs[0]].dtype == DType::F32)
      e.near = of(k, e.inputs[0]) < kMostNear;
}

} // namespace

void find_magnitudes(FusedGraph& fused) {
  Magnitudes magnitudes(fused);
  for (Kernel& kernel : fused.kernels) magnitudes.mark(kernel);
}

} // namespace svod::select
