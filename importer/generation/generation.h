// Text generation, as GreedySearch, BeamSearch and Sampling of com.microsoft do it: a
// decoder gives scores for the next token, a search chooses, and what was chosen goes
// into the decoder again, until every sequence has ended or the longest is reached.
//
// Tensors do not grow. A sequence has room for all its tokens from the start, and so has
// a cache of keys and values in a loop of the run, where its length is a bounded size
// (importer/bounded/bounded.h): whatever the decoder's graph does with its past, it sees
// the length that is meant. Where the graph does not fit such a loop the steps are
// written out, each with the lengths it has.
#pragma once

#include "importer/formula/formula.h"

namespace svod::importer {

struct GenerationPlan {
  int64_t batch = 0, beams = 1;
  int64_t prompt = 0; // tokens of a sequence before the first is chosen
  int64_t most = 0;   // with all that are chosen
  int64_t pad = 0, eos = 0;
  int64_t rows() const { return batch * beams; }
};

// What is carried from one token to the next.
struct Sequences {
  Expr tokens;              // i32 [rows, most], pad behind those that are there
  Expr last;                // i32 [rows], the newest
  std::vector<Expr> search; // what the search remembers
  std::vector<Expr> caches; // of the decoder
};

// Where a step stands.
struct TokenStep {
  Expr length; // i64 []: tokens that are there
  bool first;
};

// An input of the node, also inside a loop's body.
inline Expr input_here(const NodeImport& node, size_t i) {
  return {&node.g, node.here(node.input(i))};
}
inline Expr here(const NodeImport& node, Expr x) { return {x.g, node.here(x.id)}; }

// generation_scores.cpp. How scores are changed before a token is chosen: the numbers of
// the node's inputs. All are optional.
struct ScoreInputs {
  size_t min_length, repetition_penalty, vocab_mask, prefix_vocab_mask;
  std::optional<size_t> presence_mask = {};
};
Expr changed_scores(NodeImport& node, const GenerationPlan& plan,
                    const ScoreInputs& inputs, Expr scores, Expr tokens, TokenStep step);
Expr log_softmax(Expr x); // along the last axis of two
// The k largest of each row [rows, n] of f32, the first of equal ones first.
struct Largest {
  Expr values, places; // [rows, k]; i64
};
Largest largest(Expr x, int64_t k);

// generation_decoder.cpp. The graphs that the node holds.
class Decoder {
public:
  struct Output {
    Expr logits; // f32 [rows, vocabulary]
    std::vector<Expr> caches;
  };
  Decoder(NodeImport& of, const GenerationPlan& by) : node(of), plan(by) {}
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  virtual ~Decoder() = default;
  // Of the prompt: one row per entry of the batch.
  virtual Output prompt() = 0;
  // Of the newest tokens, behind `past` others.
  virtual Output next(const Sequences& at, Expr past) = 0;
  // Axes of a cache: the one of rows, and the one that grows.
  virtual int64_t row_axis() const = 0;
  int64_t length_axis() const { return row_axis() + 2; }
  // Tokens that a decoder ever sees, with the one it gets.
  int64_t room() const { return plan.most - 1; }
  // The same of one cache. Most are as long as the sequence; how long they are after the
  // prompt says what they have more or less.
  int64_t room_of(size_t cache) const { return room() + more_[cache]; }
  void note_lengths(const std::vector<Expr>& caches);
  // What sequences start with: i32 [batch, prompt].
  virtual Expr first_tokens() = 0;

protected:
  // What a graph gets of caches, behind `past` tokens.
  std::vector<NodeId> past_caches(const std::vector<Expr>& caches, Expr past) const;
  NodeImport& node;
  const GenerationPlan& plan;

private:
  std::vector<int64_t> more_; // positions of each cache beyond those of the sequence
};
std::unique_ptr<Decoder> make_decoder(NodeImport& node, const GenerationPlan& plan,
                                      size_t mask_input);
// x [batch at axis, ..] with one row per beam.
Expr row_per_beam(const GenerationPlan& plan, Expr x, int64_t axis);

// How a token is chosen.
class Search {
public:
  Search(NodeImport& of, const GenerationPlan& by) : node(of), plan(by) {}
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;
  virtual ~Search() = default;
  virtual std::vector<Expr> start() = 0;
  struct Choice {
    std::optional<Expr> rows; // i64 [rows]: which sequence each one goes on from
    std::vector<Expr> shown;  // results of this step that an output keeps
  };
  // Adds one token to every sequence.
  virtual Choice choose(Sequences& at, Expr logits, TokenStep step) = 0;
  virtual Expr goes_on(const Sequences& at) const = 0; // bool []
  virtual int64_t shown() const { return 0; }
  // Gives the node's outputs; `shown` per kept result, [steps, ..].
  virtual void finish(const Sequences& at, const std::vector<Expr>& shown) = 0;

protected:
  NodeImport& node;
  const GenerationPlan& plan;
};
// tokens [rows, most] with `token` i32 [rows] at `length`.
Expr with_token(Expr tokens, Expr token, Expr length);

// generation.cpp
GenerationPlan read_plan(NodeImport& node, int64_t beams);
void generate(NodeImport& node, const GenerationPlan& plan, Decoder& decoder,
              Search& search);

// generation_beams.cpp
std::unique_ptr<Search> make_beam_search(NodeImport& node, const GenerationPlan& plan);

} // namespace svod::importer
