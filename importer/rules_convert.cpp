// Operators that keep the values: changes of element type, and what is the identity when
// a model only infers.
#include "importer/formula.h"
#include "importer/narrow_cast.h"
#include "importer/string_numbers.h"

#include <algorithm>

namespace svod {

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
  for (DType dtype : {x.dtype(), to})
    if (info(dtype).kind == DTypeKind::Complex && x.dtype() != to)
      node.unsupported("a cast of complex numbers");
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

void import_bit_cast(NodeImport& node) {
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

} // namespace svod
