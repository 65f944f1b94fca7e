// An ONNX model as read from its file: the protobuf messages as plain structs, nothing
// decided yet. Weights are views of the mapped file. Limits and hostile input:
// read_model.h.
#pragma once

#include "compiler/ir/graph.h"
#include "compiler/support/diags.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace svod::importer {

// TensorProto.DataType as text: "float8e4m3fn"; a number when it is none we know.
std::string onnx_type_name(int onnx_type);

// TensorProto. Exactly one data field was set; `bytes` holds the elements row-major,
// little endian, whichever field that was (string tensors: `strings`).
struct ModelTensor {
  std::string name;
  int onnx_type = 0; // TensorProto.DataType
  Shape dims;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner; // keeps bytes alive
  std::vector<std::string> strings;
};

struct ModelGraph;

enum class AttributeType : int { // AttributeProto.AttributeType
  Float = 1,
  Int = 2,
  String = 3,
  Tensor = 4,
  Graph = 5,
  Floats = 6,
  Ints = 7,
  Strings = 8,
  Tensors = 9,
  Graphs = 10,
  SparseTensor = 11,
  SparseTensors = 12,
  TypeProto = 13,
  TypeProtos = 14,
};

struct ModelAttribute {
  std::string name;
  AttributeType type = AttributeType::Int;
  std::string reference; // ref_attr_name inside a function body
  float f = 0;
  int64_t i = 0;
  std::string s;
  std::optional<ModelTensor> tensor;
  std::shared_ptr<ModelGraph> graph;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
};

struct ModelNode {
  std::string name, op_type, domain, overload; // domain "ai.onnx" is stored as ""
  std::vector<std::string> inputs, outputs;    // "" : left out
  std::vector<ModelAttribute> attributes;
  int64_t version = 0; // of the operator, when it is not the one the graph imports
};

// The version of a node's operator, by what its graph imports.
int64_t version_of(const ModelNode& node, const std::map<std::string, int64_t>& opsets);

// "Relu", "ai.onnx.ml.Scaler": how messages name a node's operator.
std::string full_op_name(const ModelNode& node);

// One dimension: a value, a name, or neither.
struct ModelDim {
  std::optional<int64_t> value;
  std::string name;
};

struct ModelValue {
  std::string name;
  enum class Kind { None, Tensor, Sequence, Optional, Map, Sparse } kind = Kind::None;
  // Of what is no tensor: the kinds inside it, outermost first, down to the tensor whose
  // type and dims these are. A sequence of maps: {Map, Tensor}.
  std::vector<Kind> inner;
  int key_type = 0;                          // of a map
  int onnx_type = 0;                         // element type of the tensor
  std::optional<std::vector<ModelDim>> dims; // unset: rank unknown
};

struct ModelGraph {
  std::string name;
  std::vector<ModelNode> nodes;
  std::vector<ModelTensor> initializers;
  std::vector<ModelValue> inputs, outputs, values;
};

struct ModelFunction {
  std::string name, domain, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> attributes; // names without default
  std::vector<ModelAttribute> attribute_defaults;
  std::vector<ModelNode> nodes;
  std::map<std::string, int64_t> opsets;
};

struct Model {
  int64_t ir_version = 0;
  std::map<std::string, int64_t> opsets; // domain -> version; "ai.onnx" is ""
  std::string producer, producer_version, graph_doc;
  std::string license; // of its metadata, under that name in either spelling
  ModelGraph graph;
  std::vector<ModelFunction> functions;
  std::vector<std::string> external_files; // that hold weights, beside the model
  Digest digest;                           // SHA-256 of the file
};

// The path of graphs nested in a node's attributes: graph, then the node's name or
// number.
std::string place_path(const ModelPlace& place);

} // namespace svod::importer
