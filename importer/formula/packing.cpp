// A byte is repeated for each of its elements and shifted by what the element's place
// asks: first up, until the element is at the top, then down, which extends its sign if
// it has one.
#include "importer/formula/packing.h"

#include "importer/formula/denormals.h"
#include "importer/formula/movement.h"

namespace svod::importer {

namespace {

// [count] of U8: first, first + step, ...
Expr steps(Graph& g, int64_t count, int64_t first, int64_t step) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(first + i * step);
  return {&g, cast(g, tensor_i64(g, {count}, values), DType::U8)};
}

} // namespace

// Each word as often as it holds elements, along a last axis of its own, and where each
// of them begins.
static std::pair<Expr, Expr> repeated(Expr words, int64_t bits) {
  const int64_t last = words.rank();
  Shape apart = words.shape();
  apart.push_back(8 / bits);
  return {broadcast(unsqueeze(words, last), apart),
          counter(*words.g, words.dtype(), apart, last) * static_cast<double>(bits)};
}

static Expr low_bits(Expr words, Expr place, int64_t bits) {
  words = apply(Op::ShiftRight, words, place);
  return apply(Op::And, words, like(words, static_cast<double>((1 << bits) - 1)));
}

Expr unpacked_bits(Expr bytes, int64_t bits, bool is_signed) {
  const int64_t each = 8 / bits;
  Shape to = bytes.shape();
  to.back() *= each;
  Expr bare = convert(bytes, DType::I32);
  if (each == 1 && !is_signed) return bare;
  auto [words, place] = repeated(bare, bits);
  if (!is_signed) return reshape(low_bits(words, place, bits), to);
  const auto unused = static_cast<double>(32 - bits);
  words = apply(Op::ShiftLeft, words, unused - place);
  return reshape(apply(Op::ShiftRight, words, like(words, unused)), to);
}

Expr unpacked_bytes(Expr bytes, int64_t bits) {
  if (bits == 8) return unsqueeze(bytes, bytes.rank());
  auto [words, place] = repeated(bytes, bits);
  return low_bits(words, place, bits);
}

StoredForm stored_as(DType dtype, const Shape& shape) {
  if (!is_packed(dtype)) return {dtype, shape};
  const int64_t each = 8 / info(dtype).bits;
  return {DType::U8, {(element_count(shape) + each - 1) / each}};
}

NodeId unpacked(Graph& g, NodeId stored, DType dtype, const Shape& shape) {
  if (!is_packed(dtype)) return stored;
  const bool is_signed = info(dtype).kind == DTypeKind::Int;
  Expr x = unpacked_bits({&g, stored}, info(dtype).bits, is_signed);
  x = reshape(cut(x, 0, 0, element_count(shape)), shape);
  return bitcast(g, convert(x, is_signed ? DType::I8 : DType::U8).id, dtype);
}

NodeId packed(Graph& g, NodeId value) {
  const DType dtype = g[value].dtype;
  if (!is_packed(dtype)) return value;
  const int64_t bits = info(dtype).bits, each = 8 / bits;
  const int64_t count = element_count(g[value].shape), bytes = (count + each - 1) / each;
  Expr x = reshape({&g, bitcast(g, value, DType::U8)}, {count});
  x = pad(x, {0}, {bytes * each - count}, 0);
  x = apply(Op::And, x, like(x, static_cast<double>((1 << bits) - 1)));
  x = apply(Op::ShiftLeft, reshape(x, {bytes, each}), steps(g, each, 0, bits));
  return reshape(sum(x, {1}), {bytes}).id;
}

NodeId weight_of(Graph& g, const ModelTensor& tensor, DType dtype, bool exact) {
  if (!exact)
    if (const auto cleared = without_denormals(tensor))
      return weight_of(g, *cleared, dtype, true);
  const StoredForm stored = stored_as(dtype, tensor.dims);
  const NodeId bytes =
      weight(g, stored.dtype, stored.shape, g.add_blob(tensor.bytes, tensor.owner));
  return unpacked(g, bytes, dtype, tensor.dims);
}

NodeId add_tensor_input(Graph& g, const std::string& name, DType dtype,
                        const Shape& shape) {
  const StoredForm stored = stored_as(dtype, shape);
  const NodeId bytes =
      g.add_input(name, stored.dtype, stored.shape, Interface{info(dtype).onnx, shape});
  return unpacked(g, bytes, dtype, shape);
}

void add_tensor_output(Graph& g, const std::string& name, NodeId value) {
  Interface seen = g.interface_of(value);
  g.add_output(name, packed(g, value), std::move(seen));
}

} // namespace svod::importer
