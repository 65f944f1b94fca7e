// RNN, GRU and LSTM over their known sequence length. The input's share of all gates of
// all steps is one matrix product ahead of the loop; a step then multiplies only the
// state. A direction is a cell function applied along the steps, written out where they
// are few and as the body of a loop where they are many. A batch entry that has ended
// keeps its state and gives zeros.
#include "compiler/ir/graph_copy.h"
#include "compiler/ir/region.h"
#include "importer/formula/formula.h"
#include "importer/formula/quantization.h"

#include <algorithm>
#include <functional>
#include <map>

namespace svod::importer {
namespace {

constexpr int64_t kMostWrittenOut = 32; // steps; code grows with each

struct Activation {
  std::string name; // lower case
  double alpha = 0, beta = 0;
};

struct ActivationRow {
  std::string_view name;
  bool has_alpha, has_beta;
  double alpha, beta; // defaults
};

constexpr ActivationRow kActivations[] = {
    {"relu", false, false, 0, 0},        {"tanh", false, false, 0, 0},
    {"sigmoid", false, false, 0, 0},     {"affine", true, true, 1, 0},
    {"leakyrelu", true, false, 0.01, 0}, {"thresholdedrelu", true, false, 1, 0},
    {"scaledtanh", true, true, 1, 1},    {"hardsigmoid", true, true, 0.2, 0.5},
    {"elu", true, false, 1, 0},          {"softsign", false, false, 0, 0},
    {"softplus", false, false, 0, 0},
};

Expr activate(const Activation& how, Expr x) {
  const std::string& name = how.name;
  Expr zero = like(x, 0);
  if (name == "relu") return maximum(x, zero);
  if (name == "tanh") return tanh(x);
  if (name == "sigmoid") return sigmoid(x);
  if (name == "affine") return x * how.alpha + how.beta;
  if (name == "leakyrelu") return select(less(x, zero), x * how.alpha, x);
  if (name == "thresholdedrelu") return select(less(like(x, how.alpha), x), x, zero);
  if (name == "scaledtanh") return tanh(x * how.beta) * how.alpha;
  if (name == "hardsigmoid") return clamp(x * how.alpha + how.beta, 0, 1);
  if (name == "elu") return select(less(x, zero), (exp(x) - 1.0) * how.alpha, x);
  if (name == "softsign") return x / (absolute(x) + 1.0);
  return softplus(x);
}

// The functions of all directions in order; those with parameters take the next ones
// listed.
std::vector<Activation> activations_of(NodeImport& node, size_t directions,
                                       const std::vector<std::string>& defaults) {
  std::vector<std::string> names = node.get_strings("activations");
  if (!node.has("activations"))
    for (size_t d = 0; d < directions; ++d)
      names.insert(names.end(), defaults.begin(), defaults.end());
  if (names.size() != directions * defaults.size())
    node.invalid("activations must name " + std::to_string(defaults.size()) +
                 " functions per direction");
  std::vector<float> alphas = node.get_floats("activation_alpha");
  std::vector<float> betas = node.get_floats("activation_beta");
  size_t next_alpha = 0, next_beta = 0;
  std::vector<Activation> result;
  for (std::string& name : names) {
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const auto* row =
        std::find_if(std::begin(kActivations), std::end(kActivations),
                     [&](const ActivationRow& r) { return r.name == name; });
    if (row == std::end(kActivations))
      node.invalid("activation '" + name + "' is unknown");
    Activation how{name, row->alpha, row->beta};
    if (row->has_alpha && next_alpha < alphas.size()) how.alpha = alphas[next_alpha++];
    if (row->has_beta && next_beta < betas.size()) how.beta = betas[next_beta++];
    result.push_back(how);
  }
  return result;
}

// Weights of 8 bits, [directions, in, gates * hidden], with a scale and a zero point for
// each direction or column.
struct ByteWeights {
  Expr values, scale, zero;
};

// The operands common to the three operators, in time-major layout and F32 or F64.
struct Recurrent {
  Expr x, w, r; // [steps, batch, in], [directions, gates * hidden, in], [.., hidden]
  std::optional<ByteWeights> w_bytes, r_bytes; // whose factors become bytes as well
  Expr bias;                                   // [directions, 2 * gates * hidden]
  std::optional<Expr> lengths;
  int64_t steps, batch, hidden, directions, gates;
  bool reverse_first, batch_major;
  std::vector<Activation> activations;
};

Expr zeros(Expr like, Shape shape) {
  return with(like, constant(*like.g, like.dtype(), std::move(shape), 0));
}

Expr initial_state(NodeImport& node, const Recurrent& rnn, size_t i) {
  Shape shape{rnn.directions, rnn.batch, rnn.hidden};
  if (!node.has_input(i)) return zeros(rnn.x, shape);
  Expr state = wide(node, i);
  if (rnn.batch_major && state.rank() == 3) state = permute(state, {1, 0, 2});
  require(node, state.shape() == shape, "an initial state has a wrong shape");
  return state;
}

int64_t direction_count(NodeImport& node) {
  std::string direction = node.get_string("direction");
  if (direction == "bidirectional") return 2;
  // The first opset of GRU spells its default like this.
  if (direction == "forward" || direction == "reverse" || direction == "foward") return 1;
  node.invalid("direction '" + direction + "' is not in the specification");
}

// W or R of DynamicQuantizeLSTM of com.microsoft; nothing of other operators.
std::optional<ByteWeights> byte_weights(NodeImport& node, size_t i) {
  if (node.model_node.op_type != "DynamicQuantizeLSTM") return std::nullopt;
  const Expr w = operand(node, i);
  require(node, w.rank() == 3, "X, W and R need rank 3");
  const auto parameter = [&](size_t at) {
    const Expr p = operand(node, at);
    Shape shape = p.shape();
    shape.insert(shape.begin() + std::min<size_t>(1, shape.size()), 1);
    shape.resize(3, 1);
    require_broadcast(node, shape, w.shape());
    return reshape(p, shape);
  };
  const size_t scale = i == 1 ? 8 : 10;
  return ByteWeights{w, parameter(scale), parameter(scale + 1)};
}

// W or R [directions, gates * hidden, in].
Expr recurrent_weights(NodeImport& node, size_t i) {
  const std::optional<ByteWeights> bytes = byte_weights(node, i);
  if (!bytes) return wide(node, i);
  return permute(dequantize(bytes->values, bytes->scale, bytes->zero), {0, 2, 1});
}

Recurrent read_recurrent(NodeImport& node, int64_t gates,
                         const std::vector<std::string>& default_activations) {
  bool batch_major = node.opset >= 14 && node.get_int("layout") != 0;
  Expr x = wide(node, 0);
  Expr w = recurrent_weights(node, 1), r = recurrent_weights(node, 2);
  require(node, x.rank() == 3 && w.rank() == 3 && r.rank() == 3,
          "X, W and R need rank 3");
  if (batch_major) x = permute(x, {1, 0, 2});
  int64_t directions = direction_count(node), hidden = extent(r, 2);
  require(node, w.shape() == Shape{directions, gates * hidden, extent(x, 2)},
          "W has a wrong shape");
  require(node, r.shape() == Shape{directions, gates * hidden, hidden},
          "R has a wrong shape");
  if (node.has("hidden_size"))
    require(node, node.get_int("hidden_size") == hidden, "hidden_size does not fit R");
  Shape bias_shape{directions, 2 * gates * hidden};
  Expr bias = node.has_input(3) ? wide(node, 3) : zeros(x, bias_shape);
  require(node, bias.shape() == bias_shape, "B has a wrong shape");
  int64_t steps = extent(x, 0), batch = extent(x, 1);
  require(node, steps <= kMostIterations, "the sequence is over the limit");
  require(node, steps > 0, "the sequence is empty");
  std::optional<Expr> lengths;
  if (node.has_input(4)) {
    lengths = operand(node, 4);
    require(node, lengths->shape() == Shape{batch}, "sequence_lens has a wrong shape");
    if (auto values = known_ints(node.g, lengths->id))
      if (std::all_of(values->begin(), values->end(),
                      [&](int64_t n) { return n == steps; }))
        lengths.reset();
  }
  return {x,
          w,
          r,
          node.exact ? std::nullopt : byte_weights(node, 1),
          node.exact ? std::nullopt : byte_weights(node, 2),
          bias,
          lengths,
          steps,
          batch,
          hidden,
          directions,
          gates,
          node.get_string("direction") == "reverse",
          batch_major,
          activations_of(node, static_cast<size_t>(directions), default_activations)};
}

// What a cell needs beside the state: parameters of its direction.
struct Direction {
  Expr inputs;     // [steps, batch, gates * hidden], the input's share with its bias
  Expr recurrent;  // [hidden, gates * hidden]
  Expr state_bias; // [gates * hidden]
  const Activation* activations;
  std::optional<ByteWeights> bytes; // of the direction, instead of `recurrent`
};

Expr row(Expr x, int64_t i) { return squeeze(cut(x, 0, i, 1), 0); }
std::optional<ByteWeights> row(const std::optional<ByteWeights>& w, int64_t d) {
  if (!w) return std::nullopt;
  const auto of = [&](Expr x) { return row(x, extent(x, 0) == 1 ? 0 : d); };
  return ByteWeights{of(w->values), of(w->scale), of(w->zero)};
}
// The product with weights of 8 bits of a factor that is rounded to 8 bits as well, by
// the range of all of it.
Expr byte_product(Expr x, const ByteWeights& w) {
  const Quantized a = quantized_whole(x);
  const Expr sums = matmul(centered(a.values, a.zero), centered(w.values, w.zero));
  return convert(sums, DType::F32) * (a.scale * w.scale);
}
// The part of gate `gate` along the last axis.
Expr gate_of(Expr x, int64_t gate, int64_t hidden) {
  return cut(x, x.rank() - 1, gate * hidden, hidden);
}

// `whole_bias`: the state needs none of its own, its bias joins the input's share.
Direction direction_of(const Recurrent& rnn, int64_t d, size_t activations_each,
                       bool whole_bias) {
  int64_t width = rnn.gates * rnn.hidden;
  Expr flat = reshape(rnn.x, {rnn.steps * rnn.batch, extent(rnn.x, 2)});
  Expr bias = row(rnn.bias, d);
  Expr input_bias = cut(bias, 0, 0, width), state_bias = cut(bias, 0, width, width);
  if (whole_bias) input_bias = input_bias + state_bias;
  const std::optional<ByteWeights> w = row(rnn.w_bytes, d);
  Expr inputs =
      (w ? byte_product(flat, *w) : matmul(flat, permute(row(rnn.w, d), {1, 0}))) +
      input_bias;
  return {reshape(inputs, {rnn.steps, rnn.batch, width}), permute(row(rnn.r, d), {1, 0}),
          state_bias, rnn.activations.data() + static_cast<size_t>(d) * activations_each,
          row(rnn.r_bytes, d)};
}

using State = std::vector<Expr>; // state[0] is what the cell gives out
// A value around the steps as a step sees it: in the body of a loop, an input of it.
using Capture = std::function<Expr(Expr)>;
using Cell = std::function<State(Expr inputs, const State& state, const Capture& outer)>;

struct Steps {
  Expr outputs; // [steps, 1, batch, hidden]
  State last;
};

// The state's share of the gates.
Expr from_state(const Direction& dir, Expr state, const Capture& outer) {
  if (!dir.bytes) return matmul(state, outer(dir.recurrent));
  return byte_product(
      state, {outer(dir.bytes->values), outer(dir.bytes->scale), outer(dir.bytes->zero)});
}

// One step at `time`, a scalar of the type of the lengths.
State advance(const Recurrent& rnn, Expr inputs, const State& state,
              const std::optional<Expr>& time, const Capture& outer, const Cell& cell,
              Expr& out) {
  State next = cell(inputs, state, outer);
  out = next[0];
  if (rnn.lengths) {
    const Expr active = reshape(less(*time, outer(*rnn.lengths)), {rnn.batch, 1});
    for (size_t s = 0; s < next.size(); ++s) next[s] = select(active, next[s], state[s]);
    out = select(active, out, like(out, 0));
  }
  out = reshape(out, {1, rnn.batch, rnn.hidden});
  return next;
}

Steps write_out(const Recurrent& rnn, Expr inputs, State state, bool reverse,
                const Cell& cell) {
  std::vector<Expr> outputs(static_cast<size_t>(rnn.steps), inputs);
  for (int64_t i = 0; i < rnn.steps; ++i) {
    const int64_t t = reverse ? rnn.steps - 1 - i : i;
    std::optional<Expr> time;
    if (rnn.lengths)
      time = with(inputs, constant_int(*inputs.g, rnn.lengths->dtype(), {1}, t));
    Expr out = inputs;
    state =
        advance(rnn, row(inputs, t), state, time, [](Expr x) { return x; }, cell, out);
    outputs[static_cast<size_t>(t)] = unsqueeze(out, 0);
  }
  return {join(outputs, 0), state};
}

// The graph of one step, and what the loop gives it beside count and condition.
struct Body {
  Graph graph;
  std::vector<NodeId> operands;
};

Body body_of(const Recurrent& rnn, Expr inputs, const State& state, bool reverse,
             const Cell& cell) {
  Graph& g = *inputs.g;
  Body body;
  if (!g.source_names().empty()) body.graph.open_source(g.source_names().back());
  Expr time{&body.graph, body.graph.add_input("", DType::I64, {})};
  const auto add = [&](NodeId given, Shape shape) {
    body.operands.push_back(given);
    return Expr{&body.graph, body.graph.add_input("", g[given].dtype, std::move(shape))};
  };
  State carried;
  for (const Expr& s : state) carried.push_back(add(s.id, s.shape()));
  const Expr step = add(inputs.id, {inputs.shape().begin() + 1, inputs.shape().end()});
  std::map<NodeId, Expr> captured;
  const Capture outer = [&](Expr x) {
    if (const auto known = captured.find(x.id); known != captured.end())
      return known->second;
    const Expr inside = g.depends_on_input(x.id)
                            ? add(x.id, x.shape())
                            : Expr{&body.graph, GraphCopy(body.graph, g).copy(x.id)};
    captured.emplace(x.id, inside);
    return inside;
  };
  if (reverse) time = static_cast<double>(rnn.steps - 1) - time;
  std::optional<Expr> position;
  if (rnn.lengths) position = reshape(convert(time, rnn.lengths->dtype()), {1});
  Expr out = step;
  for (const Expr& s : advance(rnn, step, carried, position, outer, cell, out))
    body.graph.add_output("", s.id);
  body.graph.add_output("", out.id);
  body.graph.close_source();
  return body;
}

Steps as_loop(const Recurrent& rnn, Expr inputs, const State& state, bool reverse,
              const Cell& cell) {
  Graph& g = *inputs.g;
  Body body = body_of(rnn, inputs, state, reverse, cell);
  LoopSpec spec;
  spec.body = g.add_body(std::make_shared<const Graph>(std::move(body.graph)));
  spec.carried = static_cast<int64_t>(state.size());
  spec.sliced = 1;
  spec.limit = rnn.steps;
  spec.reversed = {reverse, reverse};
  body.operands.insert(body.operands.begin(), {constant_int(g, DType::I64, {}, rnn.steps),
                                               constant_int(g, DType::Bool, {}, 1)});
  const NodeId region = loop(g, spec, std::move(body.operands));
  Steps made{with(inputs, result(g, region, spec.carried)), {}};
  for (int64_t s = 0; s < spec.carried; ++s)
    made.last.push_back(with(inputs, result(g, region, s)));
  return made;
}

Steps run_steps(const Recurrent& rnn, Expr inputs, const State& state, bool reverse,
                const Cell& cell) {
  return rnn.steps <= kMostWrittenOut ? write_out(rnn, inputs, state, reverse, cell)
                                      : as_loop(rnn, inputs, state, reverse, cell);
}

// Outputs Y, Y_h (and Y_c) in the node's layout. Of a sequence without a step the
// specification says nothing; its last state is 0, as ONNX Runtime has it.
void give_recurrent(NodeImport& node, const Recurrent& rnn,
                    const std::vector<Steps>& runs) {
  std::vector<Expr> outputs;
  for (const Steps& run : runs) outputs.push_back(run.outputs);
  Expr y = join(outputs, 1);
  if (rnn.batch_major) y = permute(y, {2, 0, 1, 3});
  if (node.wants_output(0)) finish(node, y, 0);
  for (size_t s = 0; s < runs[0].last.size(); ++s) {
    std::vector<Expr> states;
    for (const Steps& run : runs) states.push_back(unsqueeze(run.last[s], 0));
    Expr state = join(states, 0);
    if (rnn.lengths) {
      const Expr any = less(like(*rnn.lengths, 0), *rnn.lengths);
      state = select(reshape(any, {1, rnn.batch, 1}), state, like(state, 0));
    }
    if (rnn.batch_major) state = permute(state, {1, 0, 2});
    if (node.wants_output(s + 1)) finish(node, state, s + 1);
  }
}

// Clipping bounds what activations see. Exporters write 0 for none: taken literally it
// would leave nothing of the inputs.
std::function<Expr(Expr)> clipper(NodeImport& node) {
  const double bound = node.has("clip") ? node.get_float("clip") : 0;
  if (!(bound >= 0)) node.invalid("clip must not be negative");
  if (bound == 0) return [](Expr x) { return x; };
  return [bound](Expr x) { return clamp(x, -bound, bound); };
}

bool reversed(const Recurrent& rnn, int64_t d) { return d == 1 || rnn.reverse_first; }

} // namespace

void import_rnn(NodeImport& node) {
  Recurrent rnn = read_recurrent(node, 1, {"Tanh"});
  Expr h0 = initial_state(node, rnn, 5);
  auto clip = clipper(node);
  std::vector<Steps> runs;
  for (int64_t d = 0; d < rnn.directions; ++d) {
    Direction dir = direction_of(rnn, d, 1, true);
    Cell cell = [&](Expr inputs, const State& state, const Capture& outer) {
      Expr gate = inputs + matmul(state[0], outer(dir.recurrent));
      return State{activate(dir.activations[0], clip(gate))};
    };
    runs.push_back(run_steps(rnn, dir.inputs, {row(h0, d)}, reversed(rnn, d), cell));
  }
  give_recurrent(node, rnn, runs);
}

// Gates in the order z, r, h.
void import_gru(NodeImport& node) {
  Recurrent rnn = read_recurrent(node, 3, {"Sigmoid", "Tanh"});
  bool linear_first = node.opset >= 3 && node.get_int("linear_before_reset") != 0;
  Expr h0 = initial_state(node, rnn, 5);
  int64_t n = rnn.hidden;
  auto clip = clipper(node);
  std::vector<Steps> runs;
  for (int64_t d = 0; d < rnn.directions; ++d) {
    Direction dir = direction_of(rnn, d, 2, false);
    Expr both_gates = cut(dir.recurrent, 1, 0, 2 * n),
         last = gate_of(dir.recurrent, 2, n);
    Expr both_bias = cut(dir.state_bias, 0, 0, 2 * n),
         last_bias = gate_of(dir.state_bias, 2, n);
    Cell cell = [&](Expr inputs, const State& state, const Capture& outer) {
      Expr h = state[0];
      Expr zr =
          cut(inputs, 1, 0, 2 * n) + matmul(h, outer(both_gates)) + outer(both_bias);
      zr = activate(dir.activations[0], clip(zr));
      Expr z = gate_of(zr, 0, n), r = gate_of(zr, 1, n);
      Expr from_state = linear_first ? r * (matmul(h, outer(last)) + outer(last_bias))
                                     : matmul(r * h, outer(last)) + outer(last_bias);
      Expr fresh = activate(dir.activations[1], clip(gate_of(inputs, 2, n) + from_state));
      return State{(like(z, 1) - z) * fresh + z * h};
    };
    runs.push_back(run_steps(rnn, dir.inputs, {row(h0, d)}, reversed(rnn, d), cell));
  }
  give_recurrent(node, rnn, runs);
}

// Gates in the order i, o, f, c; peepholes in the order i, o, f.
void import_lstm(NodeImport& node) {
  Recurrent rnn = read_recurrent(node, 4, {"Sigmoid", "Tanh", "Tanh"});
  bool coupled = node.get_int("input_forget") != 0;
  Expr h0 = initial_state(node, rnn, 5), c0 = initial_state(node, rnn, 6);
  int64_t n = rnn.hidden;
  std::optional<Expr> peepholes;
  if (node.has_input(7)) peepholes = wide(node, 7);
  if (peepholes)
    require(node, peepholes->shape() == Shape{rnn.directions, 3 * n},
            "P has a wrong shape");
  auto clip = clipper(node);
  std::vector<Steps> runs;
  for (int64_t d = 0; d < rnn.directions; ++d) {
    Direction dir = direction_of(rnn, d, 3, true);
    const Activation *f = dir.activations, *g = f + 1, *h = f + 2;
    Cell cell = [&](Expr inputs, const State& state, const Capture& outer) {
      auto peep = [&](int64_t gate, Expr x, Expr c) {
        return peepholes ? x + outer(gate_of(row(*peepholes, d), gate, n)) * c : x;
      };
      Expr gates = inputs + from_state(dir, state[0], outer);
      Expr c = state[1];
      Expr in = activate(*f, clip(peep(0, gate_of(gates, 0, n), c)));
      Expr forget = coupled ? like(in, 1) - in
                            : activate(*f, clip(peep(2, gate_of(gates, 2, n), c)));
      Expr fresh = activate(*g, clip(gate_of(gates, 3, n)));
      Expr next = forget * c + in * fresh;
      Expr out = activate(*f, clip(peep(1, gate_of(gates, 1, n), next)));
      return State{out * activate(*h, clip(next)), next};
    };
    State start{row(h0, d), row(c0, d)};
    runs.push_back(run_steps(rnn, dir.inputs, start, reversed(rnn, d), cell));
  }
  give_recurrent(node, rnn, runs);
}

} // namespace svod::importer
