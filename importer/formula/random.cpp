// Philox over iota: a round is one widening product and three exclusive ors, and every
// element computes its own, so a kernel that needs random numbers reads no memory for
// them.
#include "importer/formula/random.h"

#include "importer/formula/movement.h"

#include <bit>
#include <numbers>

namespace svod::importer {
namespace {

constexpr uint32_t kMultiplier = 0xd256d193, kWeyl = 0x9e3779b9;
constexpr int kRounds = 10;
// A quiet NaN: the seeds of nodes are finite floats or integers with a word of their own.
constexpr uint32_t kNoSeed = 0x7fc00000;

Expr filled(Graph& g, DType dtype, const Shape& shape, uint64_t bits) {
  return {&g, constant_bits(g, dtype, shape, bits)};
}

Expr exclusive_or(Expr a, Expr b) { return apply(Op::Xor, a, b); }

// The upper word of a * kMultiplier.
Expr product_high(Expr a) {
  const Expr wide = convert(a, DType::U64);
  const Expr product = wide * filled(*a.g, DType::U64, a.shape(), kMultiplier);
  const Expr high =
      apply(Op::ShiftRight, product, filled(*a.g, DType::U64, a.shape(), 32));
  return convert(high, DType::U32);
}

// The word in [0, 1): its upper 24 bits as f32, which holds them exactly.
Expr fraction(Expr word) {
  const Expr upper =
      apply(Op::ShiftRight, word, filled(*word.g, DType::U32, word.shape(), 8));
  return convert(upper, DType::F32) * 0x1p-24;
}

} // namespace

RandomStream stream_of(const NodeImport& node) {
  if (node.in_region) node.unsupported("random numbers in a loop that is not unrolled");
  const auto position = static_cast<uint32_t>(node.position);
  if (!node.has("seed")) return {kNoSeed, position};
  const uint32_t number = node.in_loop ? position : 0;
  if (node.type_of("seed") == AttributeType::Float)
    return {std::bit_cast<uint32_t>(static_cast<float>(node.get_float("seed"))), number};
  const auto seed = static_cast<uint64_t>(node.get_int("seed"));
  return {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32) ^ number};
}

RandomWords random_words(Graph& g, RandomStream stream, const Shape& shape) {
  const int64_t count = element_count(shape);
  SVOD_CHECK(count >= 0 && count < int64_t{1} << 32) << "random numbers: " << count;
  const Shape flat{count};
  Expr left = counter(g, DType::U32, flat, 0);
  Expr right = filled(g, DType::U32, flat, stream.number);
  uint32_t key = stream.seed;
  for (int round = 0; round < kRounds; ++round, key += kWeyl) {
    const Expr mixed = exclusive_or(product_high(left), filled(g, DType::U32, flat, key));
    const Expr low = left * filled(g, DType::U32, flat, kMultiplier);
    left = exclusive_or(mixed, right);
    right = low;
  }
  return {reshape(left, shape), reshape(right, shape)};
}

Expr random_uniform(Graph& g, RandomStream stream, const Shape& shape, DType dtype) {
  const RandomWords words = random_words(g, stream, shape);
  if (dtype == DType::F32) return fraction(words.first);
  const Expr high = convert(words.first, DType::U64),
             low = convert(words.second, DType::U64);
  const auto shifted = [&](Op op, Expr x, uint64_t by) {
    return apply(op, x, filled(g, DType::U64, shape, by));
  };
  const Expr bits =
      apply(Op::Or, shifted(Op::ShiftLeft, shifted(Op::ShiftRight, high, 5), 26),
            shifted(Op::ShiftRight, low, 6));
  return convert(bits, DType::F64) * 0x1p-53;
}

Expr random_normal(Graph& g, RandomStream stream, const Shape& shape, DType dtype) {
  const RandomWords words = random_words(g, stream, shape);
  // At least 2^-32, whose logarithm is finite.
  const Expr positive = apply(Op::Or, words.first, filled(g, DType::U32, shape, 1));
  const Expr radius = sqrt(log(convert(positive, dtype) * 0x1p-32) * -2);
  const Expr turn = convert(convert(words.second, DType::I32), dtype) * 0x1p-32;
  const Expr angle = turn * (2 * std::numbers::pi);
  return radius * apply(Op::Cos, angle);
}

} // namespace svod::importer
