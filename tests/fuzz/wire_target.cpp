// Our reader of ONNX files beside protobuf's own on the same bytes. Ours refuses more:
// limits, fields that are there twice, two data fields. What it takes protobuf takes,
// too, and both have read the same.
#include "importer/model/model_reader.h"
#include "tests/fuzz/target.h"

#include <described.pb.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/stubs/logging.h>

#include <cstring>
#include <memory>
#include <set>

namespace svod::fuzz {

namespace {

using namespace importer;

// So that a float that is no number equals itself.
template <class T> bool same(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <class Ours, class Theirs>
bool same_list(const std::vector<Ours>& a, const Theirs& b) {
  if (a.size() != static_cast<size_t>(b.size())) return false;
  for (int i = 0; i < b.size(); ++i)
    if (!same<Ours>(a[static_cast<size_t>(i)], b[i])) return false;
  return true;
}

bool same_texts(const std::vector<std::string>& a,
                const google::protobuf::RepeatedPtrField<std::string>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

std::string domain_of(const std::string& name) { return name == "ai.onnx" ? "" : name; }

void compare(const ModelTensor& a, const onnx::TensorProto& b) {
  must(a.name == b.name(), "the name of a tensor");
  must(a.onnx_type == b.data_type(), "the element type of a tensor");
  must(same_list(a.dims, b.dims()), "the dimensions of a tensor");
  const std::string_view bytes(reinterpret_cast<const char*>(a.bytes.data()),
                               a.bytes.size());
  if (b.has_raw_data() && b.data_type() != onnx::TensorProto::STRING)
    must(bytes == b.raw_data(), "the raw data of a tensor");
  const auto holds = [&](const auto& list) {
    return bytes.size() == sizeof(list[0]) * static_cast<size_t>(list.size()) &&
           std::memcmp(bytes.data(), list.data(), bytes.size()) == 0;
  };
  if (b.float_data_size() > 0) must(holds(b.float_data()), "float_data");
  if (b.double_data_size() > 0) must(holds(b.double_data()), "double_data");
  if (b.int64_data_size() > 0) must(holds(b.int64_data()), "int64_data");
  if (b.int32_data_size() > 0 && b.data_type() == onnx::TensorProto::INT32)
    must(holds(b.int32_data()), "int32_data");
  must(same_texts(a.strings, b.string_data()), "string_data");
}

void compare(const ModelGraph& a, const onnx::GraphProto& b);

void compare(const ModelAttribute& a, const onnx::AttributeProto& b) {
  must(a.name == b.name() && a.reference == b.ref_attr_name(), "names of an attribute");
  if (b.has_f()) must(same(a.f, b.f()), "a float of an attribute");
  if (b.has_i()) must(a.i == b.i(), "a number of an attribute");
  if (b.has_s()) must(a.s == b.s(), "a text of an attribute");
  must(same_list(a.floats, b.floats()), "floats of an attribute");
  must(same_list(a.ints, b.ints()), "numbers of an attribute");
  must(same_texts(a.strings, b.strings()), "texts of an attribute");
  must(a.tensor.has_value() == b.has_t(), "a tensor of an attribute");
  if (b.has_t()) compare(*a.tensor, b.t());
  must((a.graph != nullptr) == b.has_g(), "a graph of an attribute");
  if (b.has_g()) compare(*a.graph, b.g());
}

void compare(const ModelNode& a, const onnx::NodeProto& b) {
  must(a.name == b.name() && a.op_type == b.op_type() && a.overload == b.overload() &&
           a.domain == domain_of(b.domain()),
       "names of a node");
  must(same_texts(a.inputs, b.input()) && same_texts(a.outputs, b.output()),
       "inputs and outputs of a node");
  must(a.attributes.size() == static_cast<size_t>(b.attribute_size()),
       "how many attributes a node has");
  for (int i = 0; i < b.attribute_size(); ++i)
    compare(a.attributes[static_cast<size_t>(i)], b.attribute(i));
}

void compare(const ModelValue& a, const onnx::ValueInfoProto& b) {
  must(a.name == b.name(), "the name of a value");
  if (!b.type().has_tensor_type() || !b.type().tensor_type().has_shape()) return;
  const auto& shape = b.type().tensor_type().shape();
  must(a.kind == ModelValue::Kind::Tensor &&
           a.onnx_type == b.type().tensor_type().elem_type(),
       "the type of a value");
  must(a.dims && a.dims->size() == static_cast<size_t>(shape.dim_size()),
       "the rank of a value");
  for (int i = 0; i < shape.dim_size(); ++i) {
    const ModelDim& dim = (*a.dims)[static_cast<size_t>(i)];
    must(dim.value.has_value() == shape.dim(i).has_dim_value() &&
             dim.value.value_or(0) == shape.dim(i).dim_value() &&
             dim.name == shape.dim(i).dim_param(),
         "a dimension of a value");
  }
}

void compare(const ModelGraph& a, const onnx::GraphProto& b) {
  must(a.nodes.size() == static_cast<size_t>(b.node_size()), "how many nodes there are");
  for (int i = 0; i < b.node_size(); ++i)
    compare(a.nodes[static_cast<size_t>(i)], b.node(i));
  // Sparse initializers come behind the others.
  must(a.initializers.size() ==
           static_cast<size_t>(b.initializer_size() + b.sparse_initializer_size()),
       "how many initializers there are");
  for (int i = 0; i < b.initializer_size(); ++i)
    if (b.sparse_initializer_size() == 0)
      compare(a.initializers[static_cast<size_t>(i)], b.initializer(i));
  must(a.inputs.size() == static_cast<size_t>(b.input_size()) &&
           a.outputs.size() == static_cast<size_t>(b.output_size()),
       "how many inputs and outputs there are");
  for (int i = 0; i < b.input_size(); ++i)
    compare(a.inputs[static_cast<size_t>(i)], b.input(i));
  for (int i = 0; i < b.output_size(); ++i)
    compare(a.outputs[static_cast<size_t>(i)], b.output(i));
}

// ONNX's messages as our reader knows them: what it passes over is any bytes.
class KnownMessages {
public:
  KnownMessages() {
    google::protobuf::FileDescriptorProto file;
    onnx::ModelProto::descriptor()->file()->CopyTo(&file);
    for (auto& message : *file.mutable_message_type())
      for (auto& field : *message.mutable_field())
        if (is_passed_over(message.name() + "." + field.name())) {
          field.set_type(google::protobuf::FieldDescriptorProto::TYPE_BYTES);
          field.clear_type_name();
        }
    const auto* built = pool_.BuildFile(file);
    must(built != nullptr, "the changed messages hold together");
    model_ = factory_.GetPrototype(built->FindMessageTypeByName("ModelProto"));
  }

  bool takes(std::string_view text) const {
    const std::unique_ptr<google::protobuf::Message> message(model_->New());
    return message->ParsePartialFromArray(text.data(), static_cast<int>(text.size()));
  }

private:
  static bool is_passed_over(const std::string& field) {
    static const std::set<std::string> kFields{"ModelProto.training_info",
                                               "ModelProto.configuration",
                                               "GraphProto.metadata_props",
                                               "GraphProto.quantization_annotation",
                                               "NodeProto.metadata_props",
                                               "NodeProto.device_configurations",
                                               "FunctionProto.value_info",
                                               "FunctionProto.metadata_props",
                                               "AttributeProto.tp",
                                               "AttributeProto.tensors",
                                               "AttributeProto.graphs",
                                               "AttributeProto.type_protos",
                                               "AttributeProto.sparse_tensor",
                                               "AttributeProto.sparse_tensors",
                                               "TensorProto.segment",
                                               "TensorProto.metadata_props",
                                               "ValueInfoProto.metadata_props",
                                               "TypeProto.sparse_tensor_type",
                                               "TypeProto.opaque_type"};
    return kFields.contains(field);
  }

  google::protobuf::DescriptorPool pool_;
  google::protobuf::DynamicMessageFactory factory_;
  const google::protobuf::Message* model_ = nullptr;
};

} // namespace

void fuzz_wire(Bytes bytes) {
  static const google::protobuf::LogSilencer kQuiet;
  Limits limits;
  limits.structure_bytes = 1 << 22;
  limits.external_bytes = 0;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  Model ours;
  try {
    ours = ModelReader(limits, "", nullptr).model(text);
  } catch (const ReadFailure&) {
    return;
  }
  static const KnownMessages kKnown;
  must(kKnown.takes(text), "protobuf reads what we read");
  onnx::ModelProto theirs;
  if (!theirs.ParseFromArray(text.data(), static_cast<int>(text.size()))) return;
  must(ours.ir_version == theirs.ir_version(), "the version of the format");
  must(ours.producer == theirs.producer_name(), "the producer");
  must(ours.functions.size() == static_cast<size_t>(theirs.functions_size()),
       "how many functions there are");
  if (theirs.has_graph()) compare(ours.graph, theirs.graph());
}

} // namespace svod::fuzz
