// Products of matrices whose weights are floats of 4 or 8 bits with a scale per block or
// one for all, as tools of NVIDIA's formats write them (com.microsoft).
#include "importer/formula/formula.h"
#include "importer/formula/packing.h"

namespace svod::importer {
namespace {

// [n, k] of weights times their scales [n, blocks] along k.
Expr scaled_blocks(NodeImport& node, Expr w, Expr scales) {
  const int64_t n = extent(w, 0), k = extent(w, 1);
  const int64_t block = within_reach(node, node.get_int("block_size"), "block_size");
  require(node, block > 0, "block_size must be positive");
  const int64_t blocks = (k + block - 1) / block;
  require(node, scales.shape() == Shape{n, blocks},
          "there must be one scale per row and block");
  const Expr each = broadcast(reshape(scales, {n, blocks, 1}), {n, blocks, block});
  return w * cut(reshape(each, {n, blocks * block}), 1, 0, k);
}

void give_product(NodeImport& node, Expr a, Expr w, size_t bias) {
  require(node, a.rank() >= 1 && extent(a, a.rank() - 1) == extent(w, 1),
          "the input's last axis does not fit the weights");
  Expr y = checked_matmul(node, a, permute(w, {1, 0}));
  if (node.has_input(bias)) {
    const Expr b = wide(node, bias);
    require(node, b.shape() == Shape{extent(w, 0)}, "the bias must have N elements");
    y = y + b;
  }
  finish(node, y);
}

Expr one_number(NodeImport& node, size_t i) {
  require(node, element_count(node.shape(i)) == 1, "a global scale must be one number");
  return reshape(wide(node, i), {});
}

// To float8 and back.
Expr rounded_to(Expr x, DType dtype) { return convert(convert(x, dtype), x.dtype()); }

} // namespace

// A, B [n, k] of float8, b_scale, a_scale, bias. With a_scale the input is rounded, too.
void import_matmul_fp8_weight(NodeImport& node) {
  Expr a = wide(node, 0);
  const Expr b = operand(node, 1);
  require(node, b.rank() == 2, "the weights must be a matrix");
  if (node.has_input(3)) {
    const Expr scale = convert(one_number(node, 3), a.dtype());
    // The cast saturates; a number that is no finite one stays so.
    a = rounded_to(a / scale, b.dtype()) * scale;
  }
  const Expr w = scaled_blocks(node, convert(b, DType::F32), wide(node, 2));
  give_product(node, a, convert(w, a.dtype()), 4);
}

// A, B [n, k / 2] with two float4 a byte, the low one first, scales as bits of float8,
// the scale of all, one of the input that is not used here, bias.
void import_matmul_fp4_weight(NodeImport& node) {
  const Expr a = wide(node, 0), packed = operand(node, 1), bits = operand(node, 2);
  require(node, packed.rank() == 2 && bits.rank() == 2,
          "weights and scales must be matrices");
  require(node, byte_size(bits.dtype()) == 1, "scales must be the bytes of float8e4m3fn");
  const Expr codes = convert(unpacked_bits(packed, 4), DType::U8);
  const Expr values = with(codes, bitcast(node.g, codes.id, DType::F4E2M1));
  const Expr scales = with(bits, bitcast(node.g, bits.id, DType::F8E4M3FN));
  const Expr w = scaled_blocks(node, convert(values, DType::F32),
                               convert(scales, DType::F32) * one_number(node, 3));
  give_product(node, a, convert(w, a.dtype()), 5);
}

// alpha A B + beta C with a scale each, an activation and a scale of the result.
void import_gemm_float8(NodeImport& node) {
  const auto matrix = [&](size_t i, size_t scale, const char* transposed) {
    Expr x = convert(operand(node, i), DType::F32);
    require(node, x.rank() == 2, "A and B must be matrices");
    if (node.get_int(transposed) != 0) x = permute(x, {1, 0});
    return node.has_input(scale) ? x * one_number(node, scale) : x;
  };
  const Expr a = matrix(0, 3, "transA"), b = matrix(1, 4, "transB");
  Expr y = checked_matmul(node, a, b) * node.get_float("alpha");
  if (node.has_input(2) && node.get_float("beta") != 0) {
    const Expr c = convert(wide(node, 2), DType::F32);
    require_broadcast(node, c.shape(), y.shape());
    y = y + c * node.get_float("beta");
  }
  const std::string name =
      node.has("activation") ? node.get_string("activation") : "NONE";
  require(node, name == "NONE" || name == "RELU" || name == "GELU",
          "activation must be NONE, RELU or GELU");
  if (name == "RELU") y = maximum(y, 0);
  if (name == "GELU") y = gelu_tanh(y);
  if (node.has_input(5)) y = y * one_number(node, 5);
  const auto dtype = dtype_from_onnx(static_cast<int>(node.get_int("dtype")));
  if (!dtype || !is_float(*dtype)) node.unsupported("a result of this element type");
  give(node, 0, convert(y, *dtype));
}

} // namespace svod::importer
