// Decodes the messages of a model, one member function per message. Internal to the
// reader; what it throws (ReadFailure) ends in read_model().
#pragma once

#include "importer/model/model.h"
#include "importer/model/read_tensor.h"

namespace svod::importer {

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
  void inner_type(std::string_view message, ModelValue& value);
  void tensor_type(std::string_view message, ModelValue& value);
  std::vector<ModelDim> dims(std::string_view message);
  ModelFunction function(std::string_view message);
  void opset(std::string_view message, std::map<std::string, int64_t>& opsets);
  void metadata(std::string_view message, Model& model);

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

// Counting first avoids the growth of a vector, which would need up to three times the
// memory.
template <class T>
void ModelReader::reserve(std::vector<T>& list, std::string_view message, int number) {
  const size_t count = count_fields(message, number);
  charge(count * sizeof(T));
  list.reserve(count);
}

} // namespace svod::importer
