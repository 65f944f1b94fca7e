// Conditions and helpers of the rules on scalar functions.
#include "compiler/ir/fold.h"
#include "compiler/rewrite/known_values.h"
#include "compiler/rewrite/rule_parts.h"

#include <algorithm>
#include <array>

namespace svod::rewrite {

using pattern::Helper;
using pattern::Letter;
using pattern::Nodes;

const Condition always([](const Match&) { return true; });
const Condition booleans([](const Match& m) { return m.root().dtype == DType::Bool; });
const Condition numbers(!booleans);
const Condition integers([](const Match& m) { return is_integer(m.root().dtype); });
const Condition floats([](const Match& m) { return is_float(m.root().dtype); });
const Condition f32([](const Match& m) { return m.root().dtype == DType::F32; });
const Condition f32_or_f64([](const Match& m) {
  return m.root().dtype == DType::F32 || m.root().dtype == DType::F64;
});
const Condition unsigned_integers([](const Match& m) {
  return info(m.root().dtype).kind == DTypeKind::Uint;
});
const Condition
    rounds([](const Match& m) { return !m.r.keep_rounding || !is_float(m.root().dtype); },
           true);

Condition known(Letter letter) {
  return Condition([=](const Match& m) { return m.r.known(m[letter]); });
}

Condition is_product(Letter letter) {
  return Condition([=](const Match& m) { return m.node(letter).op == Op::Mul; });
}

Condition same_axes(Letter a, Letter b) {
  return Condition(
      [=](const Match& m) { return m.node(a).payload == m.node(b).payload; });
}

// Whether a question is true of every element of a known node.
static Condition each_element(Letter letter, ValueQuestion question) {
  return Condition([=](const Match& m) {
    return all_elements(m.r.g, base_of(m.r.g, m[letter]), question, m.root().dtype);
  });
}

Condition positive(Letter c) { return each_element(c, ValueQuestion::Positive); }
Condition powers_of_two(Letter c) { return each_element(c, ValueQuestion::PowersOfTwo); }

// Bits of magnitude that every value of an integer dtype needs, and that a float dtype
// holds.
static int magnitude_bits(DType dtype) {
  switch (dtype) {
  case DType::F16:
    return 11;
  case DType::BF16:
    return 8;
  case DType::F4E2M1:
    return 2;
  case DType::F8E4M3FN:
  case DType::F8E4M3FNUZ:
    return 4;
  case DType::F8E5M2:
  case DType::F8E5M2FNUZ:
    return 3;
  case DType::F8E8M0:
    return 0;
  case DType::F32:
    return 24;
  case DType::F64:
    return 53;
  case DType::Bool:
    return 1;
  default:
    return info(dtype).bits - (info(dtype).kind == DTypeKind::Int);
  }
}

// Whether every value of `from` is a value of `to`.
static bool holds_all(DType to, DType from) {
  if (from == to || (from == DType::Bool && to != DType::F8E8M0)) return true;
  if (to == DType::Bool) return false;
  if (is_float(from))
    return to == DType::F64 || (to == DType::F32 && is_narrow_float(from));
  bool loses_sign = info(from).kind == DTypeKind::Int && info(to).kind == DTypeKind::Uint;
  return !loses_sign && magnitude_bits(from) <= magnitude_bits(to);
}

Condition loses_nothing(Letter x, Letter y) {
  return Condition([=](const Match& m) {
    const DType first = m.node(x).dtype, middle = m.node(y).dtype, last = m.root().dtype;
    // Integers wrap into integers, but a float in between saturates.
    const bool by_float = !is_float(first) && is_float(middle) && is_integer(last);
    return holds_all(middle, first) && (!by_float || holds_all(last, first));
  });
}

// The value of c in a cast of an f32 to 8 or 16 bits, and the range of these.
namespace {
struct CastRange {
  double c, low, high;
};
} // namespace

static std::optional<CastRange> cast_range(const Match& m) {
  const Node& limit = m.node(pattern::c);
  const DType dtype = m.root().dtype;
  if (!is_integer(dtype) || byte_size(dtype) > 2 || limit.dtype != DType::F32)
    return std::nullopt;
  const auto bits = splat_bits(m.r.g, base_of(m.r.g, m[pattern::c]));
  if (!bits) return std::nullopt;
  const double span = std::ldexp(1.0, 8 * byte_size(dtype));
  const double low = info(dtype).kind == DTypeKind::Int ? -span / 2 : 0;
  return CastRange{scalar_value(DType::F32, *bits), low, low + span - 1};
}

const Condition cuts_below_c([](const Match& m) {
  const auto range = cast_range(m);
  return range && range->c >= range->high;
});
const Condition cuts_above_c([](const Match& m) {
  const auto range = cast_range(m);
  return range && range->c <= range->low;
});

const Helper normal{[](const Match& m, Nodes in) {
  const Graph& g = m.r.g;
  const DType dtype = g[in[0]].dtype;
  if (!is_float(dtype)) return in[0];
  if (byte_size(dtype) == 1) return kNoNode;
  const NodeId base = base_of(m.r.g, in[0]);
  return all_elements(g, base, ValueQuestion::Normal, dtype) ? in[0] : kNoNode;
}};

// Whether each element of |c| is below its place in z - y.
static bool below_span(const Match& m, NodeId c, NodeId y, NodeId z) {
  Graph& g = m.r.g;
  const NodeId size = expand(g, map(g, Op::Abs, {base_of(g, c)}), Shape(m.root().shape));
  const NodeId span = join_known(g, Op::Sub, z, y);
  const NodeId rest = span == kNoNode ? kNoNode : join_known(g, Op::Sub, span, size);
  return rest != kNoNode &&
         all_elements(g, base_of(g, rest), ValueQuestion::Positive, m.root().dtype);
}

const Helper clamp_of_quotients{[](const Match& m, Nodes) {
  Graph& g = m.r.g;
  const NodeId c = m[pattern::c], d = m[pattern::d], y = m[pattern::y], z = m[pattern::z];
  if (!m.r.known(y) || !m.r.known(z) || !below_span(m, c, y, z)) return kNoNode;
  const Shape full = m.root().shape;
  const NodeId factor = normal.make(
      m, std::array{expand(g, map(g, Op::Reciprocal, {base_of(g, d)}), full)});
  if (factor == kNoNode) return kNoNode;
  std::array<NodeId, 3> quotients{c, y, z};
  for (NodeId& quotient : quotients) {
    quotient = join_known(g, Op::Div, quotient, d);
    if (quotient == kNoNode) return kNoNode;
  }
  const auto [term, low, high] = quotients;
  const NodeId sum = map(g, Op::Add, {map(g, Op::Mul, {m[pattern::x], factor}), term});
  return map(g, Op::Min, {map(g, Op::Max, {sum, low}), high});
}};

const Helper power{[](const Match& m, Nodes in) {
  const auto bits = splat_bits(m.r.g, in[1]);
  if (!bits) return kNoNode;
  const double exponent = scalar_value(m.root().dtype, *bits);
  // Our pow is not rounded correctly, so the others may differ from it in the last bit.
  if (exponent != 0 && exponent != 1 && m.r.keep_rounding) return kNoNode;
  return simple_power(m.r.g, in[0], exponent);
}};

} // namespace svod::rewrite
