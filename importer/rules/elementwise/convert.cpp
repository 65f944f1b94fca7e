// Operators that keep the values: changes of element type, and what is the identity when
// a model only infers.
#include "importer/formula/complex.h"
#include "importer/formula/formula.h"
#include "importer/formula/narrow_cast.h"
#include "importer/text/string_numbers.h"

#include <algorithm>

namespace svod::importer {

namespace {

// Before opset 6 Cast names the type: the numbers 1 and up of TensorProto.DataType.
constexpr std::string_view kTypeNames[] = {
    "FLOAT", "UINT8",   "INT8",   "UINT16", "INT16",  "INT32",     "INT64",     "STRING",
    "BOOL",  "FLOAT16", "DOUBLE", "UINT32", "UINT64", "COMPLEX64", "COMPLEX128"};

DType target_type(NodeImport& node) {
  int code;
  if (node.opset < 6) {
    const auto at = std::ranges::find(kTypeNames, node.get_string("to"));
    require(node, at != std::end(kTypeNames), "attribute 'to' names no element type");
    code = static_cast<int>(at - std::begin(kTypeNames)) + 1;
  } else {
    code = static_cast<int>(node.get_int("to"));
  }
  if (const auto dtype = dtype_from_onnx(code)) return *dtype;
  node.unsupported("element type " + onnx_type_name(code) + " is not supported");
}

// Between strings and numbers; none: no strings are in it.
std::optional<Expr> text_cast(NodeImport& node, Expr x, DType to) {
  const bool from_text = x.dtype() == DType::String;
  if (!from_text && to != DType::String) return std::nullopt;
  if (from_text && to == DType::String) return x;
  return from_text ? numbers_of_strings(node, x, to) : number_strings(node, x);
}

} // namespace

void import_identity(NodeImport& node) { node.output(0, node.value(0)); }

static void give_cast(NodeImport& node, DType to) {
  const CastRules rules = cast_rules(node, node.opset >= 19, node.opset >= 24);
  Expr x = operand(node, 0);
  if (const std::optional<Expr> text = text_cast(node, x, to))
    return give(node, 0, *text);
  // What is out of range is left open; the tests of the versions before 24 have the
  // nearest value, later ones the low bits.
  if (node.opset < 24 && is_packed(to) && is_integer(to) && is_float(x.dtype())) {
    const double span = 1 << info(to).bits;
    const double low = info(to).kind == DTypeKind::Int ? -span / 2 : 0;
    x = minimum(maximum(convert(x, DType::F32), low), low + span - 1);
  }
  give(node, 0, narrow_cast(x, to, rules));
}

void import_cast(NodeImport& node) { give_cast(node, target_type(node)); }

void import_cast_like(NodeImport& node) { give_cast(node, node.dtype(1)); }

namespace {

// Numbers of 64 bits, of any type, as the bits of complex ones: the real part is in the
// low half.
Expr pairs_of_words(Expr words) {
  const Expr bits = with(words, bitcast(*words.g, words.id, DType::U64));
  const Expr high = apply(Op::ShiftRight, bits, like(bits, 32));
  const Expr halves = convert(pairs_of(bits, high), DType::U32);
  return with(halves, bitcast(*halves.g, halves.id, DType::F32));
}

Expr words_of_pairs(Expr pairs) {
  const Expr halves = with(pairs, bitcast(*pairs.g, pairs.id, DType::U32));
  const Expr low = convert(part_of_pairs(halves, 0), DType::U64);
  const Expr high = convert(part_of_pairs(halves, 1), DType::U64);
  return either(low, apply(Op::ShiftLeft, high, like(high, 32)));
}

// BitCast from or to complex numbers; false where there are none.
bool give_complex_bits(NodeImport& node) {
  const auto part = complex_part(static_cast<int>(node.get_int("to")));
  const Compound* whole = node.compound(0);
  const bool from = whole && whole->kind == Compound::Kind::Complex;
  if (!part && !from) return false;
  const Expr x{&node.g, inside(*node.compounds, node.value(0))};
  constexpr const char* kSizes = "BitCast between types of different sizes";
  if (part && from) {
    require(node, x.dtype() == *part, kSizes);
    node.output(0, node.value(0));
  } else if (part) {
    require(node, part == DType::F32 && info(x.dtype()).bits == 64, kSizes);
    node.output(0, complex_value(*node.compounds, pairs_of_words(x).id));
  } else {
    const DType to = target_type(node);
    require(node, x.dtype() == DType::F32 && info(to).bits == 64, kSizes);
    node.output(0, bitcast(node.g, words_of_pairs(x).id, to));
  }
  return true;
}

} // namespace

void import_bit_cast(NodeImport& node) {
  if (give_complex_bits(node)) return;
  const DType to = target_type(node);
  const DType from = node.dtype(0);
  require(node, to != DType::String && from != DType::String, "BitCast of strings");
  require(node, info(to).bits == info(from).bits,
          "BitCast between types of different sizes");
  Expr x = operand(node, 0);
  if (is_packed(to)) {
    // A byte may hold the element with its sign or without: by way of its bits alone.
    Expr byte = with(x, bitcast(*x.g, x.id, DType::U8));
    const bool is_float_type = is_float(to);
    byte = convert(byte, is_float_type ? DType::U4 : to);
    return node.output(0, bitcast(node.g, byte.id, to));
  }
  node.output(0, bitcast(node.g, x.id, to));
}

} // namespace svod::importer
