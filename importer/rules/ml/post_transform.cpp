// Softmax-zero leaves scores of zero at zero and shares the rest out. Probit is the
// inverse of the normal distribution by Winitzki's formula, as both references have it.
#include "importer/rules/ml/post_transform.h"

namespace svod::importer {

static Expr probit(Expr p) {
  Expr x = 2.0 * p - 1.0;
  Expr inside = log((1.0 - x) * (1.0 + x));
  Expr v = 2 / (3.14159 * 0.147) + 0.5 * inside;
  Expr root = sqrt(sqrt(v * v - inside * (1 / 0.147)) - v) * 1.41421356;
  return select(less(x, 0), -root, root);
}

Expr post_transform(NodeImport& node, Expr scores, const std::string& name) {
  std::vector<int64_t> last{scores.rank() - 1};
  if (name == "NONE") return scores;
  if (name == "SOFTMAX") return softmax(scores, last);
  if (name == "LOGISTIC") return sigmoid(scores);
  if (name == "PROBIT") return probit(scores);
  if (name != "SOFTMAX_ZERO")
    node.invalid("post_transform '" + name + "' is not in the specification");
  Expr top = reduce(Op::ReduceMax, scores, last);
  Expr zero = less(absolute(scores), 1e-7);
  Expr powers = select(zero, scores * exp(-top), exp(scores - top));
  Expr total = sum(powers, last);
  Expr none = equal(total, 0);
  return select(none, like(scores, 0.5), powers / select(none, like(total, 1), total));
}

} // namespace svod::importer
