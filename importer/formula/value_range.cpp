// Interval arithmetic over the few ops that sizes are computed with. A count of elements
// is the sum of booleans, so its range is known; minima, products and quotients of counts
// keep it, and one side of a minimum bounds it whatever the other is. Views lead to the
// element of their input that they show; of a large tensor all elements are one range.
#include "importer/formula/value_range.h"

#include "compiler/ir/build.h"
#include "compiler/ir/region.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace svod::importer {

namespace {

constexpr int kMostSteps = 1 << 15; // of one question
constexpr int kMostDepth = 256;
constexpr int64_t kMostElements = 64; // that are looked at one by one
constexpr int64_t kAll = kAnyElement; // in place of an element: any of them

using Range = std::optional<ValueRange>;

class Asker {
public:
  Asker(const Graph& g, Trust trust, const RangeTable* table)
      : g_(g), trust_(trust), table_(table) {}
  Range element(NodeId id, int64_t at);

private:
  Range all(NodeId id);
  Range known(NodeId id, int64_t at) const;
  Range each(NodeId id);
  Range parts(std::span<const NodeId> ids);
  ValueRange whole(NodeId id) const;
  Range view(const Node& node, int64_t at);
  Range joined(const Node& node, int64_t at);
  Range reduced(const Node& node, int64_t at);
  Range unary(Op op, ValueRange a) const;
  Range binary(Op op, ValueRange a, ValueRange b) const;
  Range mapped(const Node& node, int64_t at);
  ValueRange truth(NodeId id, int64_t at);
  Range answer(NodeId id, int64_t at);

  const Graph& g_;
  Trust trust_;
  const RangeTable* table_;
  int steps_ = 0, depth_ = 0;
};

std::vector<int64_t> coordinates(const Shape& shape, int64_t at) {
  std::vector<int64_t> out(shape.size());
  for (size_t axis = shape.size(); axis-- > 0;) {
    out[axis] = at % shape[axis];
    at /= shape[axis];
  }
  return out;
}

int64_t position(const Shape& shape, const std::vector<int64_t>& at) {
  int64_t out = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) out = out * shape[axis] + at[axis];
  return out;
}

ValueRange hull(ValueRange a, ValueRange b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

// What arithmetic made. Beyond 2^53 integers may have wrapped around.
Range finite(ValueRange range) {
  constexpr double kMost = 0x1p53;
  if (!(range.low >= -kMost && range.high <= kMost)) return std::nullopt;
  return range;
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Integers wrap around; then nothing is known.
bool fits_type(DType dtype, ValueRange range) {
  if (!is_integer(dtype) || byte_size(dtype) == 8)
    return dtype != DType::U64 || range.low >= 0;
  const double span = std::ldexp(1, 8 * static_cast<int>(byte_size(dtype)));
  const bool is_signed = info(dtype).kind == DTypeKind::Int;
  return is_signed ? range.low >= -span / 2 && range.high < span / 2
                   : range.low >= 0 && range.high < span;
}

Range Asker::known(NodeId id, int64_t at) const {
  constexpr int64_t kMostListed = 4096;
  if (element_count(g_[id].shape) > kMostListed) return std::nullopt;
  const auto values = known_floats(g_, id);
  if (!values || values->empty()) return std::nullopt;
  if (at != kAll) {
    const double value = (*values)[static_cast<size_t>(at)];
    return finite({value, value});
  }
  if (std::ranges::any_of(*values, [](double v) { return std::isnan(v); }))
    return std::nullopt;
  const auto [low, high] = std::ranges::minmax(*values);
  return finite({low, high});
}

// What the type alone says.
ValueRange Asker::whole(NodeId id) const {
  const DType dtype = g_[id].dtype;
  if (dtype == DType::Bool) return {0, 1};
  if (!is_integer(dtype) || byte_size(dtype) == 8)
    return {dtype == DType::U64 ? 0 : -kInfinity, kInfinity};
  const double span = std::ldexp(1, 8 * static_cast<int>(byte_size(dtype)));
  const bool is_signed = info(dtype).kind == DTypeKind::Int;
  return {is_signed ? -span / 2 : 0, is_signed ? span / 2 - 1 : span - 1};
}

// All elements at once: one by one where they are few, else as the node makes them.
Range Asker::all(NodeId id) {
  const int64_t count = element_count(g_[id].shape);
  if (count == 0) return std::nullopt;
  const Range by_one = count <= kMostElements ? each(id) : std::nullopt;
  return by_one ? by_one : element(id, kAll);
}

Range Asker::each(NodeId id) {
  Range out;
  for (int64_t i = 0; i < element_count(g_[id].shape); ++i) {
    const Range one = element(id, i);
    if (!one) return std::nullopt;
    out = out ? hull(*out, *one) : *one;
  }
  return out;
}

Range Asker::parts(std::span<const NodeId> ids) {
  Range out;
  for (NodeId id : ids) {
    if (element_count(g_[id].shape) == 0) continue;
    const Range one = element(id, kAll);
    if (!one) return std::nullopt;
    out = out ? hull(*out, *one) : *one;
  }
  return out;
}

Range Asker::view(const Node& node, int64_t at) {
  const NodeId x = node.inputs[0];
  const Shape& from = g_[x].shape;
  if (node.op == Op::Pad || node.op == Op::Window) return std::nullopt;
  if (node.op == Op::Reshape || at == kAll) return element(x, at);
  std::vector<int64_t> place = coordinates(node.shape, at);
  const size_t rank = from.size();
  if (node.op == Op::Permute) {
    std::vector<int64_t> source(rank);
    for (size_t i = 0; i < rank; ++i)
      source[static_cast<size_t>(node.payload[i])] = place[i];
    return element(x, position(from, source));
  }
  if (node.op == Op::Expand) {
    for (size_t i = 0; i < rank; ++i)
      if (from[i] == 1) place[i] = 0;
    return element(x, position(from, place));
  }
  if (node.op != Op::Slice) return std::nullopt;
  for (size_t i = 0; i < rank; ++i)
    place[i] = node.payload[i] + place[i] * node.payload[rank + i];
  return element(x, position(from, place));
}

Range Asker::joined(const Node& node, int64_t at) {
  if (at == kAll) return parts(node.inputs);
  std::vector<int64_t> place = coordinates(node.shape, at);
  const auto axis = static_cast<size_t>(node.payload[0]);
  for (NodeId part : node.inputs) {
    const Shape& shape = g_[part].shape;
    if (place[axis] < shape[axis]) return element(part, position(shape, place));
    place[axis] -= shape[axis];
  }
  return std::nullopt;
}

Range Asker::reduced(const Node& node, int64_t) {
  const NodeId x = node.inputs[0];
  if (node.op == Op::ArgMin || node.op == Op::ArgMax) {
    const int64_t extent = g_[x].shape[static_cast<size_t>(node.payload[0])];
    return ValueRange{0, static_cast<double>(std::max<int64_t>(extent - 1, 0))};
  }
  const Range each = all(x);
  const bool has_any = element_count(g_[x].shape) > 0;
  if (!each || (!has_any && node.op != Op::ReduceSum)) return std::nullopt;
  if (node.op == Op::ReduceMin || node.op == Op::ReduceMax) return each;
  const int64_t made = std::max<int64_t>(element_count(node.shape), 1);
  const int64_t each_count = element_count(g_[x].shape) / made;
  const auto count = static_cast<double>(each_count);
  if (node.op == Op::ReduceSum)
    return finite({std::min(each->low * count, 0.0), std::max(each->high * count, 0.0)});
  if (node.op != Op::ReduceProd || each->low < 0 || count > kMostElements)
    return std::nullopt;
  if (made != 1) return finite({0, std::max(1.0, std::pow(each->high, count))});
  ValueRange product{1, 1};
  for (int64_t i = 0; i < static_cast<int64_t>(count); ++i) {
    const Range one = element(x, i);
    if (!one) return std::nullopt;
    product = {product.low * one->low, product.high * one->high};
  }
  return finite(product);
}

Range Asker::unary(Op op, ValueRange a) const {
  switch (op) {
  case Op::Neg:
    return finite({-a.high, -a.low});
  case Op::Abs:
    return finite({a.low > 0    ? a.low
                   : a.high < 0 ? -a.high
                                : 0,
                   std::max(std::fabs(a.low), std::fabs(a.high))});
  case Op::Floor:
    return ValueRange{std::floor(a.low), std::floor(a.high)};
  case Op::Ceil:
    return ValueRange{std::ceil(a.low), std::ceil(a.high)};
  case Op::Round:
    return ValueRange{std::nearbyint(a.low), std::nearbyint(a.high)};
  case Op::Trunc:
    return ValueRange{std::trunc(a.low), std::trunc(a.high)};
  case Op::Sign:
    return ValueRange{-1, 1};
  case Op::Sqrt:
    return a.low < 0 ? Range() : ValueRange{std::sqrt(a.low), std::sqrt(a.high)};
  default:
    return std::nullopt;
  }
}

Range Asker::binary(Op op, ValueRange a, ValueRange b) const {
  if (op != Op::Min && op != Op::Max && (!finite(a) || !finite(b))) return std::nullopt;
  switch (op) {
  case Op::Add:
    return finite({a.low + b.low, a.high + b.high});
  case Op::Sub:
    return finite({a.low - b.high, a.high - b.low});
  case Op::Mul: {
    const auto [low, high] =
        std::minmax({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
    return finite({low, high});
  }
  case Op::Div: {
    if (b.low <= 0 && b.high >= 0) return std::nullopt;
    const auto [low, high] =
        std::minmax({a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high});
    return finite({std::min(low, std::trunc(low)), std::max(high, std::trunc(high))});
  }
  case Op::Mod:
    if (b.low <= 0) return std::nullopt;
    if (a.low >= 0) return ValueRange{0, std::min(a.high, b.high)};
    return ValueRange{0, b.high};
  case Op::Min:
    return ValueRange{std::min(a.low, b.low), std::min(a.high, b.high)};
  case Op::Max:
    return ValueRange{std::max(a.low, b.low), std::max(a.high, b.high)};
  default:
    return std::nullopt;
  }
}

Range Asker::mapped(const Node& node, int64_t at) {
  if (node.op == Op::Select) {
    const ValueRange test = truth(node.inputs[0], at);
    if (test.low == test.high) return element(node.inputs[test.low != 0 ? 1 : 2], at);
    const Range yes = element(node.inputs[1], at), no = element(node.inputs[2], at);
    if (!yes || !no) return std::nullopt;
    return hull(*yes, *no);
  }
  Range a = element(node.inputs[0], at);
  if (node.inputs.size() == 1) return a ? unary(node.op, *a) : std::nullopt;
  Range b = element(node.inputs[1], at);
  if (node.op == Op::Min || node.op == Op::Max) { // one side is enough
    if (!a && !b) return std::nullopt;
    a = a.value_or(whole(node.inputs[0])), b = b.value_or(whole(node.inputs[1]));
  }
  if (a && b) return binary(node.op, *a, *b);
  return std::nullopt;
}

// Of booleans: sizes are compared with what stands for "as it is" in a list of sizes.
ValueRange Asker::truth(NodeId id, int64_t at) {
  constexpr ValueRange kEither{0, 1}, kNever{0, 0}, kAlways{1, 1};
  const Node& node = g_[id];
  if (is_known(g_, id)) return known(id, at).value_or(kEither);
  if (node.op != Op::Equal && node.op != Op::Less && node.op != Op::LessEqual)
    return kEither;
  const Range a = element(node.inputs[0], at), b = element(node.inputs[1], at);
  if (!a || !b) return kEither;
  const bool apart = a->high < b->low, behind = b->high < a->low;
  const bool same = a->low == a->high && b->low == b->high && a->low == b->low;
  if (node.op == Op::Equal) return apart || behind ? kNever : same ? kAlways : kEither;
  const bool strict = node.op == Op::Less;
  if (apart || (!strict && a->high == b->low)) return kAlways;
  return behind || (strict && a->low == b->high) ? kNever : kEither;
}

Range Asker::answer(NodeId id, int64_t at) {
  const Node& node = g_[id];
  if (node.dtype == DType::Bool) return truth(id, at);
  if (table_)
    if (const Range told = table_->find(id, trust_, at)) return told;
  if (is_known(g_, id)) return known(id, at);
  if (is_view(node.op)) return view(node, at);
  if (is_reduce(node.op)) return reduced(node, at);
  if (is_map(node.op)) return mapped(node, at);
  switch (node.op) {
  case Op::Iota: {
    const auto axis = static_cast<size_t>(node.payload[0]);
    if (at == kAll) return ValueRange{0, static_cast<double>(node.shape[axis] - 1)};
    const auto place = static_cast<double>(coordinates(node.shape, at)[axis]);
    return ValueRange{place, place};
  }
  case Op::Cast: {
    const bool rounds = is_float(g_[node.inputs[0]].dtype) && is_integer(node.dtype);
    if (rounds && trust_ == Trust::Integers) return std::nullopt;
    const Range from = element(node.inputs[0], at);
    if (!from || !rounds) return from;
    return ValueRange{std::trunc(from->low), std::trunc(from->high)};
  }
  case Op::Concat:
    return joined(node, at);
  case Op::ArgSort: {
    const Shape& sorted = g_[node.inputs[0]].shape;
    const int64_t extent = sorted[static_cast<size_t>(node.payload[0])];
    return ValueRange{0, static_cast<double>(std::max<int64_t>(extent - 1, 0))};
  }
  case Op::Gather:
    return all(node.inputs[0]);
  case Op::Loop: // how often it runs
    return ValueRange{0, static_cast<double>(loop_spec(node).limit)};
  default:
    return std::nullopt;
  }
}

Range Asker::element(NodeId id, int64_t at) {
  if (++steps_ > kMostSteps || depth_ >= kMostDepth) return std::nullopt;
  ++depth_;
  const Range out = answer(id, at);
  --depth_;
  return out && fits_type(g_[id].dtype, *out) ? out : std::nullopt;
}

} // namespace

std::optional<ValueRange> RangeTable::find(NodeId id, Trust trust,
                                           int64_t element) const {
  const auto at = ranges_.find({id, trust});
  if (at == ranges_.end() || at->second.empty()) return std::nullopt;
  const auto& ranges = at->second;
  if (ranges.size() == 1) return ranges[0];
  if (element != kAnyElement) return ranges[static_cast<size_t>(element)];
  Range out = ranges[0];
  for (const Range& one : ranges) {
    if (!one || !out) return std::nullopt;
    out = hull(*out, *one);
  }
  return out;
}

std::optional<ValueRange> range_of(const Graph& g, NodeId id, int64_t element,
                                   Trust trust, const RangeTable* table) {
  const int64_t count = element_count(g[id].shape);
  if (count == 0 || element >= count) return std::nullopt;
  return Asker(g, trust, table).element(id, element);
}

namespace {

// A number as another and what is added to it.
struct Offset {
  NodeId base;
  int64_t more;
};

// The operands of a sum or a difference: the number that may be known, and the other.
struct Addition {
  NodeId rest, number;
  int sign; // of the number
};

std::optional<Addition> addition_of(const Graph& g, const Node& node) {
  if (node.op != Op::Add && node.op != Op::Sub) return std::nullopt;
  const bool swapped = node.op == Op::Add && is_known(g, node.inputs[0]);
  return Addition{node.inputs[swapped ? 1 : 0], node.inputs[swapped ? 0 : 1],
                  node.op == Op::Add ? 1 : -1};
}

Offset offset_of(const Graph& g, NodeId id) {
  Offset out{id, 0};
  for (int step = 0; step < kMostDepth; ++step) {
    const Node& node = g[out.base];
    if (node.op == Op::Reshape) {
      out.base = node.inputs[0];
      continue;
    }
    const auto sum = addition_of(g, node);
    const auto added = sum ? known_ints(g, sum->number) : std::nullopt;
    if (!added || std::abs(added->front()) > int64_t{1} << 40) break;
    out.more += sum->sign * added->front();
    out.base = sum->rest;
  }
  return out;
}

// The number that shapes and types of numbers are put around.
NodeId bare_number(const Graph& g, NodeId id) {
  while (g[id].op == Op::Reshape || (g[id].op == Op::Cast && g[id].dtype != DType::Bool))
    id = g[id].inputs[0];
  return id;
}

std::optional<double> beyond(const Graph& g, NodeId a, NodeId b, int depth) {
  a = bare_number(g, a);
  if (a == b) return 0;
  const Node& node = g[a];
  if (depth == kMostDepth) return std::nullopt;
  if (node.op == Op::Min) {
    const auto first = beyond(g, node.inputs[0], b, depth + 1),
               second = beyond(g, node.inputs[1], b, depth + 1);
    return first && second ? std::min(*first, *second) : first ? first : second;
  }
  const auto sum = addition_of(g, node);
  const auto added = sum ? known_floats(g, sum->number) : std::nullopt;
  const auto rest = added ? beyond(g, sum->rest, b, depth + 1) : std::nullopt;
  if (!rest) return std::nullopt;
  return *rest + sum->sign * added->front();
}

} // namespace

std::optional<double> most_beyond(const Graph& g, NodeId a, NodeId b) {
  if (element_count(g[a].shape) != 1 || element_count(g[b].shape) != 1)
    return std::nullopt;
  return beyond(g, a, bare_number(g, b), 0);
}

std::optional<int64_t> difference(const Graph& g, NodeId a, NodeId b) {
  for (NodeId id : {a, b})
    if (!is_integer(g[id].dtype) || byte_size(g[id].dtype) != 8 ||
        element_count(g[id].shape) != 1)
      return std::nullopt;
  const Offset first = offset_of(g, a), second = offset_of(g, b);
  if (first.base != second.base) return std::nullopt;
  return first.more - second.more;
}

} // namespace svod::importer
