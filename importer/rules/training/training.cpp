// One step of the optimisers of ai.onnx.preview.training. Each takes the learning rate R,
// the step's number T, and then n tensors X, their n gradients G and the n of each of its
// running statistics; it gives the new X and the new statistics in the same order.
#include "importer/formula/movement.h"
#include "importer/formula/rule.h"

namespace svod::importer {
namespace {

// One tensor's share of the inputs; results come in the type of X.
struct Step {
  Expr rate, number; // scalars; `number` is T
  Expr x, gradient;  // with norm_coefficient * X added
  std::vector<Expr> statistics;
};

size_t tensor_count(NodeImport& node, size_t statistics) {
  const size_t lists = 2 + statistics, tensors = node.input_count() - 2;
  require(node, node.input_count() > 2 && tensors % lists == 0,
          "the tensors, gradients and statistics are not equally many");
  for (size_t i : {0, 1})
    require(node, element_count(node.shape(i)) == 1, "R and T must be one number each");
  return tensors / lists;
}

Step step_of(NodeImport& node, size_t i, size_t count, size_t statistics) {
  const Expr x = wide(node, 2 + i);
  const auto scalar = [&](size_t input) {
    return convert(reshape(operand(node, input), {}), x.dtype());
  };
  const auto member = [&](size_t list) {
    const size_t input = 2 + list * count + i;
    require(node, node.shape(input) == x.shape(),
            "a gradient or statistic has another shape than its tensor");
    return convert(wide(node, input), x.dtype());
  };
  const double decay = node.get_float("norm_coefficient");
  Step step{scalar(0), scalar(1), x, x * decay + member(1), {}};
  for (size_t s = 0; s < statistics; ++s) step.statistics.push_back(member(2 + s));
  return step;
}

// The results of tensor i: new X first, then its statistics.
void give_step(NodeImport& node, size_t i, size_t count,
               const std::vector<Expr>& results) {
  for (size_t r = 0; r < results.size(); ++r)
    give(node, r * count + i, convert(results[r], node.dtype(2 + i)));
}

// base ** T, and 1 - base ** T as the bias of a running mean that began at 0.
Expr bias_correction(const Step& step, double base) {
  return 1 - apply(Op::Pow, like(step.number, base), step.number);
}

} // namespace

void import_adagrad(NodeImport& node) {
  const size_t count = tensor_count(node, 1);
  for (size_t i = 0; i < count; ++i) {
    const Step step = step_of(node, i, count, 1);
    const Expr rate = step.rate / (step.number * node.get_float("decay_factor") + 1);
    const Expr squares = step.statistics[0] + step.gradient * step.gradient;
    const Expr adaptive = sqrt(squares) + node.get_float("epsilon");
    give_step(node, i, count, {step.x - rate * step.gradient / adaptive, squares});
  }
}

void import_adam(NodeImport& node) {
  const size_t count = tensor_count(node, 2);
  const double alpha = node.get_float("alpha"), beta = node.get_float("beta");
  for (size_t i = 0; i < count; ++i) {
    const Step step = step_of(node, i, count, 2);
    const Expr& g = step.gradient;
    const Expr mean = step.statistics[0] * alpha + g * (1 - alpha);
    const Expr squares = step.statistics[1] * beta + g * g * (1 - beta);
    const Expr corrected =
        step.rate * sqrt(bias_correction(step, beta)) / bias_correction(step, alpha);
    const Expr rate = select(less(0, step.number), corrected, step.rate);
    const Expr x = step.x - rate * mean / (sqrt(squares) + node.get_float("epsilon"));
    give_step(node, i, count,
              {x * (1 - node.get_float("norm_coefficient_post")), mean, squares});
  }
}

void import_momentum(NodeImport& node) {
  const size_t count = tensor_count(node, 1);
  const double alpha = node.get_float("alpha"), beta = node.get_float("beta");
  const std::string mode = node.get_string("mode");
  require(node, mode == "standard" || mode == "nesterov",
          "mode must be standard or nesterov");
  for (size_t i = 0; i < count; ++i) {
    const Step step = step_of(node, i, count, 1);
    // The first gradient counts in full.
    const Expr share =
        select(less(0, step.number), like(step.number, beta), like(step.number, 1));
    const Expr velocity = step.statistics[0] * alpha + share * step.gradient;
    const Expr way = mode == "nesterov" ? step.gradient + velocity * alpha : velocity;
    give_step(node, i, count, {step.x - step.rate * way, velocity});
  }
}

} // namespace svod::importer
