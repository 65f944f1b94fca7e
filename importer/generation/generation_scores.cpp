// What stands between a decoder's scores and the choice of a token. Masked tokens get the
// lowest finite score, so that a choice among only such tokens is still the first of
// them.
#include "importer/generation/generation.h"

#include <limits>

namespace svod::importer {
namespace {

constexpr double kLowest = std::numeric_limits<float>::lowest();

Expr lowest_where(Expr condition, Expr scores) {
  return select(condition, number(*scores.g, scores.dtype(), kLowest), scores);
}

// Which tokens [rows, vocabulary] are named by an entry of `tokens` [rows, n] that
// counts.
Expr named_tokens(Expr tokens, Expr counts, int64_t vocabulary) {
  Graph& g = *tokens.g;
  const Shape shape{extent(tokens, 0), vocabulary};
  const Expr at = convert(tokens, DType::I64);
  const Expr inside = both(less_equal(like(at, 0), at), less(at, double(vocabulary)));
  const Expr valid = both(inside, counts);
  const Expr none{&g, constant(g, DType::I32, shape, 0)};
  const Expr named = scatter(none, select(valid, at, like(at, 0)),
                             convert(valid, DType::I32), 1, Combiner::Max);
  return less(0.0, named);
}

Expr positions(Graph& g, int64_t count) {
  return count_along(g, DType::I64, count, 1, 2);
}

Expr penalized(Expr scores, Expr tokens, Expr length, Expr penalty) {
  const Expr there =
      broadcast(less(positions(*tokens.g, extent(tokens, 1)), length), tokens.shape());
  const Expr seen = named_tokens(tokens, there, extent(scores, 1));
  const Expr by = convert(reshape(penalty, {}), scores.dtype());
  return select(seen, select(less(scores, 0.0), scores * by, scores / by), scores);
}

// No run of `size` tokens may come twice: a place whose size - 1 tokens are the newest
// ones forbids the token behind them.
Expr without_repeats(Expr scores, Expr tokens, Expr length, int64_t size) {
  const int64_t rows = extent(tokens, 0), runs = extent(tokens, 1) - size + 1;
  if (runs <= 0) return scores;
  Expr same = broadcast(less_equal(positions(*tokens.g, runs), length - double(size)),
                        {rows, runs});
  for (int64_t k = 0; k + 1 < size; ++k) {
    const Expr at = maximum(length - double(size - 1 - k), 0.0);
    const Expr newest = take(tokens, 1, reshape(at, {1}));
    same = both(same, equal(cut(tokens, 1, k, runs), newest));
  }
  const Expr ends = cut(tokens, 1, size - 1, runs);
  return lowest_where(named_tokens(ends, same, extent(scores, 1)), scores);
}

// A mask [vocabulary] or [batch, vocabulary], 0 for tokens that may not be chosen.
Expr masked_tokens(NodeImport& node, const GenerationPlan& plan, size_t input,
                   Expr scores) {
  Expr mask = input_here(node, input);
  const int64_t vocabulary = extent(scores, 1);
  const bool of_batch = mask.rank() == 2;
  require(node,
          mask.shape() == (of_batch ? Shape{plan.batch, vocabulary} : Shape{vocabulary}),
          "a vocabulary mask does not fit the decoder's scores");
  mask = reshape(mask, {of_batch ? plan.batch : 1, 1, vocabulary});
  const Expr all = broadcast(mask, {plan.batch, plan.beams, vocabulary});
  return lowest_where(equal(reshape(all, scores.shape()), 0.0), scores);
}

} // namespace

Expr log_softmax(Expr x) {
  const Expr shifted = x - reduce(Op::ReduceMax, x, {1});
  return shifted - log(sum(exp(shifted), {1}));
}

Expr changed_scores(NodeImport& node, const GenerationPlan& plan,
                    const ScoreInputs& inputs, Expr scores, Expr tokens, TokenStep step) {
  const auto is_one = [](Expr x) {
    const auto values = known_floats(*x.g, x.id);
    return values && values->size() == 1 && values->front() == 1;
  };
  if (node.has_input(inputs.repetition_penalty)) {
    const Expr penalty = input_here(node, inputs.repetition_penalty);
    if (!is_one(penalty)) scores = penalized(scores, tokens, step.length, penalty);
  }
  if (const int64_t size = node.get_int("no_repeat_ngram_size"); size > 0)
    scores = without_repeats(scores, tokens, step.length, size);
  if (node.has_input(inputs.vocab_mask))
    scores = masked_tokens(node, plan, inputs.vocab_mask, scores);
  if (node.has_input(inputs.prefix_vocab_mask) && step.first)
    scores = masked_tokens(node, plan, inputs.prefix_vocab_mask, scores);
  if (node.has_input(inputs.min_length) && plan.eos >= 0) {
    const Expr least =
        convert(reshape(input_here(node, inputs.min_length), {}), DType::I64);
    const Expr end = equal(positions(node.g, extent(scores, 1)), double(plan.eos));
    scores = lowest_where(both(less(step.length, least), end), scores);
  }
  return scores;
}

// One search for the largest after the other, each without those found before: few are
// wanted of many. Floats order as integers do once the bits of negative ones are turned,
// and below all of them there is one integer left for what was found.
Largest largest(Expr x, int64_t k) {
  Graph& g = *x.g;
  const Expr bits{&g, bitcast(g, x.id, DType::I32)};
  const Expr turned =
      apply(Op::Xor, bits, {&g, constant_int(g, DType::I32, bits.shape(), INT32_MAX)});
  Expr key = select(less(bits, 0.0), turned, bits);
  const Expr place = positions(g, extent(x, 1));
  const Expr found{&g, constant_int(g, DType::I32, {}, INT32_MIN)};
  std::vector<Expr> places;
  for (int64_t i = 0; i < k; ++i) {
    places.push_back({&g, arg_reduce(g, Op::ArgMax, key.id, 1, false)});
    key = select(equal(place, places.back()), found, key);
  }
  const Expr all = join(places, 1);
  return {gather(x, all, 1), all};
}

} // namespace svod::importer
