// Weights of few bits in com.microsoft: MatMulNBits and GatherBlockQuantized pack 2, 4 or
// 8 bits low bits first, in blocks along the inner axis with a scale and a zero point
// each; MatMulBnb4 packs indices of a table of 16 floats, high bits first. Unpacking is
// plain arithmetic on the packed bytes, so what a kernel reads stays small.
#include "importer/bounded/bounded.h"
#include "importer/formula/formula.h"
#include "importer/formula/packing.h"
#include "importer/formula/quantization.h"

namespace svod::importer {
namespace {

struct Packing {
  int64_t bits, block, rows, columns; // rows: of the product's right side, transposed
  int64_t blocks() const { return (columns + block - 1) / block; }
  int64_t per_byte() const { return 8 / bits; }
};

Expr unpacked(Expr bytes, const Packing& packing) {
  return unpacked_bits(bytes, packing.bits);
}

Packing packing_of(NodeImport& node) {
  Packing packing{node.get_int("bits"), node.get_int("block_size"), node.get_int("N"),
                  node.get_int("K")};
  for (int64_t size : {packing.block, packing.rows, packing.columns})
    within_reach(node, size, "block_size, N or K");
  if (packing.bits != 2 && packing.bits != 4 && packing.bits != 8)
    node.unsupported("weights of " + std::to_string(packing.bits) + " bits");
  require(node,
          packing.block >= packing.per_byte() &&
              packing.block % packing.per_byte() == 0 && packing.rows > 0 &&
              packing.columns > 0,
          "block_size, N or K is not in the specification");
  return packing;
}

// The longest block whose sum of products of a byte and a byte fits 32 bits, twice.
constexpr int64_t kLongestBlock = 1 << 14;

// accuracy_level 4: the other factor may be rounded to 8 bits, with a scale per block.
bool takes_bytes(NodeImport& node, const Packing& packing) {
  const bool plain = !node.has_input(3) || node.dtype(3) == DType::U8;
  return node.get_int("accuracy_level") == 4 && !node.exact && !node.has_input(4) &&
         plain && packing.block % 4 == 0 && packing.block <= kLongestBlock;
}

// a [.., columns] times the packed weights, both as integers: with a = s q in a block and
// w = t (u - z), the sum over blocks of s t (sum(u q) - z sum(q)). The factors of a block
// stand in the order of the packed bytes, so that neighbouring bytes meet neighbours.
Expr byte_product(Expr a, Expr packed, Expr scales, Expr zero, const Packing& packing) {
  constexpr double kLargest = 127, kLeast = 1e-30; // a block of zeros has a scale, too
  const int64_t blocks = packing.blocks(), each = packing.per_byte(),
                bytes = packing.block / each, n = packing.rows;
  Shape to = a.shape();
  const int64_t m = element_count(a.shape()) / packing.columns;
  to.back() = n;
  a = pad(reshape(a, {m, packing.columns}), {0, 0},
          {0, blocks * packing.block - packing.columns}, 0);
  a = permute(reshape(a, {m, blocks, bytes, each}), {0, 1, 3, 2});
  const Expr largest = maximum(reduce(Op::ReduceMax, absolute(a), {2, 3}), kLeast);
  const Expr q =
      convert(apply(Op::Round, a * (like(largest, kLargest) / largest)), DType::I8);
  const Expr total = sum(convert(q, DType::I32), {2, 3});
  const Expr u = permute(
      unpacked_bytes(reshape(packed, {n, blocks, bytes}), packing.bits), {0, 1, 3, 2});
  const Expr product = convert(reshape(q, {m, 1, blocks, each, bytes}), DType::I32) *
                       convert(reshape(u, {1, n, blocks, each, bytes}), DType::I32);
  Expr y = sum(product, {3, 4});
  const Expr each_zero = zero.rank() == 0 ? zero : reshape(zero, {1, n, blocks, 1, 1});
  y = convert(y - reshape(total, {m, 1, blocks, 1, 1}) * each_zero, DType::F32);
  y = y * (reshape(largest, {m, 1, blocks, 1, 1}) * (1 / kLargest)) *
      reshape(scales, {1, n, blocks, 1, 1});
  return reshape(sum(y, {2}), to);
}

// [rows, blocks]: packed like the weights with every row padded to whole bytes, or plain.
Expr zero_points(NodeImport& node, const Packing& packing, DType dtype) {
  if (!node.has_input(3))
    return number(node.g, dtype, static_cast<double>(1 << (packing.bits - 1)));
  Expr zero = operand(node, 3);
  int64_t blocks = packing.blocks();
  if (zero.dtype() == DType::U8) {
    int64_t bytes = (blocks + packing.per_byte() - 1) / packing.per_byte();
    require(node, element_count(zero.shape()) == packing.rows * bytes,
            "zero_points has a wrong size");
    zero = cut(unpacked(reshape(zero, {packing.rows, bytes}), packing), 1, 0, blocks);
  }
  require(node, element_count(zero.shape()) == packing.rows * blocks,
          "zero_points has a wrong size");
  return convert(reshape(zero, {packing.rows, blocks}), dtype);
}

// A parameter per block [rows, blocks] as one per weight [rows, blocks, block] or what
// broadcasts to it. `group`: the block that each column belongs to, where it is not the
// one it stands in.
Expr per_weight(Expr parameter, const Packing& packing, std::optional<Expr> group) {
  if (parameter.rank() == 0) return parameter;
  if (!group) return reshape(parameter, {packing.rows, packing.blocks(), 1});
  return reshape(take(parameter, 1, *group),
                 {packing.rows, packing.blocks(), packing.block});
}

std::optional<Expr> column_groups(NodeImport& node, const Packing& packing) {
  if (!node.has_input(4)) return std::nullopt;
  Expr group = operand(node, 4);
  const int64_t padded = packing.blocks() * packing.block;
  require(node, group.shape() == Shape{packing.columns} || group.shape() == Shape{padded},
          "g_idx must have one entry per column");
  // Columns of padding are cut off later; any block serves them.
  group = pad(group, {0}, {padded - extent(group, 0)}, 0);
  return wrap_index(node, group, packing.blocks());
}

// The 16 values of bitsandbytes' two 4-bit types, as its paper and code list them.
constexpr float kFp4[] = {0.0F, 5.208333333e-3F, 0.66666667F, 1.0F, 0.33333333F,
                          0.5F, 0.16666667F,     0.25F};
constexpr float kNf4[] = {-1.0F,
                          -0.6961928009986877F,
                          -0.5250730514526367F,
                          -0.39491748809814453F,
                          -0.28444138169288635F,
                          -0.18477343022823334F,
                          -0.09105003625154495F,
                          0.0F,
                          0.07958029955625534F,
                          0.16093020141124725F,
                          0.24611230194568634F,
                          0.33791524171829224F,
                          0.44070982933044434F,
                          0.5626170039176941F,
                          0.7229568362236023F,
                          1.0F};

Expr bnb4_table(NodeImport& node) {
  std::vector<float> values(std::begin(kNf4), std::end(kNf4));
  const int64_t type = node.get_int("quant_type");
  require(node, type == 0 || type == 1, "quant_type must be 0 (FP4) or 1 (NF4)");
  if (type == 0) {
    values.assign(std::begin(kFp4), std::end(kFp4));
    for (float value : kFp4) values.push_back(-value);
  }
  return {&node.g, tensor_f32(node.g, {16}, values)};
}

} // namespace

void import_matmul_nbits(NodeImport& node) {
  if (node.has("weight_prepacked") && node.get_int("weight_prepacked") != 0)
    node.unsupported("weights packed for one kernel of another runtime");
  const Packing packing = packing_of(node);
  const std::optional<Expr> group = column_groups(node, packing);
  Expr a = wide(node, 0), packed = operand(node, 1), scales = wide(node, 2);
  int64_t blocks = packing.blocks(), bytes = packing.block / packing.per_byte();
  require(node,
          packed.dtype() == DType::U8 &&
              element_count(packed.shape()) == packing.rows * blocks * bytes,
          "the packed weights have a wrong size");
  require(node, element_count(scales.shape()) == packing.rows * blocks,
          "scales has a wrong size");
  require(node, a.rank() >= 1 && extent(a, a.rank() - 1) == packing.columns,
          "the input's last axis is not K");
  const bool integers = takes_bytes(node, packing);
  const Expr zero = zero_points(node, packing, integers ? DType::I32 : a.dtype());
  scales = convert(reshape(scales, {packing.rows, blocks}), a.dtype());
  Expr y = a;
  if (integers) {
    y = byte_product(a, packed, scales, zero, packing);
  } else {
    Expr w = convert(unpacked(reshape(packed, {packing.rows, blocks, bytes}), packing),
                     a.dtype());
    w = (w - per_weight(zero, packing, group)) * per_weight(scales, packing, group);
    w = cut(reshape(w, {packing.rows, blocks * packing.block}), 1, 0, packing.columns);
    y = checked_matmul(node, a, permute(w, {1, 0}));
  }
  if (node.has_input(5)) {
    Expr bias = wide(node, 5);
    require(node, bias.shape() == Shape{packing.rows}, "the bias must have N elements");
    y = y + bias;
  }
  finish(node, y);
}

// Blocks run over the flat weights [N, K] (transB) or [K, N].
void import_matmul_bnb4(NodeImport& node) {
  const int64_t k = within_reach(node, node.get_int("K"), "K");
  const int64_t n = within_reach(node, node.get_int("N"), "N");
  const int64_t block = within_reach(node, node.get_int("block_size"), "block_size");
  const Expr a = wide(node, 0), packed = operand(node, 1), scales = wide(node, 2);
  require(node, k > 0 && n > 0 && block > 0, "K, N or block_size is not positive");
  const int64_t count = k * n, blocks = (count + block - 1) / block;
  require(node,
          packed.dtype() == DType::U8 &&
              element_count(packed.shape()) == (count + 1) / 2 &&
              element_count(scales.shape()) == blocks,
          "the packed weights or their scales have a wrong size");
  require(node, a.rank() >= 1 && extent(a, a.rank() - 1) == k,
          "the input's last axis is not K");
  const int64_t bytes = (count + 1) / 2;
  const Expr flat = reshape(packed, {bytes, 1});
  const Expr index = reshape(join({apply(Op::ShiftRight, flat, like(flat, 4)),
                                   apply(Op::And, flat, like(flat, 15))},
                                  1),
                             {2 * bytes});
  Expr w = cut(take(bnb4_table(node), 0, convert(index, DType::I32)), 0, 0, count);
  w = pad(w, {0}, {blocks * block - count}, 0);
  w = reshape(w, {blocks, block}) * reshape(convert(scales, DType::F32), {blocks, 1});
  w = cut(reshape(w, {blocks * block}), 0, 0, count);
  const bool transposed = node.get_int("transB") != 0;
  w = transposed ? permute(reshape(w, {n, k}), {1, 0}) : reshape(w, {k, n});
  finish(node, checked_matmul(node, a, convert(w, a.dtype())));
}

// Rows of a table of few bits: data, indices, scales, zero points. Bytes hold 8 / bits
// elements of the last axis, which is the quantised one.
void import_gather_block_quantized(NodeImport& node) {
  const Expr data = operand(node, 0), scales = wide(node, 2);
  Packing packing{node.get_int("bits"), node.get_int("block_size"), 0, 0};
  within_reach(node, packing.block, "block_size");
  if (packing.bits != 2 && packing.bits != 4 && packing.bits != 8)
    node.unsupported("data of " + std::to_string(packing.bits) + " bits");
  require(node, data.rank() >= 2 && packing.block > 0 && scales.rank() == data.rank(),
          "data and scales must have one rank, 2 at least");
  const int64_t axis = node.axis(node.get_int("gather_axis"), data.rank());
  const int64_t along = node.axis(node.get_int("quantize_axis"), data.rank());
  require(node, axis != along, "gather_axis is quantize_axis");
  const Expr index = operand(node, 1);
  const auto rows_of = [&](Expr table) {
    Shape shape(table.shape().begin(), table.shape().begin() + axis);
    shape.insert(shape.end(), index.shape().begin(), index.shape().end());
    shape.insert(shape.end(), table.shape().begin() + axis + 1, table.shape().end());
    const Expr flat = reshape(wrap_index(node, index, extent(table, axis)),
                              {element_count(index.shape())});
    return reshape(take(table, axis, flat), shape);
  };
  // Elements of 4 bits come one each, bytes may hold several.
  const int64_t rank = data.rank(), plain = extent(data, along);
  const bool is_packed =
      data.dtype() == DType::U8 && packing.bits < 8 &&
      extent(scales, along) * packing.block >= plain * packing.per_byte();
  const auto values_of = [&](Expr table, int64_t count) {
    if (!is_packed) return table;
    if (along != rank - 1)
      node.unsupported("packed bytes along another axis than the last");
    const Expr values = unpacked(table, packing);
    return cut(values, values.rank() - 1, 0, count);
  };
  const int64_t width = is_packed ? plain * packing.per_byte() : plain;
  const int64_t blocks = (width + packing.block - 1) / packing.block;
  require(node, extent(scales, along) == blocks, "the scales do not fit the blocks");
  const Expr x = rows_of(data), scale = rows_of(scales);
  const int64_t shift = along > axis ? index.rank() - 1 : 0, at = along + shift;
  const auto repeated = [&](Expr parameter) {
    Shape each = parameter.shape();
    each.insert(each.begin() + at + 1, packing.block);
    Shape flat = parameter.shape();
    flat[static_cast<size_t>(at)] *= packing.block;
    return cut(reshape(broadcast(unsqueeze(parameter, at + 1), each), flat), at, 0,
               width);
  };
  const bool centred = data.dtype() == DType::U8 && (is_packed || packing.bits == 8);
  Expr zero = number(node.g, DType::F32,
                     centred ? static_cast<double>(1 << (packing.bits - 1)) : 0.0);
  if (node.has_input(3))
    zero = repeated(convert(values_of(rows_of(operand(node, 3)), blocks), DType::F32));
  const Expr value = convert(values_of(x, width), DType::F32);
  require_broadcast(node, zero.shape(), value.shape());
  give(node, 0, convert((value - zero) * repeated(scale), node.dtype(2)));
}

// Of indices whose sizes are the run's.
void bounded_gather_block_quantized(NodeImport& node, Rule rule) {
  const Counts of_index = node.counts(1);
  std::vector<std::vector<InputAxis>> groups;
  for (int64_t axis = 0; axis < node.rank(1); ++axis) groups.push_back({{1, axis}});
  agree_on_groups(node, groups);
  zero_beyond(node, 1);
  rule(node);
  Counts counts(static_cast<size_t>(node.rank(0) - 1), kNoNode);
  counts.insert(counts.begin() + node.axis(node.get_int("gather_axis"), node.rank(0)),
                of_index.begin(), of_index.end());
  node.set_counts(0, counts);
}

} // namespace svod::importer
