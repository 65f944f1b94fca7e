// Softmax-zero leaves scores of zero at zero and shares the rest out.
#include "importer/post_transform.h"

namespace svod {

Expr post_transform(NodeImport& node, Expr scores, const std::string& name) {
  std::vector<int64_t> last{scores.rank() - 1};
  if (name == "NONE") return scores;
  if (name == "SOFTMAX") return softmax(scores, last);
  if (name == "LOGISTIC") return sigmoid(scores);
  if (name != "SOFTMAX_ZERO") node.unsupported("post_transform '" + name + "'");
  Expr top = reduce(Op::ReduceMax, scores, last);
  Expr zero = less(absolute(scores), 1e-7);
  Expr powers = select(zero, scores * exp(-top), exp(scores - top));
  Expr total = sum(powers, last);
  Expr none = equal(total, 0);
  return select(none, like(scores, 0.5), powers / select(none, like(total, 1), total));
}

} // namespace svod
