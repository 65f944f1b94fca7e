// Attributes, and the types and shapes that a model declares for its values.
#include "importer/model/model_reader.h"

#include "onnx-ml.pb.h"

#include <utility>

namespace svod::importer {

using onnx::AttributeProto;

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

namespace {

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

} // namespace

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
    if (kind == Kind::Sequence || kind == Kind::Optional || kind == Kind::Map)
      inner_type(field->as_bytes(), value);
  }
}

// Of a sequence, an optional or a map: its element, of which TypeProto is the type again.
void ModelReader::inner_type(std::string_view message, ModelValue& value) {
  using onnx::TypeProto;
  static_assert(TypeProto::Sequence::kElemTypeFieldNumber == 1 &&
                TypeProto::Optional::kElemTypeFieldNumber == 1 &&
                TypeProto::Map::kKeyTypeFieldNumber == 1 &&
                TypeProto::Map::kValueTypeFieldNumber == 2);
  const bool map = value.kind == ModelValue::Kind::Map;
  ModelValue element;
  element.name = value.name;
  if (++depth_ > limits_.nesting)
    fail_read("the type of value '" + escaped(value.name) + "' is nested too deeply");
  WireReader reader(message);
  while (auto field = reader.next()) {
    if (map && field->number == 1) value.key_type = static_cast<int>(field->as_int());
    if (field->number == (map ? 2 : 1)) type(field->as_bytes(), element);
  }
  --depth_;
  element.inner.insert(element.inner.begin(), element.kind);
  value.inner = std::move(element.inner);
  value.onnx_type = element.onnx_type;
  value.dims = std::move(element.dims);
  if (!map) value.key_type = element.key_type;
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
    bool is_told = false;
    while (auto entry = entries.next()) {
      const bool is_value =
          entry->number == TensorShapeProto_Dimension::kDimValueFieldNumber;
      if (!is_value && entry->number != TensorShapeProto_Dimension::kDimParamFieldNumber)
        continue;
      if (std::exchange(is_told, true)) fail_read("a dimension is given twice");
      if (is_value)
        dim.value = entry->as_int();
      else
        dim.name = name(*entry);
    }
  }
  return dims;
}

} // namespace svod::importer
