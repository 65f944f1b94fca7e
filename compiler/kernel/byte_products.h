// Sums of products of bytes: their factors, and the windows that neighbouring sums share.
#pragma once

#include "compiler/kernel/stage_work.h"

#include <optional>

namespace svod {

// The factors of a sum of products of bytes, one U8 and one I8, or a known I8 and another
// one; null where the stage is something else.
struct ByteOperands {
  const Expr* x = nullptr;       // in a buffer
  const Expr* w = nullptr;       // known when packing
  std::optional<ExprId> decoded; // what is made of w: bytes of fewer bits
  bool both_signed = false;
};
ByteOperands byte_operands(const ScheduledKernel& kernel, const Stage& stage);

// Neighbouring positions of `axis` whose windows one vector of interleaved bytes of x
// serves: of four taps, three count, and the next window begins at the second one, with
// its weights moved up by a byte. 1: none does.
int windows_together(const ScheduledKernel& kernel, const Stage& stage, const Expr& x,
                     AxisId axis);

} // namespace svod
