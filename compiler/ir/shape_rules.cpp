// Shapes and dtypes of results. One function per `shape` keyword of ops.def; each reads
// the payload, rejects what is out of range, and sets the result. The builder, the parser
// and the verifier all come here, so what they accept is the same.
#include "compiler/ir/shape_rules.h"

#include "compiler/ir/evaluate.h"
#include "compiler/ir/region.h"

#include <algorithm>

namespace svod {

namespace {

struct Context {
  const Graph& g;
  Node& node;

  const Node& input(size_t i = 0) const { return g[node.inputs[i]]; }
  const Shape& in() const { return input().shape; }
  int64_t rank() const { return static_cast<int64_t>(in().size()); }
  bool is_axis(int64_t axis) const { return axis >= 0 && axis < rank(); }
  int64_t payload(size_t i) const { return node.payload[i]; }
  bool payload_is(size_t count) const { return node.payload.size() == count; }
};

using Rule = std::string (*)(Context&);

const char* const kBadPayload = "payload has the wrong number of entries";
const char* const kBadAxis = "axis is outside the input's rank";

std::string same(Context& c) {
  c.node.shape = c.in();
  return "";
}

std::string check_source(Context& c) {
  if (!c.payload_is(1)) return kBadPayload;
  int64_t value = c.payload(0);
  if (c.node.op == Op::Input) {
    if (value < 0) return "input index is negative";
  } else if (c.node.op == Op::Weight) {
    if (value < 0 || value >= static_cast<int64_t>(c.g.blob_count()))
      return "no such blob";
    size_t want =
        static_cast<size_t>(element_count(c.node.shape) * byte_size(c.node.dtype));
    if (c.g.blob(static_cast<uint32_t>(value)).size() != want)
      return "blob has another size than the shape";
  } else if (c.node.op == Op::Iota) {
    if (value < 0 || value >= static_cast<int64_t>(c.node.shape.size())) return kBadAxis;
    if (c.node.dtype == DType::Bool || is_packed(c.node.dtype))
      return "iota has no " + std::string(info(c.node.dtype).text);
  } else if (int width = byte_size(c.node.dtype) * 8; width < 64) {
    if (static_cast<uint64_t>(value) >> width) return "bits exceed the dtype";
  }
  return "";
}

std::string call(Context& c) {
  if (c.node.payload.size() < 3) return kBadPayload;
  if (c.payload(0) < 0 || c.payload(0) >= static_cast<int64_t>(c.g.blob_count()))
    return "no such blob";
  const auto outputs = static_cast<int64_t>(c.node.payload.size()) - 2;
  if (c.payload(1) < 0 || c.payload(1) >= outputs) return "no such output";
  int64_t bytes = element_count(c.node.shape) * byte_size(c.node.dtype);
  if (bytes != c.payload(2 + static_cast<size_t>(c.payload(1))))
    return "the output has another size than its function says";
  return "";
}

std::string check_slice(Context& c) {
  size_t rank = c.in().size();
  if (!c.payload_is(2 * rank)) return kBadPayload;
  if (c.node.shape.size() != rank) return "slice keeps the rank";
  for (size_t i = 0; i < rank; ++i) {
    int64_t start = c.payload(i), step = c.payload(rank + i), extent = c.node.shape[i];
    if (step == 0) return "step is zero";
    if (extent == 0) continue;
    __int128 last = start + __int128(extent - 1) * step;
    if (start < 0 || start >= c.in()[i] || last < 0 || last >= c.in()[i])
      return "slice reads outside axis " + std::to_string(i);
  }
  return "";
}

std::string check_expand(Context& c) {
  if (c.node.shape.size() != c.in().size()) return "expand keeps the rank";
  for (size_t i = 0; i < c.in().size(); ++i)
    if (c.in()[i] != c.node.shape[i] && c.in()[i] != 1)
      return "axis " + std::to_string(i) + " does not expand";
  return "";
}

// Ops whose shape is given: it is checked against what they can produce.
std::string given(Context& c) {
  switch (c.node.op) {
  case Op::Reshape:
    return element_count(c.node.shape) == element_count(c.in())
               ? ""
               : "reshape changes the number of elements";
  case Op::Expand:
    return check_expand(c);
  case Op::Slice:
    return check_slice(c);
  default:
    return check_source(c);
  }
}

std::string permute(Context& c) {
  if (!c.payload_is(c.in().size())) return kBadPayload;
  std::vector<bool> seen(c.in().size());
  Shape shape;
  for (int64_t axis : c.node.payload) {
    if (!c.is_axis(axis) || seen[axis]) return "not a permutation";
    seen[axis] = true;
    shape.push_back(c.in()[axis]);
  }
  c.node.shape = shape;
  return "";
}

std::string pad(Context& c) {
  size_t rank = c.in().size();
  if (!c.payload_is(2 * rank + 1)) return kBadPayload;
  Shape shape = c.in();
  for (size_t i = 0; i < rank; ++i) {
    int64_t low = c.payload(i), high = c.payload(rank + i);
    if (low < 0 || high < 0 || low > kMaxElements || high > kMaxElements)
      return low < 0 || high < 0 ? "negative pad amount" : kTooLarge;
    shape[i] += low + high;
  }
  if (int width = byte_size(c.node.dtype) * 8; width < 64)
    if (static_cast<uint64_t>(c.payload(2 * rank)) >> width)
      return "bits exceed the dtype";
  c.node.shape = shape;
  return "";
}

std::string window(Context& c) {
  if (!c.payload_is(4)) return kBadPayload;
  int64_t axis = c.payload(0), size = c.payload(1), stride = c.payload(2),
          dilation = c.payload(3);
  if (!c.is_axis(axis)) return kBadAxis;
  if (size < 1 || stride < 1 || dilation < 1 || size > kMaxElements ||
      stride > kMaxElements || dilation > kMaxElements)
    return "window size, stride and dilation are at least 1";
  __int128 room = c.in()[axis] - __int128(size - 1) * dilation - 1;
  if (room < 0) return "window is larger than its axis";
  Shape shape = c.in();
  shape[axis] = static_cast<int64_t>(room) / stride + 1;
  shape.push_back(size);
  c.node.shape = shape;
  return "";
}

std::string concat(Context& c) {
  if (!c.payload_is(1)) return kBadPayload;
  int64_t axis = c.payload(0);
  if (!c.is_axis(axis)) return kBadAxis;
  Shape shape = c.in();
  for (size_t i = 1; i < c.node.inputs.size(); ++i) {
    Shape other = c.input(i).shape;
    if (other.size() != shape.size()) return "inputs differ in rank";
    if (c.input(i).dtype != c.node.dtype) return kDtypesDiffer;
    shape[axis] += other[axis];
    other[axis] = shape[axis];
    if (other != shape) return "inputs differ outside the axis";
  }
  c.node.shape = shape;
  return "";
}

std::string reduce(Context& c) {
  Shape shape = c.in();
  int64_t previous = -1;
  for (int64_t axis : c.node.payload) {
    if (!c.is_axis(axis)) return kBadAxis;
    if (axis <= previous) return "axes are not ascending";
    previous = axis;
    shape[axis] = 1;
  }
  c.node.shape = shape;
  return "";
}

std::string argreduce(Context& c) {
  if (!c.payload_is(2)) return kBadPayload;
  if (!c.is_axis(c.payload(0))) return kBadAxis;
  if (c.payload(1) != 0 && c.payload(1) != 1) return "last is 0 or 1";
  Shape shape = c.in();
  if (shape[c.payload(0)] == 0) return "argmin and argmax want a non-empty axis";
  shape[c.payload(0)] = 1;
  c.node.shape = shape;
  c.node.dtype = DType::I64;
  return "";
}

bool is_index(DType dtype) { return dtype == DType::I64 || dtype == DType::I32; }

std::string gather(Context& c) {
  if (!c.payload_is(1)) return kBadPayload;
  int64_t axis = c.payload(0);
  if (!c.is_axis(axis)) return kBadAxis;
  const Node& index = c.input(1);
  if (!is_index(index.dtype)) return "index is not i32 or i64";
  if (index.shape.size() != c.in().size()) return "index differs in rank";
  Shape expected = c.in();
  expected[axis] = index.shape[axis];
  if (index.shape != expected) return "index differs from the data outside the axis";
  c.node.shape = expected;
  return "";
}

std::string descend(Context& c) {
  if (!c.payload_is(1)) return kBadPayload;
  const Node &node = c.input(1), &root = c.input(2);
  if (c.payload(0) < 0) return "steps are not negative";
  DType key = c.input().dtype;
  if ((key != DType::U32 && key != DType::U64) || node.dtype != key)
    return "keys and nodes are not both u32 or u64";
  if (root.dtype != DType::I64) return "roots are not i64";
  if (c.in().size() != 2 || root.shape.size() != 1) return "keys or roots differ in rank";
  if (node.shape.size() != 2 || node.shape[1] != 2) return "a node is not two numbers";
  c.node.shape = {c.in()[0], root.shape[0]};
  return "";
}

std::string check_scatter(const Context& c) {
  if (!c.payload_is(2)) return kBadPayload;
  int64_t axis = c.payload(0);
  if (!c.is_axis(axis)) return kBadAxis;
  if (c.payload(1) < 0 || c.payload(1) > 4) return "no such combiner";
  const Node &index = c.input(1), &update = c.input(2);
  if (!is_index(index.dtype)) return "index is not i32 or i64";
  if (update.dtype != c.input().dtype) return "update differs in dtype";
  if (index.shape != update.shape) return "index and update differ in shape";
  if (index.shape.size() != c.in().size()) return "index differs in rank";
  for (size_t i = 0; i < index.shape.size(); ++i)
    if (static_cast<int64_t>(i) != axis && index.shape[i] > c.in()[i])
      return "index exceeds the data outside the axis";
  return "";
}

std::string argsort(Context& c) {
  if (!c.payload_is(3)) return kBadPayload;
  if (!c.is_axis(c.payload(0))) return kBadAxis;
  if (c.payload(1) != 0 && c.payload(1) != 1) return "descending is 0 or 1";
  c.node.shape = c.in();
  int64_t& extent = c.node.shape[c.payload(0)];
  if (c.payload(2) < 0 || c.payload(2) > extent) return "count exceeds the axis";
  extent = c.payload(2);
  c.node.dtype = DType::I64;
  return "";
}

// Maps: inputs of one shape and dtype; select's condition is bool.
std::string map_inputs(Context& c) {
  size_t first = c.node.op == Op::Select ? 1 : 0;
  if (!c.node.payload.empty()) return kBadPayload;
  if (first == 1 && c.input(0).dtype != DType::Bool) return "condition is not bool";
  for (size_t i = 1; i < c.node.inputs.size(); ++i) {
    if (c.input(i).shape != c.in()) return "inputs differ in shape";
    if (i > first && c.input(i).dtype != c.input(first).dtype) return kDtypesDiffer;
  }
  if (!map_is_defined(c.node.op, c.input(first).dtype))
    return kNotDefined + std::string(info(c.input(first).dtype).text);
  c.node.dtype = c.input(first).dtype;
  c.node.shape = c.in();
  return "";
}

std::string map_same(Context& c) { return map_inputs(c); }
std::string map_second(Context& c) { return map_inputs(c); }
std::string map_boolean(Context& c) {
  std::string why = map_inputs(c);
  c.node.dtype = DType::Bool;
  return why;
}

std::string loop(Context& c) { return loop_type(c.g, c.node); }
std::string branches(Context& c) { return if_type(c.g, c.node); }
std::string result(Context& c) { return result_type(c.g, c.node); }

// The value of a condition is no value of its own: only the if's results are used.
std::string check_operands(const Graph& g, const Node& node) {
  for (NodeId input : node.inputs)
    if (g[input].op == Op::If && node.op != Op::Result) return "an if is used as a value";
  return "";
}

constexpr Rule kRules[] = {
#define OP(name, text, class, arity, shape, payload) shape,
#define MAP(name, text, arity, result, cell) map_##result,
#include "compiler/ir/ops.def"
};

// A cast to an integer of less than a byte is written over its byte (build_maps.cpp).
std::string check_cast(DType from, DType to) {
  if (is_packed(to) && !is_float(to))
    return "no cast from " + std::string(info(from).text) + " to " +
           std::string(info(to).text);
  return "";
}

// What rows with shape `same` or `given` demand beyond their shape.
std::string check_convert_scan_scatter(const Context& c) {
  switch (info(c.node.op).op_class) {
  case OpClass::Convert:
    if (!c.node.payload.empty()) return kBadPayload;
    if (c.node.op == Op::Bitcast && byte_size(c.node.dtype) != byte_size(c.input().dtype))
      return "bitcast changes the element size";
    if (c.node.op == Op::Cast) return check_cast(c.input().dtype, c.node.dtype);
    return "";
  case OpClass::Scan:
    if (!c.payload_is(1)) return kBadPayload;
    return c.is_axis(c.payload(0)) ? "" : kBadAxis;
  case OpClass::Index:
    return c.node.op == Op::Scatter ? check_scatter(c) : "";
  case OpClass::View:
    if (c.node.op != Op::Reshape && c.node.op != Op::Expand) return "";
    return c.node.payload.empty() ? "" : kBadPayload;
  default:
    return "";
  }
}

std::string check_shape(const Shape& shape) {
  int64_t count = 1;
  for (int64_t extent : shape) {
    if (extent < 0) return "negative extent";
    // Zero extents count as one, so that no order of multiplication overflows.
    if (__builtin_mul_overflow(count, std::max<int64_t>(extent, 1), &count) ||
        count > kMaxElements)
      return kTooLarge;
  }
  return "";
}

} // namespace

std::string infer_type(const Graph& g, Node& node) {
  const OpInfo& row = info(node.op);
  size_t count = node.inputs.size();
  if (row.arity < 0 ? count < 1 : count != static_cast<size_t>(row.arity))
    return "wrong number of inputs";
  if (row.op_class != OpClass::Source && row.op_class != OpClass::Convert &&
      row.op_class != OpClass::Call)
    node.dtype = g[node.inputs[0]].dtype;
  Context context{g, node};
  if (row.op_class == OpClass::Source || row.op_class == OpClass::Call ||
      node.op == Op::Reshape || node.op == Op::Expand || node.op == Op::Slice)
    if (std::string why = check_shape(node.shape); !why.empty()) return why;
  std::string why = check_operands(g, node);
  if (why.empty()) why = kRules[static_cast<int>(node.op)](context);
  if (why.empty()) why = check_convert_scan_scatter(context);
  if (why.empty()) why = check_shape(node.shape);
  return why;
}

std::string interface_fault(const Graph& g, NodeId id, const Interface& seen) {
  if (std::string why = check_shape(seen.shape); !why.empty())
    return "its interface: " + why;
  std::optional<int64_t> want = byte_size(seen);
  int64_t have = element_count(g[id].shape) * byte_size(g[id].dtype);
  if (!want || have == *want) return "";
  return "its interface has " + std::to_string(*want) + " bytes, its node has " +
         std::to_string(have);
}

} // namespace svod
