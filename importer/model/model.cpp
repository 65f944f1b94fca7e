// How messages name parts of a model.
#include "importer/model/model.h"

namespace svod::importer {

std::string onnx_type_name(int onnx_type) {
  // TensorProto.DataType in the order of its numbers.
  static constexpr const char* kNames[] = {
      "undefined",      "float32",  "uint8",        "int8",           "uint16",
      "int16",          "int32",    "int64",        "string",         "bool",
      "float16",        "float64",  "uint32",       "uint64",         "complex64",
      "complex128",     "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2",
      "float8e5m2fnuz", "uint4",    "int4",         "float4e2m1",     "float8e8m0",
      "uint2",          "int2",     "float6e2m3",   "float6e3m2"};
  if (onnx_type < 0 || onnx_type >= static_cast<int>(std::size(kNames)))
    return "number " + std::to_string(onnx_type);
  return kNames[onnx_type];
}

int64_t version_of(const ModelNode& node, const std::map<std::string, int64_t>& opsets) {
  return node.version != 0 ? node.version : opsets.at(node.domain);
}

std::string full_op_name(const ModelNode& node) {
  return node.domain.empty() ? node.op_type : node.domain + "." + node.op_type;
}

std::string place_path(const ModelPlace& place) {
  const std::string own =
      place.name.empty() ? place.op + "#" + std::to_string(place.node) : place.name;
  if (place.graph.empty()) return own;
  // Hostile names nested deeply would make a path of megabytes: its end says enough.
  constexpr size_t kMost = 256;
  const size_t cut = place.graph.size() > kMost ? place.graph.size() - kMost : 0;
  return (cut ? "..." : "") + place.graph.substr(cut) + "/" + own;
}

} // namespace svod::importer
