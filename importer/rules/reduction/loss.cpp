// Losses over classes: the value at the target class is gathered, weighted, and averaged
// or summed.
#include "importer/formula/formula.h"

namespace svod::importer {

namespace {

// Values of x [N, C, d..] at the target class, as [N, 1, d..]. Ignored targets count as
// class 0, with weight 0.
struct Targets {
  Expr index;  // i64, [N, 1, d..]
  Expr weight; // in x's type, the same shape
};

Targets read_targets(NodeImport& node, Expr x) {
  const Expr target = convert(operand(node, 1), DType::I64);
  Shape expected = x.shape();
  require(node, expected.size() >= 2, "input 0 must have a batch and a class axis");
  expected.erase(expected.begin() + 1);
  require(node, target.shape() == expected,
          "the targets' shape does not fit the input's");
  const Expr classes = unsqueeze(target, 1);
  Expr index = classes;
  Expr weight = with(x, constant(node.g, x.dtype(), Shape(index.shape()), 1));
  Expr used = equal(index, index);
  if (node.has("ignore_index")) {
    used = equal(classes, static_cast<double>(node.get_int("ignore_index")));
    used = apply(Op::Not, used);
    index = select(used, classes, like(classes, 0));
  }
  if (node.has_input(2)) {
    require(node, node.shape(2) == Shape{extent(x, 1)}, "one weight per class is needed");
    const Expr all = per_channel(convert(wide(node, 2), x.dtype()), x.rank());
    weight = gather(broadcast(all, Shape(x.shape())), index, 1);
  }
  return {index, select(used, weight, like(weight, 0))};
}

void finish_loss(NodeImport& node, Expr log_probability) {
  const Targets targets = read_targets(node, log_probability);
  const std::string reduction = node.get_string("reduction");
  const Expr loss = -gather(log_probability, targets.index, 1) * targets.weight;
  const std::vector<int64_t> all = axes_from(0, loss.rank());
  if (reduction == "none")
    finish(node, squeeze(loss, 1));
  else if (reduction == "sum")
    finish(node, reshape(sum(loss, all), {}));
  else if (reduction == "mean")
    finish(node, reshape(sum(loss, all) / sum(targets.weight, all), {}));
  else
    node.invalid("reduction must be 'none', 'sum' or 'mean'");
}

} // namespace

void import_nll_loss(NodeImport& node) { finish_loss(node, wide(node, 0)); }

void import_cross_entropy_loss(NodeImport& node) {
  const Expr x = wide(node, 0);
  require(node, x.rank() >= 2, "input 0 must have a batch and a class axis");
  const Expr shifted = x - reduce(Op::ReduceMax, x, {1});
  const Expr log_probability = shifted - log(sum(exp(shifted), {1}));
  finish_loss(node, log_probability);
  if (node.wants_output(1)) finish(node, log_probability, 1);
}

} // namespace svod::importer
