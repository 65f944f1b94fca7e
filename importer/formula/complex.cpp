// Pairs of parts and the values that stand for them.
#include "importer/formula/complex.h"

#include "importer/formula/packing.h"

namespace svod::importer {

NodeId complex_value(CompoundTable& compounds, NodeId pairs) {
  return compounds.add({Compound::Kind::Complex, {pairs}});
}

NodeId complex_weight(Graph& g, CompoundTable& compounds, const ModelTensor& tensor,
                      DType part) {
  Shape shape = tensor.dims;
  shape.push_back(2);
  return complex_value(compounds,
                       weight(g, part, shape, g.add_blob(tensor.bytes, tensor.owner)));
}

Expr part_of_pairs(Expr pairs, int64_t which) {
  const int64_t last = pairs.rank() - 1;
  return squeeze(cut(pairs, last, which, 1), last);
}

Expr pairs_of(Expr real, Expr imaginary) {
  const int64_t last = real.rank();
  return join({unsqueeze(real, last), unsqueeze(imaginary, last)}, last);
}

bool is_complex(const CompoundTable& compounds, NodeId value) {
  return is_compound(value) && compounds[value].kind == Compound::Kind::Complex;
}

NodeId inside(const CompoundTable& compounds, NodeId value) {
  return is_complex(compounds, value) ? compounds[value].items[0] : value;
}

NodeId wrapped_if(CompoundTable& compounds, bool complex, NodeId tensor) {
  return complex ? complex_value(compounds, tensor) : tensor;
}

} // namespace svod::importer
