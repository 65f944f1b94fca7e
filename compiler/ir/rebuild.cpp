// Makes a node through its builder function, so that a pass that copies a graph folds and
// normalises what its replacements made possible.
#include "compiler/ir/fold.h"
#include "compiler/ir/region.h"
#include "compiler/support/check.h"

namespace svod {

// Entries [part * rank, (part + 1) * rank) of a payload of per-axis lists.
static Shape per_axis(const Node& node, size_t rank, size_t part) {
  auto begin = node.payload.begin() + static_cast<std::ptrdiff_t>(part * rank);
  return Shape(begin, begin + static_cast<std::ptrdiff_t>(rank));
}

static NodeId rebuild_source(Graph& g, const Node& node) {
  switch (node.op) {
  case Op::Weight:
    return weight(g, node.dtype, node.shape, static_cast<uint32_t>(node.payload[0]));
  case Op::Constant:
    return constant_bits(g, node.dtype, node.shape,
                         static_cast<uint64_t>(node.payload[0]));
  case Op::Iota:
    return iota(g, node.dtype, node.shape, node.payload[0]);
  default:
    break;
  }
  SVOD_CHECK(false) << "inputs are made by Graph::add_input";
  return kNoNode;
}

static NodeId rebuild_view(Graph& g, const Node& node) {
  NodeId x = node.inputs.at(0);
  size_t rank = g[x].shape.size();
  const Payload& p = node.payload;
  switch (node.op) {
  case Op::Reshape:
    return reshape(g, x, node.shape);
  case Op::Permute:
    return permute(g, x, p);
  case Op::Expand:
    return expand(g, x, node.shape);
  case Op::Slice:
    return slice(g, x, per_axis(node, rank, 0), per_axis(node, rank, 1), node.shape);
  case Op::Pad:
    return pad_bits(g, x, per_axis(node, rank, 0), per_axis(node, rank, 1),
                    static_cast<uint64_t>(p.at(2 * rank)));
  case Op::Window:
    return window(g, x, p.at(0), p.at(1), p.at(2), p.at(3));
  default:
    break;
  }
  SVOD_CHECK(false) << info(node.op).name << " is no view";
  return kNoNode;
}

static NodeId rebuild_index(Graph& g, const Node& node) {
  const Payload& p = node.payload;
  if (node.op == Op::Gather) return gather(g, node.inputs[0], node.inputs[1], p.at(0));
  if (node.op == Op::Descend)
    return descend(g, node.inputs[0], node.inputs[1], node.inputs[2], p.at(0));
  return scatter(g, node.inputs[0], node.inputs[1], node.inputs[2], p.at(0),
                 static_cast<Combiner>(p.at(1)));
}

static NodeId rebuild_reduce(Graph& g, const Node& node) {
  const Payload& p = node.payload;
  if (node.op == Op::ArgMin || node.op == Op::ArgMax)
    return arg_reduce(g, node.op, node.inputs[0], p.at(0), p.at(1) != 0);
  return reduce(g, node.op, node.inputs[0], p);
}

static NodeId rebuild_region(Graph& g, const Node& node) {
  if (node.op == Op::Loop) return loop(g, loop_spec(node), node.inputs);
  if (node.op == Op::Result) return result(g, node.inputs[0], node.payload.at(0));
  return branch(g, static_cast<uint32_t>(node.payload.at(0)),
                static_cast<uint32_t>(node.payload.at(1)), node.inputs);
}

NodeId rebuild(Graph& g, const Node& node) {
  switch (info(node.op).op_class) {
  case OpClass::Source:
    return rebuild_source(g, node);
  case OpClass::Convert:
    return node.op == Op::Cast ? cast(g, node.inputs[0], node.dtype)
                               : bitcast(g, node.inputs[0], node.dtype);
  case OpClass::View:
    return rebuild_view(g, node);
  case OpClass::Join:
    return concat(g, node.inputs, node.payload.at(0));
  case OpClass::Reduce:
    return rebuild_reduce(g, node);
  case OpClass::Scan:
    return scan(g, node.op, node.inputs[0], node.payload.at(0));
  case OpClass::Index:
    return rebuild_index(g, node);
  case OpClass::Order:
    return argsort(g, node.inputs[0], node.payload.at(0), node.payload.at(1) != 0,
                   node.payload.at(2));
  case OpClass::Call:
    return make(g, node);
  case OpClass::Region:
    return rebuild_region(g, node);
  case OpClass::Map:
    return map(g, node.op, node.inputs);
  }
  SVOD_CHECK(false) << "unknown class";
  return kNoNode;
}

} // namespace svod
