// The exponentials that a softmax divides by their sum. Of a row whose scores are far
// apart, or under a mask of -100 as Swin's shifted windows have it, some are below the
// least normal number: an Intel processor takes more than a hundred clocks for each
// product with one, here and in what reads the result (Swin-T of four pictures: 166 of
// 556 ms, most of them in the products with the values, at 2 GFLOP/s).
//
// Their sum is at least 1 and at most the row's length. What that length would bring
// below the least normal number, 2^-126, is 0 instead.
#include "compiler/optimize/choose.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace svod::optimize {

static Expr number(float value) {
  Expr e{Expr::Kind::Constant, DType::F32};
  e.bits = std::bit_cast<uint32_t>(value);
  return e;
}

// Whether e is v - m, and m the greatest of the row.
static bool is_below_greatest(const Kernel& k, const Expr& e) {
  if (e.kind != Expr::Kind::Map || e.op != Op::Sub || e.dtype != DType::F32) return false;
  const Expr& greatest = k.exprs[e.inputs[1]];
  if (greatest.kind != Expr::Kind::Local) return false;
  const Stage& s = k.stages[greatest.stage];
  return s.kind == StageKind::Reduce && s.op == Op::ReduceMax;
}

// Below the tail an exponent is -infinite, whose exponential takes no product to be 0.
static ExprId without_tail(Kernel& k, ExprId exponent, int64_t row) {
  const double least = std::numeric_limits<float>::min();
  const ExprId tail =
      k.add(number(static_cast<float>(std::log(least * static_cast<double>(row)))));
  const ExprId nothing = k.add(number(-std::numeric_limits<float>::infinity()));
  Expr below{Expr::Kind::Map, DType::Bool, Op::Less};
  below.inputs = {exponent, tail};
  const ExprId is_tail = k.add(std::move(below));
  Expr flushed{Expr::Kind::Map, DType::F32, Op::Select};
  flushed.inputs = {is_tail, nothing, exponent};
  return k.add(std::move(flushed));
}

void flush_tails(ScheduledKernel& k) {
  if (!k.has_lane_axis()) return;
  for (size_t i = 0; i < k.stages.size(); ++i) {
    const Stage& s = k.stages[i];
    const ExprId value = s.value;
    const Expr& e = k.exprs[value];
    const bool sums = s.kind == StageKind::Reduce && s.op == Op::ReduceSum;
    if (sums && e.kind == Expr::Kind::Map && e.op == Op::Exp &&
        is_below_greatest(k, k.exprs[e.inputs[0]])) {
      const ExprId exponent = without_tail(k, e.inputs[0], positions_along(k, s.inner));
      k.exprs[value].inputs[0] = exponent;
    }
  }
}

} // namespace svod::optimize
