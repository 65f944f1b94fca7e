// A tensor's data is in exactly one of seven fields, or in a file. Two fields would let a
// reader see other weights than an auditor did, and a length that is not dims x size has
// been a read out of bounds elsewhere: both are refused. Raw data stays where it is in
// the mapped file; the other fields are converted once to the same form, row-major and
// little endian.
#include "importer/model/read_tensor.h"

#include "onnx-ml.pb.h"

#include <algorithm>
#include <limits>

namespace svod::importer {

namespace {

using onnx::SparseTensorProto;
using onnx::TensorProto;

// How an element type is stored: bits per element, and the typed field that may hold it.
struct Storage {
  int bits = 0; // 0: unknown type or string
  int field = 0;
};

Storage storage(int onnx_type) {
  switch (onnx_type) {
  case TensorProto::FLOAT:
    return {32, TensorProto::kFloatDataFieldNumber};
  case TensorProto::COMPLEX64:
    return {64, TensorProto::kFloatDataFieldNumber};
  case TensorProto::DOUBLE:
    return {64, TensorProto::kDoubleDataFieldNumber};
  case TensorProto::COMPLEX128:
    return {128, TensorProto::kDoubleDataFieldNumber};
  case TensorProto::INT64:
    return {64, TensorProto::kInt64DataFieldNumber};
  case TensorProto::UINT32:
    return {32, TensorProto::kUint64DataFieldNumber};
  case TensorProto::UINT64:
    return {64, TensorProto::kUint64DataFieldNumber};
  case TensorProto::INT32:
    return {32, TensorProto::kInt32DataFieldNumber};
  case TensorProto::INT16:
  case TensorProto::UINT16:
  case TensorProto::FLOAT16:
  case TensorProto::BFLOAT16:
    return {16, TensorProto::kInt32DataFieldNumber};
  case TensorProto::INT8:
  case TensorProto::UINT8:
  case TensorProto::BOOL:
  case TensorProto::FLOAT8E4M3FN:
  case TensorProto::FLOAT8E4M3FNUZ:
  case TensorProto::FLOAT8E5M2:
  case TensorProto::FLOAT8E5M2FNUZ:
  case TensorProto::FLOAT8E8M0:
  case TensorProto::FLOAT6E2M3:
  case TensorProto::FLOAT6E3M2:
    return {8, TensorProto::kInt32DataFieldNumber};
  case TensorProto::UINT4:
  case TensorProto::INT4:
  case TensorProto::FLOAT4E2M1:
    return {4, TensorProto::kInt32DataFieldNumber};
  case TensorProto::UINT2:
  case TensorProto::INT2:
    return {2, TensorProto::kInt32DataFieldNumber};
  case TensorProto::STRING:
    return {0, TensorProto::kStringDataFieldNumber};
  default:
    return {};
  }
}

int64_t checked_elements(const Shape& dims, const Limits& limits) {
  if (static_cast<int64_t>(dims.size()) > limits.rank)
    fail_read("rank " + std::to_string(dims.size()) + " is over the limit of " +
              std::to_string(limits.rank));
  int64_t elements = 1;
  for (int64_t dim : dims) {
    if (dim < 0) fail_read("dimension " + std::to_string(dim) + " is negative");
    // One of 0 counts as 1, as the graph has it: the others may be no larger for it.
    if (dim > limits.dim ||
        __builtin_mul_overflow(elements, std::max<int64_t>(dim, 1), &elements) ||
        elements > limits.elements)
      fail_read("the shape is over the limit of " + std::to_string(limits.elements) +
                " elements");
  }
  return std::ranges::find(dims, 0) == dims.end() ? elements : 0;
}

// The fields of one TensorProto before they are checked against each other.
struct RawTensor {
  ModelTensor tensor;
  int data_fields = 0;         // how many different ones are there
  int data_field = 0;          // the last of them
  std::vector<WireField> data; // its pieces
  bool external = false;
  ExternalEntry entry;
};

void add_data(RawTensor& raw, const WireField& field) {
  if (raw.data_fields == 0 || raw.data_field != field.number) ++raw.data_fields;
  raw.data_field = field.number;
  // A packed field is one piece; only string tensors and careless writers have many.
  constexpr size_t kMostPieces = 1 << 20;
  if (raw.data.size() == kMostPieces) fail_read("its data is in too many pieces");
  raw.data.push_back(field);
}

void read_external_entry(std::string_view message, ExternalEntry& entry) {
  std::string_view key, value;
  WireReader reader(message);
  while (auto field = reader.next()) {
    if (field->number == onnx::StringStringEntryProto::kKeyFieldNumber)
      key = field->as_bytes();
    if (field->number == onnx::StringStringEntryProto::kValueFieldNumber)
      value = field->as_bytes();
  }
  read_external_key(key, value, entry);
}

RawTensor read_fields(std::string_view message, const Limits& limits) {
  RawTensor raw;
  WireReader reader(message);
  while (auto field = reader.next()) {
    switch (field->number) {
    case TensorProto::kDimsFieldNumber:
      for_each_varint(*field, [&](uint64_t dim) {
        if (static_cast<int64_t>(raw.tensor.dims.size()) > limits.rank)
          fail_read("the rank is over the limit of " + std::to_string(limits.rank));
        raw.tensor.dims.push_back(static_cast<int64_t>(dim));
      });
      break;
    case TensorProto::kDataTypeFieldNumber:
      raw.tensor.onnx_type = static_cast<int>(field->as_int());
      break;
    case TensorProto::kNameFieldNumber:
      raw.tensor.name =
          field->as_bytes().substr(0, static_cast<size_t>(limits.name_bytes) + 1);
      break;
    case TensorProto::kSegmentFieldNumber:
      throw ReadFailure{Exit::Unsupported, "a tensor in segments is not supported",
                        false};
    case TensorProto::kFloatDataFieldNumber:
    case TensorProto::kInt32DataFieldNumber:
    case TensorProto::kStringDataFieldNumber:
    case TensorProto::kInt64DataFieldNumber:
    case TensorProto::kRawDataFieldNumber:
    case TensorProto::kDoubleDataFieldNumber:
    case TensorProto::kUint64DataFieldNumber:
      add_data(raw, *field);
      break;
    case TensorProto::kExternalDataFieldNumber:
      read_external_entry(field->as_bytes(), raw.entry);
      break;
    case TensorProto::kDataLocationFieldNumber:
      raw.external = field->as_int() == TensorProto::EXTERNAL;
      break;
    default:
      break;
    }
  }
  if (static_cast<int64_t>(raw.tensor.name.size()) > limits.name_bytes)
    fail_read("a name is longer than the limit of " + std::to_string(limits.name_bytes) +
              " bytes");
  return raw;
}

[[noreturn]] void fail_size(const char* field, int64_t have, int64_t want) {
  fail_read(std::string(field) + " holds " + std::to_string(have) + ", the shape needs " +
            std::to_string(want));
}

// Collects elements of a typed field as bytes, refusing one more than the shape has.
class ByteSink {
public:
  ByteSink(int64_t size, const std::vector<WireField>& pieces)
      : bytes_(std::make_shared<std::vector<std::byte>>()),
        size_(static_cast<size_t>(size)) {
    // What the shape claims is not trusted: one byte of the file is at most 8 bytes of
    // elements.
    size_t most = 0;
    for (const WireField& piece : pieces) most += 8 * (piece.bytes.size() + 1);
    bytes_->reserve(std::min(size_, most));
  }
  template <class T> void add(T value) {
    if (bytes_->size() + sizeof(T) > size_)
      fail_read("there are more elements than the shape has");
    const auto* data = reinterpret_cast<const std::byte*>(&value);
    bytes_->insert(bytes_->end(), data, data + sizeof(T));
  }
  void give(ModelTensor& tensor) {
    if (bytes_->size() != size_)
      fail_size("the data field", static_cast<int64_t>(bytes_->size()),
                static_cast<int64_t>(size_));
    tensor.bytes = *bytes_;
    tensor.owner = std::move(bytes_);
  }

private:
  std::shared_ptr<std::vector<std::byte>> bytes_;
  size_t size_;
};

// int32_data holds anything of 32 bits and less; a value that its type cannot hold is
// refused.
void add_narrow(ByteSink& sink, uint64_t varint, int bits) {
  const auto value = static_cast<int64_t>(varint);
  if (bits < 8) bits = 8; // two or four elements were packed in a byte
  if (value < -(int64_t{1} << (bits - 1)) || value >= int64_t{1} << bits)
    fail_read("value " + std::to_string(value) + " does not fit the element type");
  if (bits == 8) return sink.add(static_cast<uint8_t>(value));
  if (bits == 16) return sink.add(static_cast<uint16_t>(value));
  sink.add(static_cast<uint32_t>(value));
}

void read_typed(const RawTensor& raw, const Storage& how, int64_t size,
                ModelTensor& tensor) {
  ByteSink sink(size, raw.data);
  for (const WireField& piece : raw.data) {
    switch (how.field) {
    case TensorProto::kFloatDataFieldNumber:
      for_each_fixed<uint32_t>(piece, [&](uint32_t bits) { sink.add(bits); });
      break;
    case TensorProto::kDoubleDataFieldNumber:
      for_each_fixed<uint64_t>(piece, [&](uint64_t bits) { sink.add(bits); });
      break;
    case TensorProto::kInt32DataFieldNumber:
      for_each_varint(piece, [&](uint64_t value) { add_narrow(sink, value, how.bits); });
      break;
    case TensorProto::kUint64DataFieldNumber:
      for_each_varint(piece, [&](uint64_t value) {
        if (how.bits == 64) return sink.add(value);
        if (value >> 32 != 0) fail_read("a value does not fit the element type");
        sink.add(static_cast<uint32_t>(value));
      });
      break;
    default:
      for_each_varint(piece, [&](uint64_t value) { sink.add(value); });
    }
  }
  sink.give(tensor);
}

void read_raw(const RawTensor& raw, int64_t size, TensorSource& source,
              ModelTensor& tensor) {
  if (raw.data.size() != 1) fail_read("raw_data appears more than once");
  const std::string_view bytes = raw.data[0].as_bytes();
  if (static_cast<int64_t>(bytes.size()) != size)
    fail_size("raw_data", static_cast<int64_t>(bytes.size()), size);
  tensor.bytes = std::as_bytes(std::span(bytes.data(), bytes.size()));
  tensor.owner = source.owner;
}

void read_strings(const RawTensor& raw, int64_t elements, ModelTensor& tensor) {
  if (!raw.data.empty() && raw.data_field != TensorProto::kStringDataFieldNumber)
    fail_read("its strings are not in string_data");
  if (static_cast<int64_t>(raw.data.size()) != elements)
    fail_size("string_data", static_cast<int64_t>(raw.data.size()), elements);
  for (const WireField& piece : raw.data) tensor.strings.emplace_back(piece.as_bytes());
}

void read_external(const RawTensor& raw, int64_t size, TensorSource& source,
                   ModelTensor& tensor) {
  MappedFile mapped = source.external.bytes(raw.entry, size);
  tensor.bytes = std::as_bytes(std::span(mapped.bytes.data(), mapped.bytes.size()));
  tensor.owner = std::move(mapped.owner);
}

void read_data(RawTensor& raw, TensorSource& source) {
  ModelTensor& tensor = raw.tensor;
  const Storage how = storage(tensor.onnx_type);
  if (how.field == 0)
    fail_read("element type " + onnx_type_name(tensor.onnx_type) + " is unknown");
  if (raw.data_fields > 1 || (raw.external && raw.data_fields != 0))
    fail_read("its data is in more than one place");
  if (how.bits == 0 && !raw.external)
    return read_strings(raw, checked_elements(tensor.dims, source.limits), tensor);
  const int64_t size = checked_bytes(tensor.onnx_type, tensor.dims, source.limits);
  if (raw.external) return read_external(raw, size, source, tensor);
  if (raw.data_field == TensorProto::kRawDataFieldNumber)
    return read_raw(raw, size, source, tensor);
  if (raw.data_fields != 0 && raw.data_field != how.field)
    fail_read("its data is in a field of another element type");
  read_typed(raw, how, size, tensor);
}

} // namespace

int64_t checked_bytes(int onnx_type, const Shape& dims, const Limits& limits) {
  const int bits = storage(onnx_type).bits;
  if (bits == 0)
    fail_read("elements of type " + onnx_type_name(onnx_type) + " have no size");
  int64_t total = 0;
  if (__builtin_mul_overflow(checked_elements(dims, limits), int64_t{bits}, &total) ||
      __builtin_add_overflow(total, 7, &total))
    fail_read("the shape's size in bits is over 2^63");
  return total / 8;
}

ModelTensor read_tensor(std::string_view message, TensorSource& source) {
  RawTensor raw = read_fields(message, source.limits);
  try {
    read_data(raw, source);
    return std::move(raw.tensor);
  } catch (ReadFailure& failure) {
    failure.message = "tensor '" + escaped(raw.tensor.name) + "': " + failure.message;
    throw;
  }
}

namespace {

// Where each stored value goes: COO indices are either flat [n] or one row per value [n,
// rank].
std::vector<int64_t> flat_positions(const ModelTensor& indices, const Shape& dims,
                                    size_t count) {
  if (indices.onnx_type != TensorProto::INT64) fail_read("sparse indices must be int64");
  std::vector<int64_t> values(indices.bytes.size() / sizeof(int64_t));
  if (!values.empty())
    std::memcpy(values.data(), indices.bytes.data(), indices.bytes.size());
  const bool flat = indices.dims.size() == 1;
  const size_t width = flat ? 1 : dims.size();
  if (values.size() != count * width) fail_read("sparse indices do not match the values");
  const Shape extents = flat ? Shape{element_count(dims)} : dims;
  std::vector<int64_t> positions;
  for (size_t i = 0; i < count; ++i) {
    int64_t position = 0;
    for (size_t axis = 0; axis < width; ++axis) {
      const int64_t index = values[i * width + axis];
      if (index < 0 || index >= extents[axis])
        fail_read("a sparse index is out of range");
      position = position * extents[axis] + index;
    }
    positions.push_back(position);
  }
  return positions;
}

} // namespace

ModelTensor read_sparse_tensor(std::string_view message, TensorSource& source) {
  std::optional<ModelTensor> values, indices;
  Shape dims;
  WireReader reader(message);
  while (auto field = reader.next()) {
    if (field->number == SparseTensorProto::kValuesFieldNumber)
      values = read_tensor(field->as_bytes(), source);
    if (field->number == SparseTensorProto::kIndicesFieldNumber)
      indices = read_tensor(field->as_bytes(), source);
    if (field->number == SparseTensorProto::kDimsFieldNumber)
      for_each_varint(*field, [&](uint64_t dim) {
        if (static_cast<int64_t>(dims.size()) > source.limits.rank)
          fail_read("rank too high");
        dims.push_back(static_cast<int64_t>(dim));
      });
  }
  if (!values || !indices) fail_read("a sparse tensor lacks its values or its indices");
  const int64_t size = checked_bytes(values->onnx_type, dims, source.limits);
  const int bits = storage(values->onnx_type).bits;
  constexpr int64_t kMostBytes = int64_t{1} << 28;
  if (bits % 8 != 0 || size > kMostBytes)
    throw ReadFailure{Exit::Unsupported,
                      "sparse tensor '" + escaped(values->name) +
                          "' is too large to be made dense",
                      false};
  if (values->dims.size() != 1) fail_read("sparse values must have rank 1");
  const auto count = static_cast<size_t>(values->dims[0]);
  const size_t width = static_cast<size_t>(bits) / 8;
  auto dense = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(size));
  const std::vector<int64_t> positions = flat_positions(*indices, dims, count);
  for (size_t i = 0; i < count; ++i)
    std::memcpy(dense->data() + static_cast<size_t>(positions[i]) * width,
                values->bytes.data() + i * width, width);
  return {values->name, values->onnx_type, dims, *dense, dense, {}};
}

} // namespace svod::importer
