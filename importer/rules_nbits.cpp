// MatMulNBits of com.microsoft: weights of 2, 4 or 8 bits, packed low bits first, in
// blocks along the inner axis with a scale and a zero point each. Unpacking is plain
// arithmetic on the packed bytes, so what a kernel reads stays small.
#include "importer/formula.h"

namespace svod {
namespace {

struct Packing {
  int64_t bits, block, rows, columns; // rows: of the product's right side, transposed
  int64_t blocks() const { return (columns + block - 1) / block; }
  int64_t per_byte() const { return 8 / bits; }
};

// bytes [.., n] -> values [.., n * per_byte], I32. In 32 bits, where vectors have shifts.
Expr unpacked(Expr bytes, const Packing& packing) {
  Expr words = convert(bytes, DType::I32);
  if (packing.bits == 8) return words;
  int64_t last = bytes.rank();
  Shape apart = bytes.shape(), to = apart;
  apart.push_back(packing.per_byte());
  to.back() *= packing.per_byte();
  words = broadcast(unsqueeze(words, last), apart);
  Expr place = with(words, iota(*words.g, DType::I32, apart, last));
  Expr moved = apply(Op::ShiftRight, words, place * static_cast<double>(packing.bits));
  double mask = static_cast<double>((1 << packing.bits) - 1);
  return reshape(apply(Op::And, moved, like(moved, mask)), to);
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

// [rows, blocks, 1]: packed like the weights with every row padded to whole bytes, or
// plain.
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
  return convert(reshape(zero, {packing.rows, blocks, 1}), dtype);
}

} // namespace

void import_matmul_nbits(NodeImport& node) {
  if (node.has_input(4)) node.unsupported("g_idx");
  const Packing packing = packing_of(node);
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
  Expr w = convert(unpacked(reshape(packed, {packing.rows, blocks, bytes}), packing),
                   a.dtype());
  w = (w - zero_points(node, packing, a.dtype())) *
      convert(reshape(scales, {packing.rows, blocks, 1}), a.dtype());
  w = cut(reshape(w, {packing.rows, blocks * packing.block}), 1, 0, packing.columns);
  Expr y = checked_matmul(node, a, permute(w, {1, 0}));
  if (node.has_input(5)) {
    Expr bias = wide(node, 5);
    require(node, bias.shape() == Shape{packing.rows}, "the bias must have N elements");
    y = y + bias;
  }
  finish(node, y);
}

} // namespace svod
