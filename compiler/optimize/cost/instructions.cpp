// A kernel's loops as code generation writes them: whole tiles, remainders and ends apart
// are counted each.
#include "compiler/optimize/cost/instructions.h"

#include "compiler/optimize/cost/tile_counter.h"

namespace svod::cost {

Instructions& Instructions::operator+=(const Instructions& o) {
  products += o.products, operations += o.operations, quotients += o.quotients;
  loads += o.loads, elements += o.elements, stored += o.stored, stores += o.stores;
  plain += o.plain, waited += o.waited, nests += o.nests, spills += o.spills;
  return *this;
}

Instructions operator*(Instructions a, double n) {
  a.products *= n, a.operations *= n, a.quotients *= n;
  a.loads *= n, a.elements *= n, a.stored *= n, a.stores *= n;
  a.plain *= n, a.waited *= n, a.nests *= n, a.spills *= n;
  return a;
}

Instructions work_of(Op op) {
  switch (op) {
#define WORK(name, p, o, q)                                                              \
  case Op::name:                                                                         \
    return {.products = p, .operations = o, .quotients = q};
#include "compiler/optimize/cost/op_work.def"
  default:
    return {.operations = 1};
  }
}

Instructions instructions_of(const ScheduledKernel& kernel, const LevelSchedule& how,
                             const Level& level) {
  const Dependence dependence = dependence_of(kernel);
  Instructions out;
  for (const Piece& piece : pieces_of(kernel, how))
    out += TileCounter(kernel, how, level, dependence, piece).count() * piece.times;
  return out;
}

} // namespace svod::cost
