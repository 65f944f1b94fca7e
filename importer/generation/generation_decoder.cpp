// The graphs that the generating operators hold: a decoder like GPT-2's, which takes the
// prompt itself, or an encoder and a decoder like T5's. Their inputs and outputs have
// fixed places; caches are what follows.
#include "importer/generation/generation.h"

#include "importer/bounded/bounded.h"

#include <algorithm>
#include <memory>

namespace svod::importer {
namespace {

const ModelGraph& graph_of(const NodeImport& node, std::string_view name) {
  for (const ModelAttribute& attribute : node.model_node.attributes)
    if (attribute.name == name && attribute.graph) return *attribute.graph;
  node.invalid("it has no graph '" + std::string(name) + "'");
}

// x in the type that the graph declares for an input.
NodeId as_declared(const ModelValue& input, Expr x) {
  const std::optional<DType> dtype = dtype_from_onnx(input.onnx_type);
  return dtype ? convert(x, *dtype).id : x.id;
}

// A cache of no positions, by the extents that the graph declares.
Expr empty_cache(const NodeImport& node, const ModelValue& input, int64_t rows,
                 int64_t row_axis) {
  const std::optional<DType> dtype = dtype_from_onnx(input.onnx_type);
  const auto rank = static_cast<size_t>(row_axis + 4);
  if (!dtype || !input.dims || input.dims->size() != rank)
    node.invalid("the graph declares no type for its cache '" + input.name + "'");
  Shape shape;
  for (const ModelDim& dim : *input.dims) shape.push_back(dim.value.value_or(-1));
  shape[static_cast<size_t>(row_axis)] = rows;
  shape[static_cast<size_t>(row_axis) + 2] = 0;
  if (std::ranges::any_of(shape, [](int64_t n) { return n < 0 || n > 1 << 24; }))
    node.unsupported("the graph does not declare the heads of its cache '" + input.name +
                     "'");
  return {&node.g, constant(node.g, *dtype, shape, 0)};
}

// x whose first `count` places along an axis are meant; all of them are there when that
// is known.
NodeId shortened(const NodeImport& node, Expr x, int64_t axis, Expr count) {
  if (const auto places = known_ints(node.g, count.id))
    return cut(x, axis, 0, places->front()).id;
  Counts counts(x.shape().size(), kNoNode);
  counts[static_cast<size_t>(axis)] = count.id;
  return node.bounds->add(node.g, x.id, counts);
}

// The scores of the last position, of [rows, length, vocabulary], in f32.
Expr last_scores(const NodeImport& node, NodeId logits) {
  constexpr const char* kOtherwise =
      "the scores of its graph must be [batch, length, vocabulary]";
  require(node, !is_compound(logits), kOtherwise);
  const Bounded* bounded = node.bounds->find(logits);
  Expr x{&node.g, bounded ? bounded->tensor : logits};
  require(node, x.rank() == 3 && extent(x, 1) > 0, kOtherwise);
  if (bounded) {
    const NodeId count = bounded->counts[1];
    if (count == kNoNode) node.unsupported("the sizes of its scores depend on data");
    const Expr last = maximum(Expr{&node.g, count} - 1.0, 0.0);
    x = take(x, 1, reshape(last, {1}));
  } else {
    x = cut(x, 1, extent(x, 1) - 1, 1);
  }
  x = squeeze(x, 1);
  const int64_t size = node.get_int("vocab_size");
  if (size > 0 && size < extent(x, 1)) x = cut(x, 1, 0, size);
  return convert(x, DType::F32);
}

// What a decoder gives as its caches, in the form they came in.
std::vector<Expr> grown_caches(const NodeImport& node, const std::vector<NodeId>& results,
                               size_t first, const std::vector<Expr>& before,
                               int64_t axis) {
  if (results.size() < first + before.size())
    node.invalid("its decoder gives fewer caches than it takes");
  std::vector<Expr> caches;
  for (size_t i = 0; i < before.size(); ++i) {
    const NodeId id = results[first + i];
    const Bounded* bounded = is_compound(id) ? nullptr : node.bounds->find(id);
    if (!bounded) {
      caches.push_back({&node.g, id});
      continue;
    }
    const Expr whole{&node.g, bounded->tensor};
    if (whole.rank() != before[i].rank() || extent(whole, axis) < extent(before[i], axis))
      node.unsupported("its decoder does not keep its cache");
    caches.push_back(cut(whole, axis, 0, extent(before[i], axis)));
  }
  return caches;
}

class GptDecoder : public Decoder {
public:
  GptDecoder(NodeImport& node, const GenerationPlan& plan, size_t mask_input)
      : Decoder(node, plan), graph_(graph_of(node, "decoder")),
        counts_(convert(
            apply(Op::Not, equal(operand(node, 0), static_cast<double>(plan.pad))),
            DType::I32)),
        mask_(node.has_input(mask_input) ? convert(operand(node, mask_input), DType::I32)
                                         : counts_) {
    require(node, mask_.shape() == node.shape(0), "the mask does not fit the ids");
    if (graph_.inputs.size() < 4 || graph_.outputs.size() + 2 != graph_.inputs.size())
      node.unsupported("a decoder whose inputs are not ids, positions, mask and one "
                       "cache per cache that it gives");
  }
  int64_t row_axis() const override { return 1; }
  Expr first_tokens() override { return convert(operand(node, 0), DType::I32); }

  Output prompt() override {
    const Expr running{&node.g, scan(node.g, Op::ScanSum, counts_.id, 1)};
    const Expr positions = select(less(0.0, counts_), running - 1.0, like(counts_, 0));
    std::vector<NodeId> inputs = token_inputs(first_tokens(), positions, mask_.id);
    std::vector<Expr> caches;
    for (size_t i = 3; i < graph_.inputs.size(); ++i) {
      caches.push_back(empty_cache(node, graph_.inputs[i], plan.batch, row_axis()));
      inputs.push_back(caches.back().id);
    }
    const bool apart = node.has("init_decoder");
    return output(node.run_graph(apart ? "init_decoder" : "decoder", inputs), caches);
  }

  Output next(const Sequences& at, Expr past) override {
    // Behind the prompt every position counts.
    const Expr mask = row_per_beam(plan, here(node, mask_), 0);
    const Expr all = pad(mask, {0, 0}, {0, room() - plan.prompt}, 1);
    const Expr counted = row_per_beam(plan, sum(here(node, counts_), {1}), 0);
    const Expr position =
        counted + convert(past - static_cast<double>(plan.prompt), DType::I32);
    std::vector<NodeId> inputs = token_inputs(unsqueeze(at.last, 1), position,
                                              shortened(node, all, 1, past + 1.0));
    for (NodeId cache : past_caches(at.caches, past)) inputs.push_back(cache);
    return output(node.run_graph("decoder", inputs), at.caches);
  }

private:
  std::vector<NodeId> token_inputs(Expr tokens, Expr positions, NodeId mask) const {
    const std::vector<ModelValue>& to = graph_.inputs;
    return {as_declared(to[0], tokens), as_declared(to[1], positions), mask};
  }

  Output output(const std::vector<NodeId>& results, const std::vector<Expr>& before) {
    return {last_scores(node, results[0]),
            grown_caches(node, results, 1, before, length_axis())};
  }

  const ModelGraph& graph_;
  // i32 [batch, prompt]: what is no padding and has a position of its own, and what the
  // decoder may look at.
  Expr counts_, mask_;
};

// An encoder that makes the caches of cross attention, once, and a decoder. An encoder of
// the older form takes the first tokens too, and gives their scores and caches. What else
// the two take of the prompt and of the encoder is told by its name.
class EncodedDecoder : public Decoder {
public:
  EncodedDecoder(NodeImport& node, const GenerationPlan& plan, size_t mask_input)
      : Decoder(node, plan), encoder_(graph_of(node, "encoder")),
        decoder_(graph_of(node, "decoder")), mask_input_(mask_input) {
    const auto named = [](const ModelGraph& graph, size_t i) -> std::string_view {
      return i < graph.inputs.size() ? graph.inputs[i].name : std::string_view();
    };
    bool takes_hidden = false;
    for (; extra_of(named(decoder_, first_cache_)); ++first_cache_)
      takes_hidden |= extra_of(named(decoder_, first_cache_)) == Extra::Hidden;
    caches_ =
        (decoder_.inputs.size() - std::min(first_cache_, decoder_.inputs.size())) / 2;
    const size_t last = encoder_.inputs.size() - 1;
    starts_ = named(encoder_, last) == "decoder_input_ids";
    const bool known = last < 4 && (last == (starts_ ? 1 : 0) ||
                                    extra_of(named(encoder_, 1)) == Extra::Mask);
    if (caches_ == 0 || decoder_.inputs.size() != first_cache_ + 2 * caches_ ||
        decoder_.outputs.size() != 1 + caches_ || (!starts_ && takes_hidden) || !known ||
        encoder_.outputs.size() != (starts_ ? 2 + 2 * caches_ : caches_))
      node.unsupported("an encoder and a decoder whose inputs and outputs are not those "
                       "of T5's or Whisper's");
  }
  int64_t row_axis() const override { return 0; }

  Expr first_tokens() override {
    if (node.has_input(10)) return convert(operand(node, 10), DType::I32);
    const int64_t token = node.get_int("decoder_start_token_id");
    require(node, token >= 0, "decoder_start_token_id is missing");
    return {&node.g, constant_int(node.g, DType::I32, {plan.batch, 1}, token)};
  }

  Output prompt() override {
    std::vector<NodeId> inputs{as_declared(encoder_.inputs[0], operand(node, 0))};
    for (size_t i = 1; i < encoder_.inputs.size(); ++i) {
      const bool tokens = starts_ && i + 1 == encoder_.inputs.size();
      inputs.push_back(
          as_declared(encoder_.inputs[i], tokens ? first_tokens() : encoder_mask()));
    }
    const std::vector<NodeId> results = node.run_graph("encoder", inputs);
    const auto list = [&](size_t first) {
      std::vector<Expr> part;
      for (size_t i = first; i < first + caches_; ++i)
        part.push_back({&node.g, results[i]});
      return part;
    };
    if (starts_) hidden_ = Expr{&node.g, results[1]};
    for (size_t i = 1; i < first_cache_; ++i)
      extras_.push_back(extra(*extra_of(decoder_.inputs[i].name)));
    if (starts_) {
      cross_ = list(2 + caches_);
      return {last_scores(node, results[0]), list(2)};
    }
    cross_ = list(0);
    std::vector<Expr> none;
    std::vector<NodeId> caches;
    for (size_t i = 0; i < caches_; ++i) {
      none.push_back(empty_cache(node, decoder_.inputs[first_cache_ + i], plan.batch, 0));
      caches.push_back(none.back().id);
    }
    return run(as_declared(decoder_.inputs[0], first_tokens()), caches, none, 1);
  }

  Output next(const Sequences& at, Expr past) override {
    Expr tokens = unsqueeze(at.last, 1);
    const auto& dims = decoder_.inputs[0].dims;
    // A decoder of any length gets all tokens.
    const bool all = !dims || dims->size() != 2 || (*dims)[1].value != 1;
    if (all) tokens = cut(at.tokens, 1, 0, room());
    tokens = {&node.g, as_declared(decoder_.inputs[0], tokens)};
    const NodeId given = all ? shortened(node, tokens, 1, past + 1.0) : tokens.id;
    return run(given, past_caches(at.caches, past), at.caches, plan.beams);
  }

private:
  enum class Extra { Ids, Mask, Hidden };
  static std::optional<Extra> extra_of(std::string_view name) {
    if (name == "encoder_input_ids") return Extra::Ids;
    if (name == "encoder_attention_mask") return Extra::Mask;
    if (name == "encoder_hidden_states") return Extra::Hidden;
    return std::nullopt;
  }
  Expr extra(Extra what) {
    if (what == Extra::Ids) return operand(node, 0);
    return what == Extra::Mask ? encoder_mask() : *hidden_;
  }

  // Of the encoder's ids, all but padding in front, unless an input says it.
  Expr encoder_mask() const {
    const Expr ids = operand(node, 0);
    if (node.has_input(mask_input_))
      return convert(operand(node, mask_input_), DType::I32);
    require(node, ids.rank() == 2, "the encoder's attention mask is missing");
    const Expr counts =
        convert(apply(Op::Not, equal(ids, static_cast<double>(plan.pad))), DType::I32);
    const Expr running{&node.g, scan(node.g, Op::ScanSum, counts.id, 1)};
    return convert(less(0.0, running), DType::I32);
  }

  Output run(NodeId tokens, const std::vector<NodeId>& caches,
             const std::vector<Expr>& before, int64_t beams) {
    GenerationPlan rows = plan;
    rows.beams = beams;
    const auto of_encoder = [&](Expr x) { return row_per_beam(rows, here(node, x), 0); };
    std::vector<NodeId> inputs{tokens};
    for (size_t i = 0; i < extras_.size(); ++i)
      inputs.push_back(as_declared(decoder_.inputs[1 + i], of_encoder(extras_[i])));
    inputs.insert(inputs.end(), caches.begin(), caches.end());
    for (Expr cache : cross_) inputs.push_back(of_encoder(cache).id);
    const std::vector<NodeId> results = node.run_graph("decoder", inputs);
    return {last_scores(node, results[0]),
            grown_caches(node, results, 1, before, length_axis())};
  }

  const ModelGraph &encoder_, &decoder_;
  size_t mask_input_;
  size_t first_cache_ = 1;
  size_t caches_ = 0;   // of self attention; as many are of cross attention
  bool starts_ = false; // the encoder takes the first tokens
  std::optional<Expr> hidden_;
  std::vector<Expr> extras_, cross_; // that the decoder gets, one row per entry
};

} // namespace

void Decoder::note_lengths(const std::vector<Expr>& caches) {
  for (Expr cache : caches) more_.push_back(extent(cache, length_axis()) - plan.prompt);
}

std::vector<NodeId> Decoder::past_caches(const std::vector<Expr>& caches,
                                         Expr past) const {
  std::vector<NodeId> given;
  for (size_t i = 0; i < caches.size(); ++i) {
    const Expr length = more_[i] == 0 ? past : past + static_cast<double>(more_[i]);
    given.push_back(shortened(node, caches[i], length_axis(), length));
  }
  return given;
}

std::unique_ptr<Decoder> make_decoder(NodeImport& node, const GenerationPlan& plan,
                                      size_t mask_input) {
  const int64_t type = node.get_int("model_type");
  if (type == 0) return std::make_unique<GptDecoder>(node, plan, mask_input);
  if (type == 1 || type == 2)
    return std::make_unique<EncodedDecoder>(node, plan, mask_input);
  node.unsupported("model_type " + std::to_string(type));
}

} // namespace svod::importer
