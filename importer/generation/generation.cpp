// The course of a generation: the prompt, then one step per token, as a loop of the run
// or written out.
#include "importer/generation/generation.h"

#include "importer/bounded/bounded.h"

#include <memory>

namespace svod::importer {
namespace {

// Steps that may be written out, and the nodes that they may make.
constexpr int64_t kMostSteps = 256, kMostNodes = 200000;

struct Outcome {
  Sequences at;
  std::vector<Expr> shown; // [steps, ..]
};

std::vector<NodeId> ids_of(const Sequences& at) {
  std::vector<NodeId> ids{at.tokens.id, at.last.id};
  for (const auto* part : {&at.search, &at.caches})
    for (Expr x : *part) ids.push_back(x.id);
  return ids;
}

Sequences from_ids(Graph& g, const Sequences& like, const std::vector<NodeId>& ids) {
  Sequences at{{&g, ids[0]}, {&g, ids[1]}, {}, {}};
  size_t next = 2;
  for (size_t i = 0; i < like.search.size(); ++i) at.search.push_back({&g, ids[next++]});
  for (size_t i = 0; i < like.caches.size(); ++i) at.caches.push_back({&g, ids[next++]});
  return at;
}

std::vector<Expr> chosen_rows(const Decoder& decoder, const std::vector<Expr>& caches,
                              const std::optional<Expr>& rows) {
  if (!rows) return caches;
  std::vector<Expr> out;
  for (Expr cache : caches) out.push_back(take(cache, decoder.row_axis(), *rows));
  return out;
}

// The prompt and the first choice.
Search::Choice begin(const GenerationPlan& plan, Decoder& decoder, Search& search,
                     Sequences& at) {
  const Expr tokens = row_per_beam(plan, decoder.first_tokens(), 0);
  at.last = reshape(cut(tokens, 1, plan.prompt - 1, 1), {plan.rows()});
  at.tokens =
      pad(tokens, {0, 0}, {0, plan.most - plan.prompt}, static_cast<double>(plan.pad));
  at.search = search.start();
  const Decoder::Output out = decoder.prompt();
  const Expr length = number(*tokens.g, DType::I64, static_cast<double>(plan.prompt));
  Search::Choice choice =
      search.choose(at, row_per_beam(plan, out.logits, 0), {length, true});
  decoder.note_lengths(out.caches);
  at.caches.clear();
  for (Expr cache : out.caches)
    at.caches.push_back(row_per_beam(plan, cache, decoder.row_axis()));
  at.caches = chosen_rows(decoder, at.caches, choice.rows);
  return choice;
}

// The decoder's next scores and the choice by them.
Search::Choice advance(Decoder& decoder, Search& search, Sequences& at, Expr past) {
  const Decoder::Output out = decoder.next(at, past);
  Search::Choice choice = search.choose(at, out.logits, {past + 1.0, false});
  at.caches = chosen_rows(decoder, out.caches, choice.rows);
  return choice;
}

// x, a number of the run, or `most` where that is less: in a form whose bound is seen.
Expr at_most(Expr x, int64_t most) {
  return reshape(sum(convert(meant(x, most), DType::I64), {0}), {});
}

// The steps as a loop of the run, which ends with the last sequence; nothing, and in
// `why_not` the reason, where they cannot be one.
std::optional<Outcome> as_loop(NodeImport& node, const GenerationPlan& plan,
                               Decoder& decoder, Search& search, const Sequences& start,
                               int64_t steps, std::string& why_not) {
  Graph& g = node.g;
  Sequences roomy = start;
  for (size_t i = 0; i < roomy.caches.size(); ++i) {
    Expr& cache = roomy.caches[i];
    Shape none(cache.shape().size(), 0), more = none;
    const int64_t axis = decoder.length_axis();
    more[static_cast<size_t>(axis)] = decoder.room_of(i) - extent(cache, axis);
    cache = pad(cache, none, more, 0);
  }
  RuleLoop loop;
  loop.limit = steps;
  loop.start = search.goes_on(start).id;
  loop.carried = ids_of(roomy);
  loop.stacked = search.shown();
  loop.body = [&](NodeId iteration, const std::vector<NodeId>& carried) {
    Sequences at = from_ids(g, roomy, carried);
    const Expr past = at_most(Expr{&g, iteration} + static_cast<double>(plan.prompt),
                              decoder.room() - 1);
    const Search::Choice choice = advance(decoder, search, at, past);
    std::vector<NodeId> results{search.goes_on(at).id};
    for (NodeId id : ids_of(at)) results.push_back(id);
    for (Expr shown : choice.shown) results.push_back(shown.id);
    return results;
  };
  RuleLoopResult result = node.try_loop(loop);
  const std::vector<NodeId>& made = result.values;
  why_not = std::move(result.why_not);
  if (made.empty()) return std::nullopt;
  Outcome out{from_ids(g, roomy, {made.begin() + 1, made.end()}), {}};
  for (size_t i = 1 + loop.carried.size(); i < made.size(); ++i) {
    // What no step reached is unspecified.
    const Expr all{&g, made[i]};
    const Expr reached = along(meant({&g, made[0]}, steps), 0, all.rank());
    out.shown.push_back(select(reached, all, number(g, all.dtype(), 0)));
  }
  return out;
}

// The steps one after the other. One after the last sequence has ended changes nothing.
Outcome written_out(NodeImport& node, const GenerationPlan& plan, Decoder& decoder,
                    Search& search, const Sequences& start, int64_t steps,
                    const std::string& why_no_loop) {
  const auto first = static_cast<int64_t>(node.g.size());
  const auto refuse = [&] {
    node.unsupported("its steps cannot be a loop of the run (" + why_no_loop + "), and " +
                     std::to_string(steps) + " of them are too many to be written out");
  };
  if (steps > kMostSteps) refuse();
  Outcome out{start, {}};
  std::vector<std::vector<Expr>> shown(static_cast<size_t>(search.shown()));
  for (int64_t i = 0; i < steps; ++i) {
    const Expr going = search.goes_on(out.at);
    const Expr past = number(node.g, DType::I64, static_cast<double>(plan.prompt + i));
    const Search::Choice choice = advance(decoder, search, out.at, past);
    for (size_t k = 0; k < shown.size(); ++k) {
      const Expr x = choice.shown[k];
      shown[k].push_back(unsqueeze(select(going, x, number(node.g, x.dtype(), 0)), 0));
    }
    if (static_cast<int64_t>(node.g.size()) - first > kMostNodes) refuse();
  }
  for (const std::vector<Expr>& parts : shown) out.shown.push_back(join(parts, 0));
  return out;
}

} // namespace

Expr row_per_beam(const GenerationPlan& plan, Expr x, int64_t axis) {
  if (plan.beams == 1) return x;
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < plan.rows(); ++row) rows.push_back(row / plan.beams);
  return take(x, axis, rows);
}

Expr with_token(Expr tokens, Expr token, Expr length) {
  const Expr place = count_along(*tokens.g, DType::I64, extent(tokens, 1), 1, 2);
  return select(equal(place, length), unsqueeze(token, 1), tokens);
}

GenerationPlan read_plan(NodeImport& node, int64_t beams) {
  GenerationPlan plan;
  const int64_t type = node.get_int("model_type");
  require(node, type == 2 ? node.rank(0) > 0 : node.rank(0) == 2,
          "the ids must be [batch, sequence]");
  plan.batch = node.shape(0)[0];
  plan.beams = within_reach(node, beams, "the number of beams");
  plan.prompt = type == 0 ? node.shape(0)[1] : 1;
  if (type == 2 && node.has_input(10)) {
    require(node, node.rank(10) == 2 && node.shape(10)[0] == plan.batch,
            "decoder_input_ids do not fit the batch");
    plan.prompt = node.shape(10)[1];
  }
  plan.most = within_reach(node, known_int(node, 1), "max_length");
  plan.pad = node.get_int("pad_token_id");
  plan.eos = node.get_int("eos_token_id");
  require(node, plan.beams > 0 && plan.batch > 0, "there must be a beam and a sequence");
  require(node, plan.prompt > 0 && plan.prompt < plan.most,
          "max_length must be larger than the length of the prompt");
  return plan;
}

void generate(NodeImport& node, const GenerationPlan& plan, Decoder& decoder,
              Search& search) {
  Sequences start;
  const Search::Choice first = begin(plan, decoder, search, start);
  std::vector<Expr> shown;
  for (Expr x : first.shown) shown.push_back(unsqueeze(x, 0));
  const int64_t steps = plan.most - plan.prompt - 1;
  if (steps == 0) return search.finish(start, shown);
  std::string why_not;
  std::optional<Outcome> out =
      as_loop(node, plan, decoder, search, start, steps, why_not);
  if (!out) out = written_out(node, plan, decoder, search, start, steps, why_not);
  for (size_t k = 0; k < shown.size(); ++k) shown[k] = join({shown[k], out->shown[k]}, 0);
  search.finish(out->at, shown);
}

} // namespace svod::importer
