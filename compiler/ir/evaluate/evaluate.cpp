// Runs a graph node by node on dense tensors. The idea is to be obviously right: each
// node is computed alone from its inputs' full values. The map ops are the cells of
// ops.def, compiled; everything else is a walk over strides, without division or branch
// per element, so that folding the weights of a large model takes well under a second.
#include "compiler/ir/evaluate.h"

#include "compiler/ir/evaluate/parts.h"
#include "compiler/ir/evaluate_calls.h"
#include "compiler/ir/region.h"
#include "compiler/ir/value_facts.h"

#include <cstring>
#include <map>
#include <set>

namespace svod {

AxisView axis_view(const Shape& shape, int64_t axis) {
  AxisView view;
  SVOD_CHECK(axis >= 0 && axis < int64_t(shape.size())) << "axis" << axis;
  for (int64_t i = 0; i < axis; i++) view.outer *= shape[i];
  view.extent = shape[axis];
  for (size_t i = axis + 1; i < shape.size(); i++) view.inner *= shape[i];
  return view;
}

void fill_bits(Tensor& out, uint64_t bits) {
  const size_t size = byte_size(out.dtype);
  if (bits == 0) {
    std::fill(out.bytes.begin(), out.bytes.end(), std::byte(0));
    return;
  }
  for (size_t at = 0; at < out.bytes.size(); at += size)
    std::memcpy(out.bytes.data() + at, &bits, size);
}

namespace {

void evaluate_iota(const Node& node, Tensor& out) {
  AxisView view = axis_view(node.shape, node.payload[0]);
  Tensor index{DType::I64, node.shape, {}};
  index.bytes.resize(element_count(node.shape) * sizeof(int64_t));
  int64_t* at = reinterpret_cast<int64_t*>(index.bytes.data());
  for (int64_t o = 0; o < view.outer; o++)
    for (int64_t i = 0; i < view.extent; i++, at += view.inner)
      std::fill(at, at + view.inner, i);
  evaluate_cast(index, out);
}

void evaluate_source(const Graph& g, const Node& node, Tensor& out) {
  if (node.op == Op::Constant) return fill_bits(out, uint64_t(node.payload[0]));
  if (node.op == Op::Iota) return evaluate_iota(node, out);
  SVOD_CHECK(node.op == Op::Weight) << "an input has no value of its own";
  const Blob& blob = g.blob(uint32_t(node.payload[0]));
  SVOD_CHECK(blob.size() == out.bytes.size())
      << "weight of " << blob.size() << " bytes for " << out.bytes.size();
  if (!out.bytes.empty())
    std::memcpy(out.bytes.data(), blob.bytes().data(), out.bytes.size());
}

// Nodes whose values the caller has, beside inputs.
using Known = std::map<NodeId, Tensor>;

// The roots and all they depend on, inputs before users: ids grow from inputs to users.
std::set<NodeId> needed_nodes(const Graph& g, const std::vector<NodeId>& roots,
                              const Known& known) {
  std::set<NodeId> needed(roots.begin(), roots.end());
  std::vector<NodeId> open(roots);
  while (!open.empty()) {
    NodeId id = open.back();
    open.pop_back();
    if (known.contains(id)) continue;
    for (NodeId input : g[id].inputs)
      if (needed.insert(input).second) open.push_back(input);
  }
  return needed;
}

// Evaluates what some roots need. Values are views as long as nobody needs them laid out,
// and a product that only a sum reads is never laid out at all: the products of a
// convolution are hundreds of times its inputs and outputs.
class Run {
public:
  Run(const Graph& g, std::vector<NodeId> roots, const std::vector<Tensor>& given,
      const CallRunner& calls, const Known& known, Adjust adjust = {})
      : g_(g), roots_(std::move(roots)), given_(given), calls_(calls), known_(known),
        adjust_(std::move(adjust)), needed_(needed_nodes(g, roots_, known)) {
    for (NodeId root : roots_) uses_[root]++;
    for (NodeId id : needed_)
      if (!known_.contains(id))
        for (NodeId input : g[id].inputs) uses_[input]++;
    for (NodeId id : needed_) {
      if (g[id].op != Op::ReduceSum || known_.contains(id)) continue;
      const NodeId factors = g[id].inputs[0];
      bool wide = !is_narrow_float(g[factors].dtype);
      if (g[factors].op == Op::Mul && wide && uses_[factors] == 1 &&
          !known_.contains(factors))
        streamed_.insert(factors);
    }
  }

  // Nobody notes that weights are looked at.
  Run& unnoted() {
    unnoted_ = true;
    return *this;
  }

  // The roots' values, or the node that failed.
  Evaluated run() {
    for (NodeId id : needed_)
      if (!step(id)) return {{}, id};
    Evaluated result;
    for (NodeId root : roots_) {
      laid_out(root);
      result.outputs.push_back(taken(root));
      release(root);
    }
    return result;
  }

private:
  bool step(NodeId id) {
    const Node& node = g_[id];
    if (const auto known = known_.find(id); known != known_.end()) {
      keep(id, known->second);
      return true;
    }
    if (node.op == Op::Input) {
      if (size_t(node.payload[0]) >= given_.size()) return false;
      const Tensor& value = given_[size_t(node.payload[0])];
      SVOD_CHECK(value.dtype == node.dtype && value.shape == node.shape)
          << "input" << node.payload[0];
      keep(id, value);
      return true;
    }
    if (streamed_.count(id)) return true;
    if (unnoted_ && node.op == Op::Weight) {
      const auto bytes = g_.blob(uint32_t(node.payload[0])).unnoted_bytes();
      keep(id, {node.dtype, node.shape, {bytes.begin(), bytes.end()}});
      return true;
    }
    if (has_body(node.op)) {
      if (!run_region(id)) return false;
    } else if (node.op == Op::Result) {
      keep(id, results_.at(node.inputs[0]).at(size_t(node.payload[0])));
    } else if (!compute(id)) {
      return false;
    }
    for (NodeId input : node.inputs) release(input);
    return true;
  }

  bool compute(NodeId id) {
    const Node& node = g_[id];
    std::optional<Strided> view;
    if (is_view(node.op)) view = seen_through(node, values_.at(node.inputs[0]));
    if (view) {
      values_[id] = *view;
    } else if (node.op == Op::ReduceSum && streamed_.count(node.inputs[0])) {
      sum_products(id);
    } else {
      Inputs in;
      for (NodeId input : node.inputs) in.push_back(laid_out(input));
      Tensor value;
      if (!evaluate_node(g_, id, in, value) &&
          !(calls_ && node.op == Op::Call && calls_(g_, node, in, value)))
        return false;
      if (adjust_) adjust_(id, value);
      keep(id, std::move(value));
    }
    return true;
  }

  bool run_region(NodeId id) {
    Inputs in;
    for (NodeId input : g_[id].inputs) in.push_back(laid_out(input));
    Tensor own;
    if (!evaluate_region(g_, g_[id], in, own, results_[id])) return false;
    keep(id, std::move(own));
    return true;
  }

  void sum_products(NodeId sum) {
    const Node& product = g_[g_[sum].inputs[0]];
    Tensor value{g_[sum].dtype, g_[sum].shape, {}};
    value.bytes.resize(size_t(element_count(value.shape)) * byte_size(value.dtype));
    evaluate_sum_of_products(g_[sum], values_.at(product.inputs[0]),
                             values_.at(product.inputs[1]), value);
    if (adjust_) adjust_(sum, value);
    keep(sum, std::move(value));
    for (NodeId input : product.inputs) release(input);
  }

  void keep(NodeId id, Tensor value) {
    values_[id] = whole(std::make_shared<Tensor>(std::move(value)));
  }
  // A whole value: moved where nobody else needs it, for it may be a large weight.
  Tensor taken(NodeId id) {
    const std::shared_ptr<const Tensor>& base = values_.at(id).base;
    if (uses_[id] > 1 || base.use_count() > 1) return *base;
    return std::move(*std::const_pointer_cast<Tensor>(base)); // keep() has made it
  }
  const Tensor* laid_out(NodeId id) {
    Strided& value = values_.at(id);
    if (!is_whole(value)) {
      Tensor dense;
      lay_out(value, dense);
      keep(id, std::move(dense));
    }
    return value.base.get();
  }
  // One use is done; the last one frees the value.
  void release(NodeId id) {
    if (--uses_[id] != 0) return;
    values_.erase(id);
    results_.erase(id);
  }

  const Graph& g_;
  std::vector<NodeId> roots_;
  const std::vector<Tensor>& given_;
  const CallRunner calls_;
  const Known& known_;
  const Adjust adjust_;
  bool unnoted_ = false;
  std::set<NodeId> needed_;
  std::map<NodeId, size_t> uses_;
  std::set<NodeId> streamed_; // products that only one sum reads
  std::map<NodeId, Strided> values_;
  std::map<NodeId, std::vector<Tensor>> results_; // of regions
};

} // namespace

bool evaluate_node(const Graph& g, NodeId id, const std::vector<const Tensor*>& in,
                   Tensor& out) {
  const Node& node = g[id];
  SVOD_CHECK(in.size() == node.inputs.size()) << "node " << id;
  out.dtype = node.dtype;
  out.shape = node.shape;
  out.bytes.assign(size_t(element_count(node.shape)) * byte_size(node.dtype), {});
  switch (info(node.op).op_class) {
  case OpClass::Source:
    evaluate_source(g, node, out);
    return true;
  case OpClass::Convert:
    if (node.op == Op::Bitcast)
      out.bytes = in[0]->bytes;
    else
      evaluate_cast(*in[0], out);
    return true;
  case OpClass::View:
    evaluate_view(node, *in[0], out);
    return true;
  case OpClass::Join:
    evaluate_concat(node, in, out);
    return true;
  case OpClass::Reduce:
    if (node.op == Op::ArgMin || node.op == Op::ArgMax)
      evaluate_arg_reduce(node, *in[0], out);
    else
      evaluate_reduce(node, *in[0], out);
    return true;
  case OpClass::Scan:
    evaluate_scan(node, *in[0], out);
    return true;
  case OpClass::Index:
    if (node.op == Op::Descend) return evaluate_descend(node, in, out);
    return node.op == Op::Gather ? evaluate_gather(in, node.payload[0], out)
                                 : evaluate_scatter(node, in, out);
  case OpClass::Order:
    evaluate_argsort(node, *in[0], out);
    return true;
  case OpClass::Call:
    return false; // C++ of the user's: it runs in the program only
  case OpClass::Region:
    SVOD_CHECK(false) << "a region has more than one value, evaluate() runs it";
    return false;
  case OpClass::Map:
    evaluate_map(node, in, out);
    return true;
  }
  return true;
}

Evaluated evaluate(const Graph& g, const std::vector<Tensor>& inputs) {
  return evaluate(g, inputs, {});
}

Evaluated evaluate(const Graph& g, const std::vector<Tensor>& inputs,
                   const CallRunner& calls) {
  std::vector<NodeId> roots;
  for (const GraphOutput& output : g.outputs()) roots.push_back(output.node);
  const Known none;
  return Run(g, std::move(roots), inputs, calls, none).run();
}

Evaluated evaluate_from(const Graph& g, const std::vector<NodeId>& roots,
                        const std::map<NodeId, Tensor>& given, const CallRunner& calls,
                        const Adjust& adjust) {
  const std::vector<Tensor> inputs;
  return Run(g, roots, inputs, calls, given, adjust).run();
}

std::vector<NodeId> nodes_between(const Graph& g, const std::vector<NodeId>& roots,
                                  const std::map<NodeId, Tensor>& given) {
  const std::set<NodeId> needed = needed_nodes(g, roots, given);
  return {needed.begin(), needed.end()};
}

Tensor evaluate_unnoted(const Graph& g, NodeId id) {
  const std::vector<Tensor> inputs;
  const Known none;
  Evaluated result = Run(g, {id}, inputs, {}, none).unnoted().run();
  SVOD_CHECK(result.failed == kNoNode) << "index out of range at node " << result.failed;
  return std::move(result.outputs[0]);
}

Tensor evaluate_known(const Graph& g, NodeId id) {
  Tensor out = evaluate_unnoted(g, id);
  note_equals(trace_of(g, id), out.bytes);
  return out;
}

} // namespace svod
