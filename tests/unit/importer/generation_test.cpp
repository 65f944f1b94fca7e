// GreedySearch, BeamSearch and Sampling over decoders small enough to follow by hand: a
// table gives the scores of the next token by the last one, and what was seen before
// moves them.
#include "tests/support/import_model.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

using namespace svod;
using namespace svod::import_test;

namespace {

constexpr int kVocabulary = 5;

// logits [rows, length, 5] = table[id] + seen * ramp + position * slope, where `seen` is
// the sum of all ids that the cache has after this call.
// `stubborn`: an operator that does not take the size of the run stands in the way.
std::string decoder(bool stubborn = false) {
  const std::vector<std::string> nodes = {
      node("Gather", {"table", "input_ids"}, {"looked"}),
      node("Cast", {"input_ids"}, {"words"}, {attribute("to", int64_t{kF32})}),
      node("Unsqueeze", {"words", "axes"}, {"wide"}),
      node("Concat", {"wide", "wide"}, {"both"}, {attribute("axis", int64_t{0})}),
      node("Concat", {"past_0", "both"}, {"present_0"}, {attribute("axis", int64_t{3})}),
      stubborn ? node("Split", {"present_0"}, {"all"}, {attribute("axis", int64_t{3})})
               : node("Identity", {"present_0"}, {"all"}),
      node("Split", {"all"}, {"keys", "values"}, {attribute("axis", int64_t{0})}),
      node("ReduceSum", {"keys", "summed"}, {"seen"},
           {attribute("keepdims", int64_t{0})}),
      node("Unsqueeze", {"seen", "tail"}, {"column"}),
      node("Mul", {"column", "ramp"}, {"moved"}),
      node("Cast", {"position_ids"}, {"at"}, {attribute("to", int64_t{kF32})}),
      node("Unsqueeze", {"at", "last"}, {"at1"}),
      node("Mul", {"at1", "slope"}, {"sloped"}),
      node("Add", {"looked", "moved"}, {"sum"}),
      node("Add", {"sum", "sloped"}, {"logits"})};
  std::vector<float> table;
  for (int i = 0; i < kVocabulary * kVocabulary; ++i)
    table.push_back(static_cast<float>(i * 7 % 11));
  return graph(
      {nodes,
       {value("input_ids", {"b", "s"}, kI32), value("position_ids", {"b", "s"}, kI32),
        value("attention_mask", {"b", "t"}, kI32), value("past_0", {2, "b", 1, "p", 1})},
       {value("logits", {"b", "s", kVocabulary}),
        value("present_0", {2, "b", 1, "t", 1})},
       {floats("table", {kVocabulary, kVocabulary}, table),
        floats("ramp", {kVocabulary}, {0, 0.25F, -0.25F, 0.5F, 0}),
        floats("slope", {kVocabulary}, {0.125F, 0, 1, 0, 0.5F}),
        ints("axes", {3}, {0, 2, 4}), ints("summed", {4}, {0, 2, 3, 4}),
        ints("last", {1}, {-1}), ints("tail", {2}, {1, 2})}});
}

// The same by hand.
std::vector<float> scores_after(const std::vector<int>& tokens) {
  static constexpr float kRamp[] = {0, 0.25F, -0.25F, 0.5F, 0};
  static constexpr float kSlope[] = {0.125F, 0, 1, 0, 0.5F};
  int seen = 0;
  for (int token : tokens) seen += token;
  std::vector<float> scores;
  for (int v = 0; v < kVocabulary; ++v)
    scores.push_back(static_cast<float>((tokens.back() * kVocabulary + v) * 7 % 11) +
                     static_cast<float>(seen) * kRamp[v] +
                     static_cast<float>(tokens.size() - 1) * kSlope[v]);
  return scores;
}

std::string int_tensor(const std::string& name, const std::vector<int32_t>& values) {
  return tensor(name, kI32, {static_cast<int64_t>(values.size())}, data(9, raw(values)));
}

std::vector<int> tokens_of(const Tensor& tensor) {
  REQUIRE(tensor.dtype == DType::I32);
  std::vector<int32_t> values(tensor.bytes.size() / sizeof(int32_t));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return {values.begin(), values.end()};
}

struct Greedy {
  std::vector<int32_t> prompt;
  int most = 8, eos = 4, pad = 0, least = 0, ngram = 0;
  bool stubborn = false;
};

std::string greedy_model(const Greedy& search) {
  const std::string chosen =
      node("GreedySearch", {"ids", "most", "least"}, {"y"},
           {attribute("eos_token_id", int64_t{search.eos}),
            attribute("pad_token_id", int64_t{search.pad}),
            attribute("no_repeat_ngram_size", int64_t{search.ngram}),
            graph_attribute("decoder", decoder(search.stubborn))},
           "com.microsoft");
  const auto length = static_cast<int64_t>(search.prompt.size());
  return model({{chosen},
                {value("ids", {1, length}, kI32)},
                {value("y", {1, search.most}, kI32)},
                {int_tensor("most", {search.most}), int_tensor("least", {search.least})}},
               17, opset("com.microsoft", 1));
}

// The tokens, of a graph whose steps are one loop, or written out.
std::vector<int> run_greedy(const Greedy& search) {
  const std::string bytes = greedy_model(search); // which weights are views of
  const Imported result = import(bytes);
  INFO(result.text());
  REQUIRE(result.graph);
  int loops = 0;
  for (NodeId id = 0; id < result.graph->size(); ++id)
    loops += (*result.graph)[id].op == Op::Loop;
  CHECK(loops == (search.stubborn ? 0 : 1));
  Tensor ids{DType::I32, {1, static_cast<int64_t>(search.prompt.size())}, {}};
  const auto* first = reinterpret_cast<const std::byte*>(search.prompt.data());
  ids.bytes.assign(first, first + search.prompt.size() * sizeof(int32_t));
  const Evaluated done = evaluate(*result.graph, {ids});
  REQUIRE(done.failed == kNoNode);
  return tokens_of(done.outputs.at(0));
}

bool comes_twice(const std::vector<int>& tokens, int last) {
  for (size_t i = 0; i + 1 < tokens.size(); ++i)
    if (tokens[i] == tokens.back() && tokens[i + 1] == last) return true;
  return false;
}

std::vector<int> expected(const Greedy& search) {
  std::vector<int> tokens(search.prompt.begin(), search.prompt.end());
  bool ended = false;
  while (static_cast<int>(tokens.size()) < search.most) {
    std::vector<float> scores = scores_after(tokens);
    if (static_cast<int>(tokens.size()) < search.least)
      scores[static_cast<size_t>(search.eos)] = -1e30F;
    for (int v = 0; v < kVocabulary && search.ngram == 2; ++v)
      if (comes_twice(tokens, v)) scores[static_cast<size_t>(v)] = -1e30F;
    const auto best = std::max_element(scores.begin(), scores.end()) - scores.begin();
    ended |= best == search.eos;
    tokens.push_back(ended ? search.pad : static_cast<int>(best));
  }
  return tokens;
}

} // namespace

TEST_CASE("a greedy search takes the best token until the end", "[generation]") {
  // Each with other tokens at the end, and some that end early.
  std::vector<std::vector<int>> seen;
  for (const Greedy& search : std::vector<Greedy>{{{1, 2}},
                                                  {{3}},
                                                  {{1, 2}, 8, 3},
                                                  {{1, 2}, 8, 3, 0, 6},
                                                  {{2, 1, 1}, 9, 4, 0, 0, 2}}) {
    seen.push_back(run_greedy(search));
    CHECK(seen.back() == expected(search));
  }
  CHECK(seen[2] != seen[0]);
  CHECK(seen[3] != seen[2]);
}

namespace {

std::vector<double> log_probabilities(const std::vector<int>& tokens) {
  const std::vector<float> scores = scores_after(tokens);
  double all = 0;
  for (float score : scores) all += std::exp(static_cast<double>(score));
  std::vector<double> logs;
  for (float score : scores) logs.push_back(static_cast<double>(score) - std::log(all));
  return logs;
}

struct Rated {
  double score;
  std::vector<int> tokens;
};

// Every way to go on with `more` tokens, best first.
std::vector<Rated> all_continuations(const std::vector<int>& prompt, int more) {
  std::vector<Rated> all{{0, prompt}};
  for (int i = 0; i < more; ++i) {
    std::vector<Rated> longer;
    for (const Rated& one : all) {
      const std::vector<double> logs = log_probabilities(one.tokens);
      for (int v = 0; v < kVocabulary; ++v) {
        longer.push_back({one.score + logs[static_cast<size_t>(v)], one.tokens});
        longer.back().tokens.push_back(v);
      }
    }
    all = std::move(longer);
  }
  std::ranges::sort(all,
                    [](const Rated& a, const Rated& b) { return a.score > b.score; });
  return all;
}

struct Beams {
  std::vector<int> tokens;
  std::vector<float> scores;
};

Beams run_beams(int eos, int most, float penalty) {
  const std::string chosen =
      node("BeamSearch", {"ids", "most", "", "beams", "returned", "penalty"}, {"y", "s"},
           {attribute("eos_token_id", int64_t{eos}),
            attribute("pad_token_id", int64_t{0}), graph_attribute("decoder", decoder())},
           "com.microsoft");
  const std::string bytes =
      model({{chosen},
             {value("ids", {1, 2}, kI32)},
             {value("y", {1, 2, most}, kI32), value("s", {1, 2})},
             {int_tensor("most", {most}), int_tensor("beams", {kVocabulary}),
              int_tensor("returned", {2}), floats("penalty", {1}, {penalty})}},
            17, opset("com.microsoft", 1));
  const Imported result = import(bytes);
  INFO(result.text());
  REQUIRE(result.graph);
  Tensor ids{DType::I32, {1, 2}, {}};
  const std::vector<int32_t> prompt{1, 2};
  const auto* first = reinterpret_cast<const std::byte*>(prompt.data());
  ids.bytes.assign(first, first + 2 * sizeof(int32_t));
  const Evaluated done = evaluate(*result.graph, {ids});
  REQUIRE(done.failed == kNoNode);
  return {tokens_of(done.outputs.at(0)), floats_of(done.outputs.at(1))};
}

} // namespace

TEST_CASE("as many beams as there are tokens find the best of all", "[generation]") {
  // Two steps: after the first every token has a beam.
  const std::vector<Rated> all = all_continuations({1, 2}, 2);
  const Beams found = run_beams(-1, 4, 2);
  for (size_t i = 0; i < 2; ++i) {
    CHECK(std::vector<int>(found.tokens.begin() + static_cast<std::ptrdiff_t>(4 * i),
                           found.tokens.begin() +
                               static_cast<std::ptrdiff_t>(4 * i + 4)) == all[i].tokens);
    CHECK(found.scores[i] == Approx(all[i].score / 16));
  }
}

TEST_CASE("a beam that ends is kept without its end", "[generation]") {
  const std::vector<double> first = log_probabilities({1, 2});
  const auto end = static_cast<int>(std::ranges::max_element(first) - first.begin());
  // Per token, and there are two: the others get longer and worse.
  const Beams found = run_beams(end, 6, 0);
  CHECK(std::vector<int>(found.tokens.begin(), found.tokens.begin() + 6) ==
        std::vector<int>{1, 2, 0, 0, 0, 0});
  CHECK(found.scores[0] == Approx(first[static_cast<size_t>(end)]));
}

namespace {

constexpr int kRows = 512;

// As many sequences of the same prompt, drawn with other numbers each.
std::vector<int> run_sampling(int most, const std::vector<std::string>& attributes) {
  std::vector<std::string> all{attribute("eos_token_id", int64_t{-1}),
                               attribute("pad_token_id", int64_t{0}),
                               graph_attribute("decoder", decoder())};
  all.insert(all.end(), attributes.begin(), attributes.end());
  const std::string bytes =
      model({{node("Sampling", {"ids", "most"}, {"y"}, all, "com.microsoft")},
             {value("ids", {kRows, 2}, kI32)},
             {value("y", {kRows, most}, kI32)},
             {int_tensor("most", {most})}},
            17, opset("com.microsoft", 1));
  const Imported result = import(bytes);
  INFO(result.text());
  REQUIRE(result.graph);
  Tensor ids{DType::I32, {kRows, 2}, {}};
  std::vector<int32_t> prompts;
  for (int row = 0; row < kRows; ++row) prompts.insert(prompts.end(), {1, 2});
  const auto* first = reinterpret_cast<const std::byte*>(prompts.data());
  ids.bytes.assign(first, first + prompts.size() * sizeof(int32_t));
  const Evaluated done = evaluate(*result.graph, {ids});
  REQUIRE(done.failed == kNoNode);
  return tokens_of(done.outputs.at(0));
}

// How often each token comes at a place.
std::vector<int> counted(const std::vector<int>& tokens, int most, int place) {
  std::vector<int> counts(kVocabulary, 0);
  for (int row = 0; row < kRows; ++row)
    ++counts.at(static_cast<size_t>(tokens[static_cast<size_t>(row * most + place)]));
  return counts;
}

} // namespace

TEST_CASE("a token is drawn by its probability, of those that are likely enough",
          "[generation]") {
  // Hot enough that no token is rare.
  const auto hot = attribute("temperature", 6.0F);
  const auto whole =
      run_sampling(3, {hot, attribute("custom", int64_t{1}), attribute("top_p", 2.0F)});
  std::vector<double> shares;
  double sum = 0;
  for (float score : scores_after({1, 2})) {
    shares.push_back(std::exp(static_cast<double>(score) / 6));
    sum += shares.back();
  }
  const std::vector<int> counts = counted(whole, 3, 2);
  for (size_t v = 0; v < shares.size(); ++v) {
    const double p = shares[v] / sum, deviation = std::sqrt(kRows * p * (1 - p));
    CHECK(counts[v] == Approx(kRows * p).margin(4 * deviation));
  }
  // Of one token only the best is left: the search is a greedy one.
  const auto best =
      run_sampling(5, {hot, attribute("custom", int64_t{1}), attribute("top_p", 0.001F)});
  Greedy greedy{{1, 2}};
  greedy.most = 5;
  greedy.eos = -1;
  for (int row : {0, 100, kRows - 1})
    CHECK(std::vector<int>(best.begin() + row * 5, best.begin() + row * 5 + 5) ==
          expected(greedy));
  // Two: those whose sum from the least up is no more than 1 - top_p are out, but for
  // the last two.
  const auto two = run_sampling(
      3, {hot, attribute("min_tokens_to_keep", int64_t{2}), attribute("top_p", 0.001F)});
  const std::vector<int> kept = counted(two, 3, 2);
  CHECK(std::ranges::count(kept, 0) == 3);
  CHECK(std::ranges::count_if(kept, [](int n) { return n > kRows / 8; }) == 2);
}

TEST_CASE("steps that are no loop are written out, as far as that goes", "[generation]") {
  Greedy search{{1, 2}, 8, 3};
  search.stubborn = true;
  CHECK(run_greedy(search) == expected(search));
  search.most = 600;
  refused(greedy_model(search), Exit::Unsupported, "too many to be written out");
}

TEST_CASE("a search needs room and its longest length", "[generation]") {
  Greedy search{{1, 2}};
  search.most = 2;
  refused(greedy_model(search), Exit::InvalidModel, "max_length must be larger");
}
