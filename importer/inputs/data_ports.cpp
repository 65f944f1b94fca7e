// Only what a pack must know is read; values of tensors are left alone.
#include "importer/inputs/data_ports.h"

#include "importer/inputs/input_values.h"
#include "importer/model/wire.h"

namespace svod::importer {

namespace {

using Kind = ModelValue::Kind;

// Field numbers of onnx-data.proto; sequence and optional share theirs.
enum Field { kTensorValue = 3, kSequenceValue = 5, kKeys = 3, kStringKeys = 4 };

void read_sequence(std::string_view message, const std::string& name,
                   const Limits& limits, DataPort& port, DataSet& set) {
  WireReader reader(message);
  while (auto field = reader.next()) {
    if (field->number != kTensorValue) continue;
    if (port.length == kMostElements) fail_read("the sequence is too long");
    const auto i = static_cast<size_t>(port.length++);
    set.shapes[element_name(name, i)] = read_tensor_shape(field->as_bytes(), limits).dims;
  }
}

void read_map(std::string_view message, DataPort& port) {
  WireReader reader(message);
  while (auto field = reader.next()) {
    if (field->number == kKeys)
      for_each_varint(*field, [&](uint64_t key) {
        port.keys.numbers.push_back(static_cast<int64_t>(key));
      });
    if (field->number == kStringKeys) port.keys.texts.emplace_back(field->as_bytes());
    if (static_cast<int64_t>(port.keys.size()) > kMostElements)
      fail_read("the map has too many keys");
  }
}

} // namespace

DataTensor read_tensor_shape(std::string_view message, const Limits& limits) {
  DataTensor out;
  WireReader reader(message);
  while (auto field = reader.next()) {
    if (field->number == 8) out.name = std::string(field->as_bytes());
    if (field->number != 1) continue;
    for_each_varint(*field,
                    [&](uint64_t dim) { out.dims.push_back(static_cast<int64_t>(dim)); });
    if (static_cast<int64_t>(out.dims.size()) > limits.rank)
      fail_read("too many dimensions");
  }
  return out;
}

void read_data_port(std::string_view message, const ModelValue& input,
                    const Limits& limits, DataSet& set) {
  DataPort port;
  Kind kind = input.kind;
  if (kind == Kind::Optional) {
    port.present = false;
    kind = input.inner.empty() ? Kind::None : input.inner[0];
    const int wanted = kind == Kind::Tensor ? kTensorValue : kSequenceValue;
    WireReader reader(message);
    while (auto field = reader.next()) {
      if (field->number != wanted) continue;
      port.present = true;
      message = field->as_bytes();
    }
  }
  if (port.present && kind == Kind::Tensor)
    set.shapes[input.name] = read_tensor_shape(message, limits).dims;
  if (port.present && kind == Kind::Sequence)
    read_sequence(message, input.name, limits, port, set);
  if (kind == Kind::Map) read_map(message, port);
  set.ports[input.name] = std::move(port);
}

} // namespace svod::importer
