// The shared formulas of operator rules.
#include "importer/formula/formula.h"

#include "compiler/support/diags.h"

#include <numbers>

namespace svod::importer {

Expr gelu(Expr x) { return x * 0.5 * (erf(x * (std::numbers::sqrt2 / 2)) + 1); }

Expr gelu_tanh(Expr x) {
  const double scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi; // sqrt(2 / pi)
  return x * 0.5 * (tanh((x + x * x * x * 0.044715) * scale) + 1);
}

Expr softmax(Expr x, const std::vector<int64_t>& axes) {
  const Expr e = exp(x - reduce(Op::ReduceMax, x, axes));
  return e / sum(e, axes);
}

Expr activation(NodeImport& node, const std::string& name, Expr x,
                const std::vector<float>& parameters) {
  const auto parameter = [&](size_t i, double otherwise) {
    return i < parameters.size() ? static_cast<double>(parameters[i]) : otherwise;
  };
  if (name.empty()) return x;
  if (name == "Relu") return maximum(x, 0);
  if (name == "Tanh") return tanh(x);
  if (name == "Sigmoid") return sigmoid(x);
  if (name == "LeakyRelu") return select(less(x, 0), x * parameter(0, 0.01), x);
  if (name == "Clip")
    return clamp(x, parameter(0, -3.4028234663852886e38),
                 parameter(1, 3.4028234663852886e38));
  if (name == "HardSigmoid")
    return clamp(x * parameter(0, 0.2) + parameter(1, 0.5), 0, 1);
  node.unsupported("activation '" + escaped(name) + "' is not supported");
}

Expr checked_matmul(NodeImport& node, Expr a, Expr b) {
  require(node, a.dtype() == b.dtype(), "the operands' element types differ");
  require(node, a.rank() > 0 && b.rank() > 0, "the operands must have an axis");
  const bool row = a.rank() == 1, column = b.rank() == 1;
  if (row) a = unsqueeze(a, 0);
  if (column) b = unsqueeze(b, 1);
  const Shape left = a.shape(), right = b.shape();
  if (left.back() != right[right.size() - 2])
    node.invalid("shapes " + shape_text(left) + " and " + shape_text(right) +
                 " do not multiply");
  broadcast_shape(
      node, {Shape(left.begin(), left.end() - 2), Shape(right.begin(), right.end() - 2)});
  Expr product = matmul(a, b);
  if (column) product = squeeze(product, product.rank() - 1);
  if (row) product = squeeze(product, product.rank() - (column ? 1 : 2));
  return product;
}

} // namespace svod::importer
