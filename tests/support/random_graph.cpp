// Drawing graphs. The hard part is that a pass may reorder float operations, and that
// floor, less or argmax turn a rounding difference into a different answer. So the
// generator knows of each value a bound and how many fraction bits it has. Inputs are
// multiples of 1/4; as long as bound and fraction bits fit the mantissa, sums and
// products are exact in any order ("exact"), and only exact values go into functions with
// jumps. What exp and the like make is not exact; from then on only smooth functions
// follow, and the tolerance grows with the bound.
#include "tests/support/random_drawer.h"

#include "compiler/ir/shape_rules.h"

#include <algorithm>
#include <cmath>

namespace svod::test {

int mantissa_bits(DType dtype) {
  switch (dtype) {
  case DType::F16:
    return 11;
  case DType::BF16:
    return 8;
  case DType::F32:
    return 24;
  default:
    return 53;
  }
}

// Rounding of one operation, relative, with room for some dozens of them.
static double relative_error(const Value& value) {
  return 64 * std::ldexp(1.0, -value.precision);
}

// All but regions, which random_region.h draws, the call, which the evaluator cannot run,
// and the descent, drawn where a gather could be, of which it is a rare kind.
static std::vector<Op> drawn_ops() {
  std::vector<Op> ops;
#define OP(name, text, class, arity, shape, payload)                                     \
  if (OpClass::class != OpClass::Region && Op::name != Op::Call &&                       \
      Op::name != Op::Descend)                                                           \
    ops.push_back(Op::name);
#define MAP(name, text, arity, result, cell) ops.push_back(Op::name);
#include "compiler/ir/ops.def"
  return ops;
}

RandomGraph Drawer::run() {
  int sources = static_cast<int>(random_.between(2, 4));
  for (int i = 0; i < sources; ++i) add_input(kTypes[random_.below(std::size(kTypes))]);
  for (int tries = 0, made = 0; made < options_.nodes && tries < 50 * options_.nodes;
       ++tries)
    made += random_.chance(6) ? draw_idiom() : draw_node();
  add_outputs();
  out_.tolerance.resize(out_.graph.size());
  for (NodeId id = 0; id < out_.graph.size(); ++id) {
    const Value& value = values_[id];
    DType dtype = g()[id].dtype;
    if (!value.exact && is_float(dtype))
      out_.tolerance[id] = relative_error(value) * std::max(1.0, value.bound);
  }
  return std::move(out_);
}

bool Drawer::finish(Node node, Value value) {
  if (!infer_type(g(), node).empty()) return false;
  if (element_count(node.shape) > options_.max_elements) return false;
  value.precision = mantissa_bits(node.dtype);
  for (NodeId input : node.inputs)
    value.precision = std::min(value.precision, values_[input].precision);
  // Integers wrap; floats of any order agree only within bounds.
  if (is_float(node.dtype)) {
    if (value.bound > kLargest) return false;
    double bits = std::log2(std::max(1.0, value.bound)) + value.fraction + 1;
    if (bits > mantissa_bits(node.dtype)) value.exact = false;
  } else {
    double most = std::ldexp(1.0, 8 * byte_size(node.dtype));
    value = {std::min(value.bound, node.dtype == DType::Bool ? 1 : most), 0, true,
             value.ends};
  }
  record(g().intern(std::move(node)), value);
  return true;
}

bool Drawer::draw_node() {
  static const std::vector<Op> kOps = drawn_ops();
  Op op = kOps[random_.below(std::ssize(kOps))];
  if (info(op).op_class == OpClass::Source) return draw_source(op) != kNoNode;
  NodeId x = draw_value();
  if (random_.chance(5)) op = g()[x].op; // twice the same, as in models
  if (op == Op::Descend) op = Op::Gather;
  OpClass kind = info(op).op_class;
  if (kind == OpClass::Source) return false;
  if (value(x).ends && kind != OpClass::View) return false;
  switch (kind) {
  case OpClass::Convert:
    return draw_convert(op, x);
  case OpClass::View:
    return draw_view(op, x);
  case OpClass::Join:
    return draw_concat(x);
  case OpClass::Reduce:
  case OpClass::Scan:
    return draw_reduce(op, x);
  case OpClass::Index:
    return draw_indexed(op, x);
  case OpClass::Order:
    return draw_argsort(x);
  default:
    return draw_map(op, x);
  }
}

void Drawer::add_outputs() {
  std::vector<bool> used(g().size());
  for (NodeId id = 0; id < g().size(); ++id)
    for (NodeId input : g()[id].inputs) used[input] = true;
  for (NodeId id = 0; id < g().size(); ++id)
    if ((!used[id] && info(g()[id].op).op_class != OpClass::Source) ||
        id + 1 == g().size())
      g().add_output("y" + std::to_string(g().outputs().size()), id);
}

RandomGraph random_graph(uint64_t seed, const RandomGraphOptions& options) {
  return Drawer(seed, options).run();
}

std::string compare_outputs(const RandomGraph& original, const Graph& changed) {
  Evaluated want = evaluate(original.graph, original.inputs);
  Evaluated got = evaluate(changed, original.inputs);
  if (want.failed != kNoNode || got.failed != kNoNode) return "evaluation failed";
  if (got.outputs.size() != want.outputs.size()) return "another number of outputs";
  for (size_t i = 0; i < want.outputs.size(); ++i) {
    double tolerance = original.tolerance[original.graph.outputs()[i].node];
    std::string why =
        compare_tensors(got.outputs[i], want.outputs[i], tolerance, tolerance);
    if (!why.empty()) return "output " + std::to_string(i) + ": " + why;
  }
  return "";
}

} // namespace svod::test
