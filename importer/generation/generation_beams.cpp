// Beam search: of every sequence the best continuations are followed side by side. A step
// takes the best 2 * beams of all continuations. Those that are the end become finished
// sequences, of which the best are kept; the others, in their order, are the next beams.
// A batch entry is done when none of its beams can get better than its finished ones.
#include "importer/generation/generation.h"

#include <algorithm>
#include <limits>
#include <memory>

namespace svod::importer {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// What the beams beside the first have before the first choice, when all are equal.
constexpr double kNotYet = -1e9;

// x [batch, n, ..] at `places` i64 [batch, k] of axis 1.
Expr picked(Expr x, Expr places) {
  Shape shape = x.shape(), wide(x.shape().size(), 1);
  shape[1] = wide[1] = extent(places, 1);
  wide[0] = extent(places, 0);
  return gather(x, broadcast(reshape(places, wide), shape), 1);
}

// Of sequences [batch, n, ..]: how many there are, which, and how good they are.
struct Finished {
  Expr scores; // f32 [batch, n], minus infinity where there is none
  Expr tokens; // i32 [batch, n, most]
};

// The best `n`; among equal ones the first.
Finished best(const Finished& all, int64_t n) {
  const Expr order{all.scores.g, argsort(*all.scores.g, all.scores.id, 1, true)};
  const Expr first = cut(order, 1, 0, n);
  return {picked(all.scores, first), picked(all.tokens, first)};
}

class BeamSearch : public Search {
public:
  BeamSearch(NodeImport& of, const GenerationPlan& by)
      : Search(of, by), returned_(read_returned()) {}

  std::vector<Expr> start() override {
    Graph& g = node.g;
    const Shape beams{plan.batch, plan.beams};
    const Expr beam = broadcast(count_along(g, DType::I64, plan.beams, 1, 2), beams);
    const Expr zero = number(g, DType::F32, 0);
    return {select(equal(beam, 0.0), zero, like(zero, kNotYet)),
            {&g, constant(g, DType::Bool, {plan.batch, 1}, 0)},
            {&g, constant(g, DType::I64, {plan.batch, 1}, 0)},
            {&g, constant(g, DType::F32, beams, -kInfinity)},
            {&g, constant(g, DType::I32, {plan.batch, plan.beams, plan.most},
                          static_cast<double>(plan.pad))}};
  }

  Choice choose(Sequences& at, Expr logits, TokenStep step) override {
    State state(at.search);
    Expr scores =
        changed_scores(node, plan, {2, 6, 7, 8}, log_softmax(logits), at.tokens, step);
    const int64_t vocabulary = extent(scores, 1);
    scores = reshape(scores, {plan.batch, plan.beams, vocabulary}) +
             unsqueeze(state.scores, 2);
    require(node, 2 * plan.beams <= plan.beams * vocabulary,
            "the vocabulary has too few tokens for a beam search");
    const Expr flat = reshape(scores, {plan.batch, plan.beams * vocabulary});
    const Largest top = largest(flat, 2 * plan.beams);
    const Expr size = number(node.g, DType::I64, static_cast<double>(vocabulary));
    const Candidates all{top.values, top.places / size, apply(Op::Mod, top.places, size)};
    const Expr done_before = state.done;
    finish_candidates(state, all, at.tokens, step.length);
    Choice choice = go_on(state, all, done_before, at, step.length);
    if (node.wants_output(2)) choice.shown.push_back(scores);
    at.search = state.list();
    return choice;
  }

  Expr goes_on(const Sequences& at) const override {
    const Expr open = apply(Op::Not, at.search[1]);
    return reshape(reduce(Op::ReduceMax, open, {0, 1}), {});
  }

  int64_t shown() const override { return node.wants_output(2) ? 1 : 0; }

  void finish(const Sequences& at, const std::vector<Expr>& shown) override {
    const State state(at.search);
    const Expr length = number(node.g, DType::I64, static_cast<double>(plan.most));
    const Expr open = select(state.done, like(state.scores, -kInfinity),
                             penalized(state.scores, length));
    const Expr tokens = reshape(at.tokens, {plan.batch, plan.beams, plan.most});
    const Finished all{join({state.finished.scores, open}, 1),
                       join({state.finished.tokens, tokens}, 1)};
    const Finished result = best(all, returned_);
    give(node, 0, result.tokens);
    if (node.wants_output(1)) give(node, 1, result.scores);
    if (node.wants_output(2)) give(node, 2, shown[0]);
  }

private:
  // In the form that is carried.
  struct State {
    explicit State(const std::vector<Expr>& list)
        : scores(list[0]), done(list[1]), count(list[2]), finished{list[3], list[4]} {}
    std::vector<Expr> list() const {
      return {scores, done, count, finished.scores, finished.tokens};
    }
    Expr scores; // f32 [batch, beams], of the beams
    Expr done;   // bool [batch, 1]
    Expr count;  // i64 [batch, 1], how many have finished, at most `beams`
    Finished finished;
  };

  // The best continuations [batch, 2 * beams], best first.
  struct Candidates {
    Expr scores, beams, tokens;
  };

  int64_t read_returned() {
    const int64_t returned = known_int(node, 4);
    require(node, returned > 0 && returned <= plan.beams,
            "num_return_sequences must be from 1 to num_beams");
    return returned;
  }

  Expr ends(Expr tokens) const {
    return plan.eos < 0 ? less(tokens, 0.0)
                        : equal(tokens, static_cast<double>(plan.eos));
  }

  // A sum of logarithms of probabilities by the length it is the sum of.
  Expr penalized(Expr scores, Expr length) {
    const Expr count = convert(length, DType::F32);
    if (!node.has_input(5)) return scores / count;
    const Expr by = convert(reshape(input_here(node, 5), {}), DType::F32);
    return scores / apply(Op::Pow, count, by);
  }

  // Where each beam goes on from: the row of its sequence. A batch entry that is done
  // shows the first of all.
  Expr row_of(Expr beams, Expr done) const {
    const Expr entry = count_along(*beams.g, DType::I64, plan.batch, 0, 2);
    const Expr row = entry * static_cast<double>(plan.beams) + beams;
    return select(done, like(row, 0), row);
  }

  // Takes the ends among the first candidates, and finds out who is done.
  void finish_candidates(State& state, const Candidates& all, Expr tokens, Expr length) {
    const Expr first = cut(all.scores, 1, 0, plan.beams);
    const Expr taken =
        both(ends(cut(all.tokens, 1, 0, plan.beams)), apply(Op::Not, state.done));
    const Expr scores = select(taken, penalized(first, length), like(first, -kInfinity));
    const Expr rows = row_of(cut(all.beams, 1, 0, plan.beams), state.done);
    const Expr sequences = reshape(take(tokens, 0, reshape(rows, {plan.rows()})),
                                   {plan.batch, plan.beams, plan.most});
    state.finished = best({join({state.finished.scores, scores}, 1),
                           join({state.finished.tokens, sequences}, 1)},
                          plan.beams);
    const Expr more = sum(convert(taken, DType::I64), {1});
    state.count = minimum(state.count + more, static_cast<double>(plan.beams));
    Expr ready =
        less_equal(like(state.count, static_cast<double>(plan.beams)), state.count);
    if (!node.get_int("early_stopping")) {
      const Expr worst = cut(state.finished.scores, 1, plan.beams - 1, 1);
      const Expr hope = penalized(cut(all.scores, 1, 0, 1), length);
      ready = both(ready, less_equal(hope, worst));
    }
    state.done = either(state.done, ready);
  }

  // The next beams: the first candidates that are no end, in their order.
  Choice go_on(State& state, const Candidates& all, Expr done, Sequences& at,
               Expr length) {
    const Expr open = apply(Op::Not, ends(all.tokens));
    const Expr ones = convert(open, DType::I64);
    const Expr place = Expr{&node.g, scan(node.g, Op::ScanSum, ones.id, 1)} - 1.0;
    const Expr beam = count_along(node.g, DType::I64, plan.beams, 1, 3);
    const Expr chosen = both(equal(unsqueeze(place, 1), beam), unsqueeze(open, 1));
    const auto of_chosen = [&](Expr x) {
      const Expr wide = unsqueeze(x, 1);
      return squeeze(sum(select(chosen, wide, like(wide, 0)), {2}), 2);
    };
    const Expr scores = of_chosen(all.scores), tokens = of_chosen(all.tokens);
    state.scores = select(done, like(scores, 0), scores);
    const Expr rows = reshape(row_of(of_chosen(all.beams), done), {plan.rows()});
    const Expr next = select(done, like(tokens, static_cast<double>(plan.pad)), tokens);
    at.last = convert(reshape(next, {plan.rows()}), DType::I32);
    at.tokens = with_token(take(at.tokens, 0, rows), at.last, length);
    return {rows, {}};
  }

  int64_t returned_;
};

} // namespace

std::unique_ptr<Search> make_beam_search(NodeImport& node, const GenerationPlan& plan) {
  return std::make_unique<BeamSearch>(node, plan);
}

} // namespace svod::importer
