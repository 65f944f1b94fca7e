// Models, graphs, nodes and functions. Unknown fields are skipped, as protobuf does; a
// message that may be there once but is there twice is refused, since protobuf would
// merge the two and other readers take one of them: that is how a model shows two faces.
//
// What costs memory beyond the file's bytes (our structs are larger than their messages)
// is counted against Limits::structure_bytes, and graphs nest no deeper than
// Limits::nesting.
#include "importer/model/model_reader.h"

#include "onnx-ml.pb.h"

#include <cctype>

namespace svod::importer {

using onnx::FunctionProto;
using onnx::GraphProto;
using onnx::ModelProto;
using onnx::NodeProto;

namespace {

constexpr size_t kMostLicense = 4096; // bytes of it that are kept

std::string domain_of(std::string name) {
  return name == "ai.onnx" ? std::string() : name;
}

} // namespace

void ModelReader::charge(size_t bytes) {
  structure_ += static_cast<int64_t>(bytes);
  if (structure_ > limits_.structure_bytes)
    fail_read("the model's graph needs more than the limit of " +
              std::to_string(limits_.structure_bytes) + " bytes");
}

std::string ModelReader::name(const WireField& field) {
  const std::string_view text = field.as_bytes();
  if (static_cast<int64_t>(text.size()) > limits_.name_bytes)
    fail_read("a name is longer than the limit of " + std::to_string(limits_.name_bytes) +
              " bytes");
  charge(text.size());
  return std::string(text);
}

void ModelReader::opset(std::string_view message,
                        std::map<std::string, int64_t>& opsets) {
  std::string domain;
  int64_t version = 0;
  WireReader reader(message);
  while (auto field = reader.next()) {
    if (field->number == onnx::OperatorSetIdProto::kDomainFieldNumber)
      domain = domain_of(name(*field));
    if (field->number == onnx::OperatorSetIdProto::kVersionFieldNumber)
      version = field->as_int();
  }
  charge(sizeof(std::pair<std::string, int64_t>));
  // Tools that merge models leave two versions of a domain: the last counts, as it does
  // in ONNX's checker.
  opsets[domain] = version;
}

// StringStringEntryProto; other entries say nothing that we print.
void ModelReader::metadata(std::string_view message, Model& model) {
  std::string key, value;
  WireReader reader(message);
  while (auto field = reader.next()) {
    if (field->number == onnx::StringStringEntryProto::kKeyFieldNumber)
      key = name(*field);
    if (field->number == onnx::StringStringEntryProto::kValueFieldNumber)
      value = std::string(field->as_bytes().substr(0, kMostLicense));
  }
  for (char& c : key) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (key == "license" || key == "licence") model.license = value;
}

Model ModelReader::model(std::string_view message) {
  Model model;
  bool has_graph = false;
  reserve(model.functions, message, ModelProto::kFunctionsFieldNumber);
  if (static_cast<int64_t>(model.functions.capacity()) > limits_.functions)
    fail_read("the model has more functions than the limit of " +
              std::to_string(limits_.functions));
  WireReader reader(message);
  while (auto field = reader.next()) {
    switch (field->number) {
    case ModelProto::kIrVersionFieldNumber:
      model.ir_version = field->as_int();
      break;
    case ModelProto::kOpsetImportFieldNumber:
      opset(field->as_bytes(), model.opsets);
      break;
    case ModelProto::kProducerNameFieldNumber:
      model.producer = name(*field);
      break;
    case ModelProto::kProducerVersionFieldNumber:
      model.producer_version = name(*field);
      break;
    case ModelProto::kGraphFieldNumber:
      if (has_graph) fail_read("the model holds two graphs");
      has_graph = true;
      model.graph = graph(field->as_bytes());
      break;
    case ModelProto::kMetadataPropsFieldNumber:
      metadata(field->as_bytes(), model);
      break;
    case ModelProto::kFunctionsFieldNumber:
      model.functions.push_back(function(field->as_bytes()));
      break;
    default:
      break;
    }
  }
  if (!has_graph) fail_read("the file is no ONNX model: it holds no graph");
  model.external_files = external_.locations();
  return model;
}

ModelGraph ModelReader::graph(std::string_view message) {
  if (++depth_ > limits_.nesting)
    fail_read("graphs are nested deeper than the limit of " +
              std::to_string(limits_.nesting));
  ModelGraph graph;
  reserve(graph.nodes, message, GraphProto::kNodeFieldNumber);
  reserve(graph.initializers, message, GraphProto::kInitializerFieldNumber);
  reserve(graph.inputs, message, GraphProto::kInputFieldNumber);
  reserve(graph.outputs, message, GraphProto::kOutputFieldNumber);
  reserve(graph.values, message, GraphProto::kValueInfoFieldNumber);
  nodes_ += static_cast<int64_t>(graph.nodes.capacity());
  if (nodes_ > limits_.nodes)
    fail_read("the model has more nodes than the limit of " +
              std::to_string(limits_.nodes));
  WireReader reader(message);
  while (auto field = reader.next()) {
    switch (field->number) {
    case GraphProto::kNodeFieldNumber:
      graph.nodes.push_back(
          node(field->as_bytes(), static_cast<int64_t>(graph.nodes.size())));
      break;
    case GraphProto::kNameFieldNumber:
      graph.name = name(*field);
      break;
    case GraphProto::kInitializerFieldNumber:
      graph.initializers.push_back(read_tensor(field->as_bytes(), source_));
      charge(graph.initializers.back().name.size());
      break;
    case GraphProto::kSparseInitializerFieldNumber:
      charge(sizeof(ModelTensor));
      graph.initializers.push_back(read_sparse_tensor(field->as_bytes(), source_));
      charge(graph.initializers.back().bytes.size());
      break;
    case GraphProto::kInputFieldNumber:
      graph.inputs.push_back(value(field->as_bytes()));
      break;
    case GraphProto::kOutputFieldNumber:
      graph.outputs.push_back(value(field->as_bytes()));
      break;
    case GraphProto::kValueInfoFieldNumber:
      graph.values.push_back(value(field->as_bytes()));
      break;
    default:
      break;
    }
  }
  --depth_;
  return graph;
}

ModelNode ModelReader::node(std::string_view message, int64_t index) {
  ModelNode node;
  try {
    reserve(node.inputs, message, NodeProto::kInputFieldNumber);
    reserve(node.outputs, message, NodeProto::kOutputFieldNumber);
    if (static_cast<int64_t>(std::max(node.inputs.capacity(), node.outputs.capacity())) >
        limits_.operands)
      fail_read("there are more inputs or outputs than the limit of " +
                std::to_string(limits_.operands));
    reserve(node.attributes, message, NodeProto::kAttributeFieldNumber);
    if (static_cast<int64_t>(node.attributes.capacity()) > limits_.attributes)
      fail_read("there are more attributes than the limit of " +
                std::to_string(limits_.attributes));
    WireReader reader(message);
    while (auto field = reader.next()) node_field(*field, node);
    if (node.op_type.empty()) fail_read("it names no operator");
  } catch (ReadFailure& failure) {
    if (failure.at_node) throw;
    failure.at_node = true;
    failure.message = "node " + std::to_string(index) +
                      (node.name.empty() ? "" : " '" + escaped(node.name) + "'") + ": " +
                      failure.message;
    throw;
  }
  return node;
}

void ModelReader::node_field(const WireField& field, ModelNode& node) {
  switch (field.number) {
  case NodeProto::kInputFieldNumber:
    node.inputs.push_back(name(field));
    break;
  case NodeProto::kOutputFieldNumber:
    node.outputs.push_back(name(field));
    break;
  case NodeProto::kNameFieldNumber:
    node.name = name(field);
    break;
  case NodeProto::kOpTypeFieldNumber:
    node.op_type = name(field);
    break;
  case NodeProto::kDomainFieldNumber:
    node.domain = domain_of(name(field));
    break;
  case NodeProto::kOverloadFieldNumber:
    node.overload = name(field);
    break;
  case NodeProto::kAttributeFieldNumber:
    node.attributes.push_back(attribute(field.as_bytes()));
    break;
  default:
    break;
  }
}

ModelFunction ModelReader::function(std::string_view message) {
  ModelFunction function;
  reserve(function.nodes, message, FunctionProto::kNodeFieldNumber);
  reserve(function.inputs, message, FunctionProto::kInputFieldNumber);
  reserve(function.outputs, message, FunctionProto::kOutputFieldNumber);
  reserve(function.attributes, message, FunctionProto::kAttributeFieldNumber);
  reserve(function.attribute_defaults, message,
          FunctionProto::kAttributeProtoFieldNumber);
  nodes_ += static_cast<int64_t>(function.nodes.capacity());
  if (nodes_ > limits_.nodes)
    fail_read("the model has more nodes than the limit of " +
              std::to_string(limits_.nodes));
  try {
    WireReader reader(message);
    while (auto field = reader.next()) {
      switch (field->number) {
      case FunctionProto::kNameFieldNumber:
        function.name = name(*field);
        break;
      case FunctionProto::kDomainFieldNumber:
        function.domain = domain_of(name(*field));
        break;
      case FunctionProto::kOverloadFieldNumber:
        function.overload = name(*field);
        break;
      case FunctionProto::kInputFieldNumber:
        function.inputs.push_back(name(*field));
        break;
      case FunctionProto::kOutputFieldNumber:
        function.outputs.push_back(name(*field));
        break;
      case FunctionProto::kAttributeFieldNumber:
        function.attributes.push_back(name(*field));
        break;
      case FunctionProto::kAttributeProtoFieldNumber:
        function.attribute_defaults.push_back(attribute(field->as_bytes()));
        break;
      case FunctionProto::kNodeFieldNumber:
        function.nodes.push_back(
            node(field->as_bytes(), static_cast<int64_t>(function.nodes.size())));
        break;
      case FunctionProto::kOpsetImportFieldNumber:
        opset(field->as_bytes(), function.opsets);
        break;
      default:
        break;
      }
    }
  } catch (ReadFailure& failure) {
    failure.message = "function '" + escaped(function.name) + "': " + failure.message;
    throw;
  }
  return function;
}

} // namespace svod::importer
