// The operators of com.microsoft that generate text.
#include "importer/formula/random.h"
#include "importer/generation/generation.h"

#include <memory>

namespace svod::importer {
namespace {

// The token of the highest score, until that is the end.
class GreedySearch : public Search {
public:
  using Search::Search;

  std::vector<Expr> start() override {
    return {{&node.g, constant(node.g, DType::Bool, {plan.rows()}, 0)}};
  }

  Choice choose(Sequences& at, Expr logits, TokenStep step) override {
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

// A token drawn by the probabilities of those that are likely enough. The numbers that
// decide are drawn before the first step: one per token and sequence.
class Sampling : public GreedySearch {
public:
  Sampling(NodeImport& of, const GenerationPlan& by)
      : GreedySearch(of, by),
        drawn_(random_uniform(of.g, stream(of), {by.most - by.prompt, by.batch},
                              DType::F32)) {}

  Choice choose(Sequences& at, Expr logits, TokenStep step) override {
    const Expr scores = likely(changed(logits, at.tokens, step));
    const Expr shares = softmax(scores, {1});
    const Expr sums{&node.g, scan(node.g, Op::ScanSum, shares.id, 1)};
    const Expr total = cut(sums, 1, extent(sums, 1) - 1, 1);
    const Expr number = step.length - static_cast<double>(plan.prompt);
    const Expr point =
        reshape(take(here(node, drawn_), 0, reshape(number, {1})), {plan.batch, 1}) *
        total;
    // Rounded up to the total, a point still means the last token that has a share.
    const Expr below = both(less_equal(sums, point), less(sums, total));
    const Expr token = sum(convert(below, DType::I32), {1});
    end_or_add(at, reshape(token, {plan.batch}), step.length);
    return {};
  }

private:
  // The input `seed`, or numbers of the node's own.
  static RandomStream stream(const NodeImport& of) {
    if (!of.has_input(8)) return stream_of(of);
    return {static_cast<uint32_t>(known_int(of, 8)), 0};
  }

  Expr changed(Expr logits, Expr tokens, TokenStep step) {
    Expr scores = changed_scores(node, plan, {2, 3, 4, 5}, logits, tokens, step);
    scores = scores / node.get_float("temperature");
    const double penalty = node.get_float("presence_penalty");
    if (!node.has_input(7) || penalty == 0) return scores;
    const Expr mask = convert(input_here(node, 7), DType::F32);
    require(node, mask.shape() == scores.shape(),
            "presence_mask does not fit the decoder's scores");
    return scores - mask * penalty;
  }

  // filter_value for tokens beyond a share of top_p: of the others in descending order
  // (`custom`), or of themselves and all below in ascending order.
  Expr likely(Expr scores) {
    Graph& g = node.g;
    const bool falling = node.get_int("custom") != 0;
    const double top = node.get_float("top_p");
    const int64_t rows = extent(scores, 0), size = extent(scores, 1);
    const Expr order{&g, argsort(g, scores.id, 1, falling)};
    const Expr shares = softmax(gather(scores, order, 1), {1});
    const Expr sums{&g, scan(g, Op::ScanSum, shares.id, 1)};
    const Expr place = count_along(g, DType::I64, size, 1, 2);
    Expr out = less_equal(sums, like(sums, 1 - top));
    if (falling) {
      const Expr before = cut(sums, 1, 0, size - 1);
      out = less(top, pad(before, {0, 1}, {0, 0}, 0));
      out = both(out, less(0.0, place));
    } else {
      const auto kept = static_cast<double>(node.get_int("min_tokens_to_keep"));
      out = both(
          out, either(equal(place, 0.0), less(place, static_cast<double>(size) - kept)));
    }
    const Expr none{&g, constant(g, DType::I32, {rows, size}, 0)};
    const Expr dropped = scatter(
        none, order, convert(broadcast(out, {rows, size}), DType::I32), 1, Combiner::Set);
    return select(less(0.0, dropped), like(scores, node.get_float("filter_value")),
                  scores);
  }

  Expr drawn_; // [tokens, batch], in [0, 1)
};

} // namespace

void import_greedy_search(NodeImport& node) {
  const GenerationPlan plan = read_plan(node, 1);
  const std::unique_ptr<Decoder> decoder = make_decoder(node, plan, 6);
  GreedySearch search(node, plan);
  generate(node, plan, *decoder, search);
}

void import_sampling(NodeImport& node) {
  const GenerationPlan plan = read_plan(node, 1);
  const std::unique_ptr<Decoder> decoder = make_decoder(node, plan, 6);
  Sampling search(node, plan);
  generate(node, plan, *decoder, search);
}

void import_beam_search(NodeImport& node) {
  if (node.has_input(10) && node.get_int("model_type") != 2)
    node.unsupported("decoder_input_ids of a model that is not Whisper's");
  if (node.has_input(11) && known_int(node, 11) != 0)
    node.unsupported("a logits_processor");
  const GenerationPlan plan = read_plan(node, known_int(node, 3));
  const std::unique_ptr<Decoder> decoder = make_decoder(node, plan, 9);
  generate(node, plan, *decoder, *make_beam_search(node, plan));
}

} // namespace svod::importer
