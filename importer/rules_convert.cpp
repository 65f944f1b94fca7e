// Operators that keep the values: changes of element type, and what is the identity when
// a model only infers.
#include "importer/formula.h"

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

} // namespace

void import_identity(NodeImport& node) { node.output(0, node.value(0)); }

void import_cast(NodeImport& node) {
  give(node, 0, convert(operand(node, 0), target_type(node)));
}

void import_cast_like(NodeImport& node) {
  give(node, 0, convert(operand(node, 0), node.dtype(1)));
}

void import_bit_cast(NodeImport& node) {
  const DType to = target_type(node);
  require(node, byte_size(to) == byte_size(node.dtype(0)),
          "BitCast between types of different sizes");
  node.output(0, bitcast(node.g, node.input(0), to));
}

} // namespace svod
