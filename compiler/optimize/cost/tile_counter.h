// Counts the instructions of one tile: of expressions (count_expressions.cpp) and of
// stages (count_stages.cpp). Only those two and instructions.cpp see it.
#pragma once

#include "compiler/optimize/cost/instructions.h"
#include "compiler/optimize/cost/pieces.h"

namespace svod::cost {

// Instructions of the emitted form: a bound that a branch or a choice looks at; a lane
// that is taken or put one by one; a vector of which some lanes are read.
inline constexpr double kBound = 2, kLane = 2, kPartOfVector = 1.5;
// Of an index: a quotient or a remainder by a constant; an address.
inline constexpr double kIndexQuotient = 4, kAddress = 0.25;
// Of a loop's step, and of a running best's.
inline constexpr double kLoop = 2, kBest = 5;
// Vectors of sums whose lanes are summed: shuffles and sums, and of several at once.
inline constexpr double kAcross = 9, kAcrossTogether = 4;
// A row of a square that is turned in registers, and a vector narrowed to bytes.
inline constexpr double kSwap = 6, kNarrow = 5;
// Clocks, in those of a multiply-add, that a greatest or least waits for the last one,
// and a sum.
inline constexpr double kCompareWaits = 1.5, kSumWaits = 0.75;

// Bytes of an element as it is computed with.
inline int compute_bytes(DType dtype) {
  return byte_size(is_narrow_float(dtype) ? DType::F32 : dtype);
}

// Of quotients and remainders in an index.
double quotients_in(const IndexPool& pool, const Index& index);

class TileCounter {
public:
  TileCounter(const ScheduledKernel& k, const LevelSchedule& how, const Level& level,
              const Dependence& dependence, const Piece& piece)
      : k_(k), how_(how), level_(level), dependence_(dependence), piece_(piece),
        seen_(k.exprs.size()) {}
  Instructions count();

private:
  struct Nest { // the loops of the stage that is counted
    const Stage* stage = nullptr;
    const StageSchedule* how = nullptr;
    std::vector<AxisId> loops; // outermost first, without lanes and dots
    bool written_out = false;
  };

  Nest nest_of(const Stage& s) const;
  double steps(const Nest& n) const;
  double registers(DType dtype) const;
  double parts_of(DType dtype, bool vector) const {
    return vector ? registers(dtype) : 1.0;
  }
  bool depends(ExprId id, AxisId a) const { return dependence_[id][a]; }
  bool vector(ExprId id) const { return k_.loops.lane && depends(id, *k_.loops.lane); }
  double times(const Nest& n, ExprId id) const;
  double distinct_loads(const Nest& n, const Expr& e, ExprId id) const;
  double hoisted(const Nest& n, ExprId id, double times);
  double bounds(const std::vector<Bound>& bounds, bool& on_lanes) const;
  Instructions one_load(const Expr& e) const;
  void expression(const Nest& n, ExprId id);
  void below(const Nest& n, ExprId id);
  void reduce(uint32_t number);
  void store(uint32_t number);
  void other(uint32_t number);
  void loops(const Nest& n);
  bool turns(const Stage& s) const;
  Instructions written(const Stage& s, ExprId value) const;
  double spilled(const Nest& n, double sums) const;
  double shared_by_stores() const;
  void spill(double registers, double times);

  const ScheduledKernel& k_;
  const LevelSchedule& how_;
  const Level& level_;
  const Dependence& dependence_;
  const Piece& piece_;
  std::vector<bool> seen_;
  double hoisted_ = 0; // registers that loops around the tile fill once
  Instructions total_;
};

} // namespace svod::cost
