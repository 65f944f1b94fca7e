#include "compiler/rewrite/quantised_path.h"

#include "compiler/ir/fold.h"
#include "compiler/rewrite/known_values.h"

#include <algorithm>
#include <cmath>

namespace svod::rewrite {

namespace {

std::pair<int64_t, int64_t> range_of_byte(DType dtype) {
  return dtype == DType::U8 ? std::pair<int64_t, int64_t>(0, 255)
                            : std::pair<int64_t, int64_t>(-128, 127);
}

std::optional<QuantisedStep::Kind> step_kind(Op op) {
  switch (op) {
  case Op::Mul:
    return QuantisedStep::Mul;
  case Op::Div:
    return QuantisedStep::Div;
  case Op::Add:
    return QuantisedStep::Add;
  case Op::Sub:
    return QuantisedStep::Sub;
  case Op::Min:
    return QuantisedStep::Min;
  case Op::Max:
    return QuantisedStep::Max;
  default:
    return std::nullopt;
  }
}

// The greatest largest_magnitude that integers of 32 bits can have; nothing where it is
// not known.
std::optional<double> largest_magnitude(const Graph& g, NodeId id) {
  const Node& node = g[id];
  auto of = [&](size_t i) { return largest_magnitude(g, node.inputs[i]); };
  if (is_byte(node.dtype)) return 255;
  if (!g.depends_on_input(id)) {
    const NodeId base = node.op == Op::Expand ? node.inputs[0] : id;
    const std::optional<std::vector<int64_t>> values = known_ints(g, base);
    if (!values) return std::nullopt;
    double most = 0;
    for (int64_t v : *values) most = std::max(most, std::abs(double(v)));
    return most;
  }
  if (is_view(node.op)) return of(0);
  switch (node.op) {
  case Op::Cast:
    return is_byte(g[node.inputs[0]].dtype) ? of(0) : std::nullopt;
  case Op::ReduceSum: {
    const double terms = double(element_count(g[node.inputs[0]].shape)) /
                         double(std::max<int64_t>(1, element_count(node.shape)));
    const std::optional<double> each = of(0);
    return each ? std::optional(*each * terms) : std::nullopt;
  }
  case Op::Add:
  case Op::Sub:
  case Op::Mul: {
    const std::optional<double> a = of(0), b = of(1);
    if (!a || !b) return std::nullopt;
    return node.op == Op::Mul ? *a * *b : *a + *b;
  }
  default:
    return std::nullopt;
  }
}

class PathWalk {
public:
  explicit PathWalk(Graph& graph) : g(graph) {}
  bool floats(NodeId id);
  std::optional<QuantisedPath> finish();

private:
  bool integers(NodeId id);
  bool map_step(const Node& node);
  bool sum_of_two(const Node& node);
  bool view(const Node& node, const Shape& from);
  bool pad(const Node& node);
  bool reduce_step(const Node& node);
  bool sum_step(const Node& node);
  bool carry(const Node& node, const Shape& from);
  NodeId carried(NodeId small, const Node& node, const Shape& from);
  std::vector<QuantisedStep>& steps() {
    return path_.sources.size() == 1 ? path_.own[0] : path_.joint;
  }
  bool add_step(QuantisedStep::Kind kind, NodeId operand) {
    steps().push_back({kind, operand == kNoNode ? kNoNode : base_of(g, operand)});
    return true;
  }
  template <class F> void each_step(F&& f) {
    for (std::vector<QuantisedStep>& own : path_.own)
      for (QuantisedStep& s : own) f(s);
    for (QuantisedStep& s : path_.joint) f(s);
  }

  Graph& g;
  QuantisedPath path_;
};

// Sums and differences with known integers above the source.
bool PathWalk::integers(NodeId id) {
  const Node node = g[id];
  if (node.dtype == DType::I32 && (node.op == Op::Add || node.op == Op::Sub)) {
    const bool first = node.op == Op::Add && !g.depends_on_input(node.inputs[0]);
    const NodeId known = node.inputs[first ? 0 : 1], other = node.inputs[first ? 1 : 0];
    if (!g.depends_on_input(known) && g.depends_on_input(other) && integers(other)) {
      const NodeId base = base_of(g, known);
      return add_step(QuantisedStep::AddInteger,
                      node.op == Op::Add ? base : map(g, Op::Neg, {base}));
    }
    path_ = {};
  }
  if (node.op == Op::Cast && node.dtype == DType::I32 && is_byte(g[node.inputs[0]].dtype))
    return integers(node.inputs[0]);
  if (node.op == Op::Reshape || node.op == Op::Permute) {
    if (integers(node.inputs[0]) && view(node, g[node.inputs[0]].shape)) return true;
    path_ = {};
  }
  path_.own.resize(1);
  if (is_byte(node.dtype)) {
    const auto [first, last] = range_of_byte(node.dtype);
    path_.sources = {{id, first, last}};
    return true;
  }
  constexpr double kMost = 0x1p30;
  const std::optional<double> most =
      node.dtype == DType::I32 ? largest_magnitude(g, id) : std::nullopt;
  if (!most || *most >= kMost) return false;
  path_.sources = {{id, -int64_t(*most), int64_t(*most)}};
  return true;
}

bool PathWalk::sum_of_two(const Node& node) {
  PathWalk a(g), b(g);
  if (!a.floats(node.inputs[0]) || !b.floats(node.inputs[1])) return false;
  if (a.path_.sources.size() != 1 || b.path_.sources.size() != 1) return false;
  path_.sources = {a.path_.sources[0], b.path_.sources[0]};
  path_.own = {std::move(a.path_.own[0]), std::move(b.path_.own[0])};
  path_.minus = node.op == Op::Sub;
  return true;
}

bool PathWalk::map_step(const Node& node) {
  if (node.op == Op::Round)
    return floats(node.inputs[0]) && add_step(QuantisedStep::Round, kNoNode);
  const std::optional<QuantisedStep::Kind> kind = step_kind(node.op);
  if (!kind || node.inputs.size() != 2) return false;
  const bool a = g.depends_on_input(node.inputs[0]),
             b = g.depends_on_input(node.inputs[1]);
  if (a && b) return (node.op == Op::Add || node.op == Op::Sub) && sum_of_two(node);
  if (!a && (node.op == Op::Div || node.op == Op::Sub)) return false;
  const size_t known = a ? 1 : 0;
  return floats(node.inputs[1 - known]) && add_step(*kind, node.inputs[known]);
}

// An operand seen through a view or a reduction of what it is an operand of.
NodeId PathWalk::carried(NodeId small, const Node& node, const Shape& from) {
  const Shape shape = g[small].shape;
  if (element_count(shape) == 1) return reshape(g, small, Shape(node.shape.size(), 1));
  auto one_along = [&](int64_t axis) { return shape[static_cast<size_t>(axis)] == 1; };
  switch (node.op) {
  case Op::Reshape: {
    const std::optional<Shape> to = shape_through_reshape(shape, from, node.shape);
    return to ? reshape(g, small, *to) : kNoNode;
  }
  case Op::Permute:
    return permute(g, small, node.payload);
  case Op::Window: {
    if (!one_along(node.payload[0])) return kNoNode;
    Shape longer = shape;
    longer.push_back(1);
    return reshape(g, small, longer);
  }
  case Op::Expand:
    return small;
  case Op::Slice:
  case Op::Pad:
    for (size_t i = 0; i < shape.size(); ++i)
      if (from[i] != node.shape[i] && shape[i] != 1) return kNoNode;
    return node.op == Op::Slice &&
                   std::any_of(node.payload.begin() + int64_t(shape.size()),
                               node.payload.end(), [](int64_t step) { return step != 1; })
               ? kNoNode
               : small;
  default: // a reduction
    return std::ranges::all_of(node.payload, one_along) ? small : kNoNode;
  }
}

bool PathWalk::carry(const Node& node, const Shape& from) {
  bool all = true;
  each_step([&](QuantisedStep& s) {
    if (s.operand != kNoNode && all) s.operand = carried(s.operand, node, from);
    all = all && (s.operand != kNoNode || s.kind == QuantisedStep::ToFloat ||
                  s.kind == QuantisedStep::Round);
  });
  return all;
}

bool PathWalk::view(const Node& node, const Shape& from) {
  if (!carry(node, from)) return false;
  for (QuantisedPath::Source& source : path_.sources) {
    Node again = node;
    again.dtype = g[source.node].dtype;
    again.inputs = {source.node};
    source.node = rebuild(g, again);
  }
  return true;
}

// A border of the byte that the float in it is made of; of the least one below all
// floats, which no maximum takes.
bool PathWalk::pad(const Node& node) {
  if (path_.sources.size() != 1 || !is_byte(g[path_.sources[0].node].dtype)) return false;
  const QuantisedPath::Source source = path_.sources[0];
  const auto bits = static_cast<uint64_t>(node.payload.back());
  const double value = scalar_value(DType::F32, bits);
  PathWalk whole(g);
  whole.path_ = path_;
  const std::optional<QuantisedPath> path = whole.finish();
  if (!path || element_count(path->channels) != 1) return false;
  const std::optional<QuantisedFunction> f = path->function(0, DType::I8);
  if (!f) return false;
  std::optional<int64_t> fill;
  if (value == -HUGE_VAL) fill = source.first;
  for (int64_t x = source.first; x <= source.last && !fill; ++x)
    if (double(f->float_at(0, x)) == value) fill = x;
  if (!fill) return false;
  Node again = node;
  again.dtype = g[source.node].dtype;
  again.inputs = {source.node};
  again.payload.back() = static_cast<int64_t>(scalar_bits_int(again.dtype, *fill));
  if (!carry(node, g[source.node].shape)) return false;
  path_.sources[0].node = rebuild(g, again);
  return true;
}

bool PathWalk::reduce_step(const Node& node) {
  if (path_.sources.size() != 1) return false;
  return view(node, g[path_.sources[0].node].shape);
}

// A sum of integers times a scale is a sum of integers, times the scale.
bool PathWalk::sum_step(const Node& node) {
  if (path_.sources.size() != 1) return false;
  QuantisedPath::Source& source = path_.sources[0];
  const Shape from = g[source.node].shape;
  const int64_t terms =
      element_count(from) / std::max<int64_t>(1, element_count(node.shape));
  for (QuantisedStep& s : path_.own[0]) {
    const bool scales = s.kind == QuantisedStep::ToFloat ||
                        s.kind == QuantisedStep::Mul || s.kind == QuantisedStep::Div;
    if (s.kind != QuantisedStep::AddInteger && !scales) return false;
    if (s.operand != kNoNode && element_count(g[s.operand].shape) != 1) return false;
    if (s.kind == QuantisedStep::AddInteger)
      s.operand =
          map(g, Op::Mul,
              {s.operand, constant_int(g, DType::I32, g[s.operand].shape, terms)});
  }
  const double most = double(std::max(std::abs(source.first), source.last));
  if (most * double(terms) >= 0x1p29) return false;
  source.node = cast(g, source.node, DType::I32);
  source.first *= terms, source.last *= terms;
  return view(node, from);
}

bool PathWalk::floats(NodeId id) {
  const Node node = g[id];
  if (node.dtype != DType::F32 || !g.depends_on_input(id)) return false;
  if (node.op == Op::Cast) {
    const DType from = g[node.inputs[0]].dtype;
    if (from != DType::I32 && !is_byte(from)) return false;
    return integers(node.inputs[0]) && add_step(QuantisedStep::ToFloat, kNoNode);
  }
  if (info(node.op).op_class == OpClass::Map) return map_step(node);
  const bool known = is_view(node.op) || node.op == Op::ReduceMax ||
                     node.op == Op::ReduceMin || node.op == Op::ReduceSum;
  if (!known || !floats(node.inputs[0])) return false;
  if (node.op == Op::Pad) return pad(node);
  if (node.op == Op::ReduceSum) return sum_step(node);
  if (!is_view(node.op)) return reduce_step(node);
  return view(node, g[node.inputs[0]].shape);
}

// Joins the operands' axes and reads their values.
std::optional<QuantisedPath> PathWalk::finish() {
  Shape joined(g[path_.sources[0].node].shape.size(), 1);
  each_step([&](const QuantisedStep& s) {
    if (s.operand == kNoNode) return;
    for (size_t i = 0; i < joined.size(); ++i)
      joined[i] = std::max(joined[i], g[s.operand].shape[i]);
  });
  path_.channels = joined;
  std::vector<std::vector<QuantisedStep>*> lists;
  for (std::vector<QuantisedStep>& own : path_.own) lists.push_back(&own);
  lists.push_back(&path_.joint);
  path_.values.clear();
  for (std::vector<QuantisedStep>* list : lists) {
    path_.values.emplace_back();
    for (const QuantisedStep& s : *list) {
      path_.values.back().emplace_back();
      if (s.operand == kNoNode) continue;
      std::optional<std::vector<double>> numbers =
          known_floats(g, expand(g, s.operand, joined));
      if (!numbers) return std::nullopt;
      path_.values.back().back() = std::move(*numbers);
    }
  }
  return std::move(path_);
}

float run_steps(const std::vector<QuantisedFunction::Step>& steps, int32_t x,
                float value) {
  for (const QuantisedFunction::Step& s : steps) {
    switch (s.kind) {
    case QuantisedStep::AddInteger:
      x += s.integer;
      break;
    case QuantisedStep::ToFloat:
      value = static_cast<float>(x);
      break;
    case QuantisedStep::Mul:
      value *= s.number;
      break;
    case QuantisedStep::Div:
      value /= s.number;
      break;
    case QuantisedStep::Add:
      value += s.number;
      break;
    case QuantisedStep::Sub:
      value -= s.number;
      break;
    case QuantisedStep::Min:
      value = std::min(value, s.number);
      break;
    case QuantisedStep::Max:
      value = std::max(value, s.number);
      break;
    case QuantisedStep::Round:
      value = std::nearbyintf(value);
      break;
    }
  }
  return value;
}

// The line that the steps follow, from slope * x + offset on; false: they may fall.
bool follow(const std::vector<QuantisedFunction::Step>& steps, double& slope,
            double& offset) {
  for (const QuantisedFunction::Step& s : steps) {
    if (!std::isfinite(s.number)) return false;
    const bool scales = s.kind == QuantisedStep::Mul || s.kind == QuantisedStep::Div;
    if (scales && !(s.number > 0)) return false;
    if (s.kind == QuantisedStep::AddInteger) offset += s.integer;
    if (s.kind == QuantisedStep::Mul) slope *= s.number, offset *= s.number;
    if (s.kind == QuantisedStep::Div) slope /= s.number, offset /= s.number;
    if (s.kind == QuantisedStep::Add) offset += s.number;
    if (s.kind == QuantisedStep::Sub) offset -= s.number;
  }
  return true;
}

} // namespace

float QuantisedFunction::float_at(int64_t a, int64_t b) const {
  float value = run_steps(own[0], static_cast<int32_t>(a), 0);
  if (own.size() == 2) {
    const float other = run_steps(own[1], static_cast<int32_t>(b), 0);
    value = minus ? value - other : value + other;
  }
  return run_steps(joint, 0, value);
}

int QuantisedFunction::at(int64_t a, int64_t b) const {
  const float value = float_at(a, b);
  if (std::isnan(value)) return 0;
  if (value <= static_cast<float>(low)) return low;
  return value >= static_cast<float>(high) ? high : static_cast<int>(value);
}

std::optional<QuantisedFunction> QuantisedPath::function(int64_t channel,
                                                         DType to) const {
  QuantisedFunction out;
  auto steps_of = [&](const std::vector<QuantisedStep>& steps, size_t list) {
    std::vector<QuantisedFunction::Step> made;
    for (size_t i = 0; i < steps.size(); ++i) {
      const std::vector<double>& all = values[list][i];
      const double number = all.empty() ? 0 : all[static_cast<size_t>(channel)];
      made.push_back({steps[i].kind, static_cast<float>(number),
                      steps[i].kind == QuantisedStep::AddInteger
                          ? static_cast<int32_t>(number)
                          : 0});
    }
    return made;
  };
  std::array<double, 2> offsets = {};
  for (size_t i = 0; i < own.size(); ++i) {
    out.own.push_back(steps_of(own[i], i));
    out.slopes[i] = 1;
    if (!follow(out.own[i], out.slopes[i], offsets[i])) return std::nullopt;
  }
  out.joint = steps_of(joint, own.size());
  out.minus = minus;
  if (minus) out.slopes[1] = -out.slopes[1], offsets[1] = -offsets[1];
  out.offset = offsets[0] + offsets[1];
  double unused = 0;
  if (!follow(out.joint, out.slopes[0], out.offset) ||
      !follow(out.joint, out.slopes[1], unused))
    return std::nullopt;
  const auto [low, high] = range_of_byte(to);
  out.low = static_cast<int>(low), out.high = static_cast<int>(high);
  return out;
}

std::optional<QuantisedPath> quantised_path(Graph& g, NodeId cast) {
  PathWalk walk(g);
  if (!walk.floats(g[cast].inputs[0])) return std::nullopt;
  return walk.finish();
}

// The operand of a map that is not the same number for all elements; kNoNode where there
// are several.
static NodeId varying_operand(const Graph& g, const Node& node) {
  NodeId out = kNoNode;
  for (NodeId input : node.inputs) {
    if (splat_bits(g, input)) continue;
    if (out != kNoNode) return kNoNode;
    out = input;
  }
  return out;
}

NodeId joined_below(const Graph& g, NodeId cast) {
  NodeId id = g[cast].inputs[0];
  while (id != kNoNode && info(g[id].op).op_class == OpClass::Map)
    id = varying_operand(g, g[id]);
  return id != kNoNode && g[id].op == Op::Concat ? id : kNoNode;
}

NodeId over_part(Graph& g, NodeId id, NodeId join, NodeId part) {
  if (id == join) return part;
  Node again = g[id];
  again.shape = g[part].shape;
  const NodeId varying =
      again.op == Op::Cast ? again.inputs[0] : varying_operand(g, again);
  for (NodeId& input : again.inputs)
    input = input == varying
                ? over_part(g, input, join, part)
                : constant_bits(g, g[input].dtype, again.shape, *splat_bits(g, input));
  return rebuild(g, again);
}

} // namespace svod::rewrite
