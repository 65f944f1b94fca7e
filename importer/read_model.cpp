// One function per protobuf message. Unknown fields are skipped, as protobuf does; a
// message that may be there once but is there twice is refused, since protobuf would
// merge the two and other readers take one of them: that is how a model shows two faces.
//
// What costs memory beyond the file's bytes (our structs are larger than their messages)
// is counted against Limits::structure_bytes, and graphs nest no deeper than
// Limits::nesting.
#include "importer/read_model.h"

#include "importer/mapped_file.h"
#include "importer/read_tensor.h"

#include "onnx-ml.pb.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>

namespace svod {

namespace {

using onnx::AttributeProto;
using onnx::FunctionProto;
using onnx::GraphProto;
using onnx::ModelProto;
using onnx::NodeProto;

class ModelReader {
public:
  ModelReader(const Limits& limits, std::string folder, std::shared_ptr<const void> owner)
      : limits_(limits), external_(std::move(folder), limits),
        source_{limits_, external_, std::move(owner)} {}
  Model model(std::string_view message);

private:
  ModelGraph graph(std::string_view message);
  ModelNode node(std::string_view message, int64_t index);
  void node_field(const WireField& field, ModelNode& node);
  ModelAttribute attribute(std::string_view message);
  void attribute_field(const WireField& field, ModelAttribute& attribute,
                       std::vector<AttributeType>& found);
  ModelValue value(std::string_view message);
  void type(std::string_view message, ModelValue& value);
  void tensor_type(std::string_view message, ModelValue& value);
  std::vector<ModelDim> dims(std::string_view message);
  ModelFunction function(std::string_view message);
  void opset(std::string_view message, std::map<std::string, int64_t>& opsets);

  std::string name(const WireField& field);
  void charge(size_t bytes);
  template <class T>
  void reserve(std::vector<T>& list, std::string_view message, int number);

  const Limits& limits_;
  ExternalData external_;
  TensorSource source_;
  int64_t structure_ = 0;
  int64_t nodes_ = 0;
  int64_t depth_ = 0;
};

std::string domain_of(std::string name) {
  return name == "ai.onnx" ? std::string() : name;
}

void ModelReader::charge(size_t bytes) {
  structure_ += static_cast<int64_t>(bytes);
  if (structure_ > limits_.structure_bytes)
    fail_read("the model's graph needs more than the limit of " +
              std::to_string(limits_.structure_bytes) + " bytes");
}

// Counting first avoids the growth of a vector, which would need up to three times the
// memory.
template <class T>
void ModelReader::reserve(std::vector<T>& list, std::string_view message, int number) {
  const size_t count = count_fields(message, number);
  charge(count * sizeof(T));
  list.reserve(count);
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
  const auto [at, added] = opsets.emplace(domain, version);
  if (!added && at->second != version)
    fail_read("two versions of domain '" + escaped(domain) + "' are imported");
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
    case ModelProto::kFunctionsFieldNumber:
      model.functions.push_back(function(field->as_bytes()));
      break;
    default:
      break;
    }
  }
  if (!has_graph) fail_read("the file is no ONNX model: it holds no graph");
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

ModelAttribute ModelReader::attribute(std::string_view message) {
  ModelAttribute attribute;
  std::optional<AttributeType> declared;
  std::vector<AttributeType> found; // kinds of the data fields, each once
  try {
    reserve(attribute.strings, message, AttributeProto::kStringsFieldNumber);
    WireReader reader(message);
    while (auto field = reader.next()) {
      if (field->number == AttributeProto::kTypeFieldNumber)
        declared = static_cast<AttributeType>(field->as_int());
      else
        attribute_field(*field, attribute, found);
    }
    if (found.size() > 1) fail_read("it holds values of several types");
    // Before IR version 2 the type was not written down.
    if (!declared || static_cast<int>(*declared) == AttributeProto::UNDEFINED) {
      if (found.empty() && attribute.reference.empty()) fail_read("it has no type");
      declared = found.empty() ? AttributeType::Int : found[0];
    }
    if (!found.empty() && found[0] != *declared)
      fail_read("its value is not of the type that it states");
    if (!found.empty() && !attribute.reference.empty())
      fail_read("it holds a value and refers to another attribute");
    attribute.type = *declared;
    const bool message_type = *declared == AttributeType::Tensor ||
                              *declared == AttributeType::Graph ||
                              *declared == AttributeType::SparseTensor;
    if (message_type && found.empty() && attribute.reference.empty())
      fail_read("it holds no value");
  } catch (ReadFailure& failure) {
    if (failure.at_node) throw;
    failure.message = "attribute '" + escaped(attribute.name) + "': " + failure.message;
    throw;
  }
  return attribute;
}

// The numbers of data fields in AttributeProto, and the type each stands for.
std::optional<AttributeType> data_field_type(int number) {
  switch (number) {
  case AttributeProto::kFFieldNumber:
    return AttributeType::Float;
  case AttributeProto::kIFieldNumber:
    return AttributeType::Int;
  case AttributeProto::kSFieldNumber:
    return AttributeType::String;
  case AttributeProto::kTFieldNumber:
    return AttributeType::Tensor;
  case AttributeProto::kGFieldNumber:
    return AttributeType::Graph;
  case AttributeProto::kFloatsFieldNumber:
    return AttributeType::Floats;
  case AttributeProto::kIntsFieldNumber:
    return AttributeType::Ints;
  case AttributeProto::kStringsFieldNumber:
    return AttributeType::Strings;
  case AttributeProto::kTensorsFieldNumber:
    return AttributeType::Tensors;
  case AttributeProto::kGraphsFieldNumber:
    return AttributeType::Graphs;
  case AttributeProto::kSparseTensorFieldNumber:
    return AttributeType::SparseTensor;
  case AttributeProto::kSparseTensorsFieldNumber:
    return AttributeType::SparseTensors;
  case AttributeProto::kTpFieldNumber:
    return AttributeType::TypeProto;
  case AttributeProto::kTypeProtosFieldNumber:
    return AttributeType::TypeProtos;
  default:
    return std::nullopt;
  }
}

void ModelReader::attribute_field(const WireField& field, ModelAttribute& attribute,
                                  std::vector<AttributeType>& found) {
  if (auto type = data_field_type(field.number))
    if (found.empty() || found.back() != *type) found.push_back(*type);
  switch (field.number) {
  case AttributeProto::kNameFieldNumber:
    attribute.name = name(field);
    break;
  case AttributeProto::kRefAttrNameFieldNumber:
    attribute.reference = name(field);
    break;
  case AttributeProto::kFFieldNumber:
    attribute.f = field.as_float();
    break;
  case AttributeProto::kIFieldNumber:
    attribute.i = field.as_int();
    break;
  case AttributeProto::kSFieldNumber:
    charge(field.as_bytes().size());
    attribute.s = field.as_bytes();
    break;
  case AttributeProto::kTFieldNumber:
    if (attribute.tensor) fail_read("it holds two tensors");
    attribute.tensor = read_tensor(field.as_bytes(), source_);
    break;
  case AttributeProto::kSparseTensorFieldNumber:
    if (attribute.tensor) fail_read("it holds two tensors");
    attribute.tensor = read_sparse_tensor(field.as_bytes(), source_);
    charge(attribute.tensor->bytes.size());
    break;
  case AttributeProto::kGFieldNumber:
    if (attribute.graph) fail_read("it holds two graphs");
    charge(sizeof(ModelGraph));
    attribute.graph = std::make_shared<ModelGraph>(graph(field.as_bytes()));
    break;
  case AttributeProto::kFloatsFieldNumber:
    charge(field.bytes.size() + sizeof(float));
    for_each_fixed<uint32_t>(field, [&](uint32_t bits) {
      attribute.floats.push_back(std::bit_cast<float>(bits));
    });
    break;
  case AttributeProto::kIntsFieldNumber:
    // A packed byte may become an element of eight.
    charge((field.bytes.size() + 1) * sizeof(int64_t));
    for_each_varint(
        field, [&](uint64_t v) { attribute.ints.push_back(static_cast<int64_t>(v)); });
    break;
  case AttributeProto::kStringsFieldNumber:
    charge(field.as_bytes().size());
    attribute.strings.emplace_back(field.as_bytes());
    break;
  default:
    break;
  }
}

ModelValue ModelReader::value(std::string_view message) {
  ModelValue value;
  bool has_type = false;
  WireReader reader(message);
  while (auto field = reader.next()) {
    if (field->number == onnx::ValueInfoProto::kNameFieldNumber)
      value.name = name(*field);
    if (field->number != onnx::ValueInfoProto::kTypeFieldNumber) continue;
    if (has_type) fail_read("value '" + escaped(value.name) + "' has two types");
    has_type = true;
    type(field->as_bytes(), value);
  }
  return value;
}

void ModelReader::type(std::string_view message, ModelValue& value) {
  using onnx::TypeProto;
  using Kind = ModelValue::Kind;
  WireReader reader(message);
  while (auto field = reader.next()) {
    Kind kind = Kind::None;
    switch (field->number) {
    case TypeProto::kTensorTypeFieldNumber:
      kind = Kind::Tensor;
      break;
    case TypeProto::kSequenceTypeFieldNumber:
      kind = Kind::Sequence;
      break;
    case TypeProto::kOptionalTypeFieldNumber:
      kind = Kind::Optional;
      break;
    case TypeProto::kMapTypeFieldNumber:
      kind = Kind::Map;
      break;
    case TypeProto::kSparseTensorTypeFieldNumber:
      kind = Kind::Sparse;
      break;
    default:
      continue;
    }
    if (value.kind != Kind::None)
      fail_read("value '" + escaped(value.name) + "' has two types");
    value.kind = kind;
    if (kind == Kind::Tensor) tensor_type(field->as_bytes(), value);
  }
}

void ModelReader::tensor_type(std::string_view message, ModelValue& value) {
  using onnx::TypeProto_Tensor;
  WireReader reader(message);
  while (auto field = reader.next()) {
    if (field->number == TypeProto_Tensor::kElemTypeFieldNumber)
      value.onnx_type = static_cast<int>(field->as_int());
    if (field->number == TypeProto_Tensor::kShapeFieldNumber)
      value.dims = dims(field->as_bytes());
  }
}

std::vector<ModelDim> ModelReader::dims(std::string_view message) {
  using onnx::TensorShapeProto;
  using onnx::TensorShapeProto_Dimension;
  std::vector<ModelDim> dims;
  WireReader reader(message);
  while (auto field = reader.next()) {
    if (field->number != TensorShapeProto::kDimFieldNumber) continue;
    if (static_cast<int64_t>(dims.size()) == limits_.rank)
      fail_read("the rank of a value is over the limit of " +
                std::to_string(limits_.rank));
    ModelDim& dim = dims.emplace_back();
    charge(sizeof(ModelDim));
    WireReader entries(field->as_bytes());
    while (auto entry = entries.next()) {
      if (entry->number == TensorShapeProto_Dimension::kDimValueFieldNumber)
        dim.value = entry->as_int();
      if (entry->number == TensorShapeProto_Dimension::kDimParamFieldNumber)
        dim.name = name(*entry);
    }
  }
  return dims;
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

std::optional<Model> read(std::string_view bytes, std::string folder,
                          std::shared_ptr<const void> owner, const Limits& limits,
                          Diags& diags) {
  try {
    if (bytes.empty()) fail_read("the file is empty");
    ModelReader reader(limits, std::move(folder), std::move(owner));
    Model model = reader.model(bytes);
    // Before IR version 3 a model that imports no opset means the first.
    if (model.opsets.empty() && model.ir_version < 3) model.opsets[""] = 1;
    model.digest = sha256(bytes);
    check_model(model, limits, diags);
    if (diags.failed()) return std::nullopt;
    return model;
  } catch (const ReadFailure& failure) {
    diags.error(failure.exit, failure.message);
    return std::nullopt;
  }
}

} // namespace

std::optional<Model> read_model_bytes(std::string_view bytes, const Limits& limits,
                                      Diags& diags) {
  return read(bytes, "", nullptr, limits, diags);
}

std::optional<Model> read_model(const std::string& path, const Limits& limits,
                                Diags& diags) {
  const auto fail = [&](const std::string& why) {
    diags.error(Exit::File, why);
    return std::nullopt;
  };
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status{};
  if (!file || fstat(file.get(), &status) != 0)
    return fail("cannot open the file: " + std::string(strerror(errno)));
  if (!S_ISREG(status.st_mode)) return fail("is no regular file");
  if (status.st_size > limits.file_bytes) {
    diags.error(
        Exit::InvalidModel,
        "the file is larger than the limit of " + std::to_string(limits.file_bytes) +
            " bytes; protobuf ends at 2 GiB, larger weights belong in external data");
    return std::nullopt;
  }
  MappedFile mapped;
  if (!map_file(file.get(), static_cast<size_t>(status.st_size), mapped))
    return fail("cannot map the file: " + std::string(strerror(errno)));
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  return read(mapped.bytes, folder, mapped.owner, limits, diags);
}

} // namespace svod
