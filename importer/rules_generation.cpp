// The operators of com.microsoft that generate text.
#include "importer/generation.h"

#include <memory>

namespace svod {
namespace {

// The token of the highest score, until that is the end.
class GreedySearch : public Search {
public:
  using Search::Search;

  std::vector<Expr> start() override {
    return {{&node.g, constant(node.g, DType::Bool, {plan.rows()}, 0)}};
  }

  Choice choose(Sequences& at, Expr logits, Step step) override {
    const Expr scores = changed_scores(node, plan, {2, 3, 4, 5}, logits, at.tokens, step);
    const Expr best{&node.g, arg_reduce(node.g, Op::ArgMax, scores.id, 1, false)};
    end_or_add(at, convert(reshape(best, {plan.rows()}), DType::I32), step.length);
    return {};
  }

  Expr goes_on(const Sequences& at) const override {
    return reshape(reduce(Op::ReduceMax, apply(Op::Not, at.search[0]), {0}), {});
  }

  void finish(const Sequences& at, const std::vector<Expr>&) override {
    give(node, 0, at.tokens);
  }

protected:
  // A sequence that ends is padded from its end on.
  void end_or_add(Sequences& at, Expr token, Expr length) const {
    at.search[0] = either(at.search[0], equal(token, static_cast<double>(plan.eos)));
    at.last = select(at.search[0], like(token, static_cast<double>(plan.pad)), token);
    at.tokens = with_token(at.tokens, at.last, length);
  }
};

} // namespace

void import_greedy_search(NodeImport& node) {
  const GenerationPlan plan = read_plan(node, 1);
  const std::unique_ptr<Decoder> decoder = make_decoder(node, plan, 6);
  GreedySearch search(node, plan);
  generate(node, plan, *decoder, search);
}

void import_beam_search(NodeImport& node) {
  for (size_t i : {size_t{10}, size_t{11}})
    if (node.has_input(i)) node.unsupported("input " + std::to_string(i));
  const GenerationPlan plan = read_plan(node, known_int(node, 3));
  const std::unique_ptr<Decoder> decoder = make_decoder(node, plan, 9);
  generate(node, plan, *decoder, *make_beam_search(node, plan));
}

} // namespace svod
