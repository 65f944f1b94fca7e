// Making and checking regions. Whether a body fits its region is decided here once, for
// the builder, the parser and the verifier.
#include "compiler/ir/region.h"

#include "compiler/ir/build.h"
#include "compiler/ir/fold.h"
#include "compiler/support/check.h"

namespace svod {

LoopSpec loop_spec(const Node& loop) {
  const Payload& p = loop.payload;
  return {static_cast<uint32_t>(p[0]), p[1], p[2], p[3] != 0, p[4],
          {p.begin() + 5, p.end()}};
}

int64_t scanned_count(const LoopSpec& spec, const Graph& body) {
  return static_cast<int64_t>(body.outputs().size()) - spec.carried -
         (spec.again ? 1 : 0);
}

NodeId loop(Graph& g, const LoopSpec& spec, std::vector<NodeId> inputs) {
  Payload payload{spec.body, spec.carried, spec.sliced, spec.again, spec.limit};
  payload.insert(payload.end(), spec.reversed.begin(), spec.reversed.end());
  return make(g, {Op::Loop, {}, {}, std::move(payload), std::move(inputs)});
}

NodeId branch(Graph& g, uint32_t body, uint32_t other, std::vector<NodeId> inputs) {
  return make(g, {Op::If, {}, {}, {body, other}, std::move(inputs)});
}

NodeId result(Graph& g, NodeId region, int64_t number) {
  return make(g, {Op::Result, {}, {}, {number}, {region}});
}

namespace {

bool is_scalar(const Node& node, DType dtype) {
  return node.dtype == dtype && node.shape.empty();
}

bool same_type(const Node& a, const Node& b) {
  return a.dtype == b.dtype && a.shape == b.shape;
}

const Node& input_of(const Graph& g, size_t i) { return g[g.inputs()[i].node]; }
const Node& output_of(const Graph& g, size_t i) { return g[g.outputs()[i].node]; }

bool is_body(const Graph& g, int64_t id) {
  return id >= 0 && id < static_cast<int64_t>(g.body_count());
}

// Of the inputs that both sides have, from `first` of the region and `inner` of the body.
std::string check_inputs(const Graph& g, const Node& node, const Graph& body,
                         size_t first, size_t inner, const LoopSpec* spec) {
  if (node.inputs.size() - first != body.inputs().size() - inner)
    return "the body has another number of inputs";
  for (size_t i = 0; first + i < node.inputs.size(); ++i) {
    const Node& given = g[node.inputs[first + i]];
    const Node& taken = input_of(body, inner + i);
    const std::string where = "input " + std::to_string(first + i);
    const auto carried = spec ? static_cast<size_t>(spec->carried) : 0;
    const auto sliced = spec ? static_cast<size_t>(spec->sliced) : 0;
    if (i < carried || i >= carried + sliced) {
      if (!same_type(given, taken)) return where + " is not what the body takes";
      continue;
    }
    if (given.shape.empty() || given.shape[0] < spec->limit)
      return where + " has fewer items than the loop iterations";
    if (given.dtype != taken.dtype ||
        Shape(given.shape.begin() + 1, given.shape.end()) != taken.shape)
      return where + " has items that the body does not take";
  }
  return "";
}

std::string check_loop_payload(const Graph& g, const Node& node) {
  const Payload& p = node.payload;
  if (p.size() < 5) return "payload has the wrong number of entries";
  if (!is_body(g, p[0])) return "no such body";
  const auto most = static_cast<int64_t>(node.inputs.size());
  if (p[1] < 0 || p[2] < 0 || p[1] > most || p[2] > most || 2 + p[1] + p[2] > most)
    return "a loop has a count, a condition, and what it carries and slices";
  if (p[3] != 0 && p[3] != 1) return "again is 0 or 1";
  if (p[4] < 0 || p[4] > kMostIterations) return "no such limit";
  return "";
}

} // namespace

std::string loop_type(const Graph& g, Node& node) {
  if (std::string why = check_loop_payload(g, node); !why.empty()) return why;
  const LoopSpec spec = loop_spec(node);
  const Graph& body = *g.body(spec.body);
  if (!is_scalar(g[node.inputs[0]], DType::I64) ||
      !is_scalar(g[node.inputs[1]], DType::Bool))
    return "count is i64[], the condition bool[]";
  if (body.inputs().empty() || !is_scalar(input_of(body, 0), DType::I64))
    return "the body's first input is the iteration";
  if (std::string why = check_inputs(g, node, body, 2, 1, &spec); !why.empty())
    return why;
  const int64_t scanned = scanned_count(spec, body);
  if (scanned < 0) return "the body has too few outputs";
  if (static_cast<int64_t>(spec.reversed.size()) != spec.sliced + scanned)
    return "each sliced input and scanned result has a direction";
  for (int64_t flag : spec.reversed)
    if (flag != 0 && flag != 1) return "a direction is 0 or 1";
  const size_t first = spec.again ? 1 : 0;
  if (spec.again && !is_scalar(output_of(body, 0), DType::Bool))
    return "the body's condition is no bool[]";
  for (size_t i = 0; i < static_cast<size_t>(spec.carried); ++i)
    if (!same_type(output_of(body, first + i), g[node.inputs[2 + i]]))
      return "carried value " + std::to_string(i) + " changes its type";
  node.dtype = DType::I64;
  node.shape = {};
  return "";
}

std::string if_type(const Graph& g, Node& node) {
  if (node.payload.size() != 2) return "payload has the wrong number of entries";
  if (!is_scalar(g[node.inputs[0]], DType::Bool)) return "the condition is no bool[]";
  for (int64_t id : node.payload) {
    if (!is_body(g, id)) return "no such body";
    const Graph& body = *g.body(static_cast<uint32_t>(id));
    std::string why = check_inputs(g, node, body, 1, 0, nullptr);
    if (!why.empty()) return why;
  }
  const Graph& yes = *g.body(static_cast<uint32_t>(node.payload[0]));
  const Graph& no = *g.body(static_cast<uint32_t>(node.payload[1]));
  if (yes.outputs().size() != no.outputs().size())
    return "the branches differ in their number of results";
  for (size_t i = 0; i < yes.outputs().size(); ++i)
    if (!same_type(output_of(yes, i), output_of(no, i)))
      return "result " + std::to_string(i) + " differs between the branches";
  node.dtype = DType::Bool;
  node.shape = {};
  return "";
}

std::string result_type(const Graph& g, Node& node) {
  const Node& region = g[node.inputs[0]];
  if (!has_body(region.op)) return "its input is no region";
  if (node.payload.size() != 1) return "payload has the wrong number of entries";
  const Graph& body = *g.body(static_cast<uint32_t>(region.payload[0]));
  const int64_t number = node.payload[0];
  const LoopSpec spec = region.op == Op::Loop ? loop_spec(region) : LoopSpec{};
  const int64_t at = number + (spec.again ? 1 : 0);
  if (number < 0 || at >= static_cast<int64_t>(body.outputs().size()))
    return "no such result";
  const Node& made = output_of(body, static_cast<size_t>(at));
  node.dtype = made.dtype;
  node.shape = made.shape;
  if (region.op == Op::Loop && number >= spec.carried)
    node.shape.insert(node.shape.begin(), spec.limit);
  return "";
}

} // namespace svod
