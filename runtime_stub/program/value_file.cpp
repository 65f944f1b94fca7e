// SequenceProto, OptionalProto and MapProto. All three have a name as field 1 and hold
// tensors in messages inside; each tensor is a TensorProto as in a file of its own. A
// map's keys are looked up by halves among the packed ones.
#include "runtime_stub/platform.h"
#include "runtime_stub/program/tensor_file.h"
#include "runtime_stub/program/value.h"
#include "runtime_stub/program/wire.h"

namespace packed {

namespace {

// Sequence and optional have the same numbers; an optional's element comes once.
enum ValueField : uint64_t {
  NAME = 1,
  ELEMENT_TYPE = 2, // a map's: type of its keys
  TENSOR = 3,
  SEQUENCE = 5,
  MAP = 6,
  MAP_KEYS = 3,
  MAP_TEXT_KEYS = 4,
  MAP_VALUES = 5,
};

constexpr const char* kMalformed = "it is malformed";

// Calls use(field) for each field; the first reason it gives, or null.
template <class F> const char* each_field(Text message, F&& use) {
  Reader reader(message);
  while (!reader.done()) {
    Field field;
    if (!reader.next(field)) return kMalformed;
    if (const char* error = use(field)) return error;
  }
  return nullptr;
}

// Likewise for each message of one number.
template <class F> const char* each_message(Text message, uint64_t number, F&& use) {
  return each_field(message, [&](const Field& field) -> const char* {
    return field.number == number && field.wire == 2 ? use(field.bytes) : nullptr;
  });
}

Tensor* take_tensors(uint64_t count) {
  return static_cast<Tensor*>(take_memory(count * sizeof(Tensor)));
}

const char* read_one(Text message, const Value& value, ValueData& out) {
  out.tensors = take_tensors(1);
  if (out.tensors == nullptr) return "there is no memory for it";
  out.count = 1;
  const char* error = read_proto(message, value.element, out.tensors[0]);
  out.name = out.tensors[0].name;
  return error;
}

const char* read_sequence(Text message, const Value& value, ValueData& out) {
  uint64_t count = 0;
  const char* error = each_field(message, [&](const Field& field) -> const char* {
    if (field.number == NAME && field.wire == 2) out.name = field.bytes;
    if (field.number > TENSOR && field.wire == 2) return "its elements are no tensors";
    count += field.number == TENSOR && field.wire == 2;
    return nullptr;
  });
  if (error != nullptr) return error;
  if (count > kMostTensors) return "it has too many elements";
  out.tensors = take_tensors(count);
  if (out.tensors == nullptr) return "there is no memory for it";
  return each_message(message, TENSOR, [&](Text tensor) {
    return read_proto(tensor, value.element, out.tensors[out.count++]);
  });
}

struct Key {
  int64_t number = 0;
  Text text;
};

const SvodKey* find_key(const Session& session, const Value& value, const Key& key) {
  uint32_t low = 0, high = value.key_count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    const SvodKey& at = value.keys[middle];
    // As the packer sorts.
    int32_t order = value.has(SVOD_VALUE_TEXT_KEYS)
                        ? compare(text_of(session, at.text), key.text)
                    : at.number < key.number ? -1
                                             : at.number > key.number;
    if (order == 0) return &at;
    if (order < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return nullptr;
}

// One map's values, into `row`, and how many of its keys were found.
class MapReader {
public:
  MapReader(const Session& session, const Value& value, void* row)
      : session_(session), value_(value), row_(static_cast<uint8_t*>(row)) {}
  const char* read(Text map, Text* name);

private:
  // Number `wanted` of the keys, counted from 0: values come in a message of their own.
  const char* put(const Key& key, Text tensor);
  const Session& session_;
  const Value& value_;
  uint8_t* row_;
  uint8_t* seen_ = nullptr; // a byte per key
  uint32_t found_ = 0;
};

const char* MapReader::put(const Key& key, Text message) {
  Tensor tensor;
  if (const char* error = read_proto(message, value_.element, tensor)) return error;
  if (tensor.element != value_.element || tensor.elements() != 1) {
    return "a value of the map is not of the packed type";
  }
  const SvodKey* at = find_key(session_, value_, key);
  if (at == nullptr) {
    return value_.has(SVOD_VALUE_ANY_KEYS) ? nullptr : "it has a key that is not packed";
  }
  if (seen_[at->place]++ != 0) return "it has a key twice";
  uint64_t bytes = value_.element->bytes(1);
  memcpy(row_ + at->place * bytes, tensor.data, static_cast<size_t>(bytes));
  drop_memory(tensor.data, bytes); // a map may have many
  found_++;
  return nullptr;
}

// Walks keys and values side by side. Numbers may be packed or one by one.
class KeyWalk {
public:
  KeyWalk(Text map, bool texts) : map_(map), texts_(texts), packed_(Text()) {}
  bool next(Key& key) {
    for (;;) {
      uint64_t bits = 0;
      if (!packed_.done()) {
        if (!packed_.varint(bits)) return false;
        key.number = static_cast<int64_t>(bits);
        return true;
      }
      Field field;
      if (map_.done() || !map_.next(field)) return false;
      if (texts_ && field.number == MAP_TEXT_KEYS && field.wire == 2) {
        key.text = field.bytes;
        return true;
      }
      if (texts_ || field.number != MAP_KEYS) continue;
      if (field.wire == 2) packed_ = Reader(field.bytes);
      if (field.wire != 0) continue;
      key.number = static_cast<int64_t>(field.value);
      return true;
    }
  }

private:
  Reader map_;
  bool texts_;
  Reader packed_;
};

const char* MapReader::read(Text map, Text* name) {
  seen_ = static_cast<uint8_t*>(take_memory(value_.key_count));
  if (seen_ == nullptr) return "there is no memory for it";
  KeyWalk keys(map, value_.has(SVOD_VALUE_TEXT_KEYS));
  const char* error = each_field(map, [&](const Field& field) -> const char* {
    if (field.number == NAME && field.wire == 2) *name = field.bytes;
    if (field.number != MAP_VALUES || field.wire != 2) return nullptr;
    return each_message(field.bytes, TENSOR, [&](Text tensor) -> const char* {
      Key key;
      return keys.next(key) ? put(key, tensor) : "it has more values than keys";
    });
  });
  if (error != nullptr) return error;
  Key more;
  if (keys.next(more)) return "it has more keys than values";
  if (!value_.has(SVOD_VALUE_ANY_KEYS) && found_ < value_.key_count) {
    return "it lacks a key that is packed";
  }
  drop_memory(seen_, value_.key_count);
  return nullptr;
}

// `rows` maps into one tensor of the packed type.
const char* take_rows(const Session& session, Side side, const Value& value,
                      uint64_t rows, ValueData& out) {
  out.tensors = take_tensors(1);
  if (out.tensors == nullptr) return "there is no memory for it";
  out.tensors[0] = tensor_at(session, side, value.first);
  if (value.kind == SVOD_VALUE_MAPS) {
    if (rows > 0x7fffffff) return "it has too many maps";
    out.tensors[0].dims[0] = static_cast<int64_t>(rows);
  }
  void* data = take_memory(out.tensors[0].bytes()); // zeros
  out.tensors[0].data = data;
  out.count = 1;
  return data == nullptr ? "there is no memory for it" : nullptr;
}

const char* read_maps(const Session& session, Side side, const Value& value, Text message,
                      ValueData& out) {
  uint64_t rows = 0;
  const char* error = each_message(message, MAP, [&](Text) -> const char* {
    rows++;
    return nullptr;
  });
  if (error == nullptr) error = take_rows(session, side, value, rows, out);
  if (error != nullptr) return error;
  auto row = static_cast<uint8_t*>(const_cast<void*>(out.tensors[0].data));
  uint64_t bytes = uint64_t{value.key_count} * value.element->bytes(1);
  each_message(message, NAME, [&](Text name) -> const char* {
    out.name = name;
    return nullptr;
  });
  return each_message(message, MAP, [&](Text map) {
    Text name;
    const char* wrong = MapReader(session, value, row).read(map, &name);
    row += bytes;
    return wrong;
  });
}

const char* read_inner(const Session& session, Side side, const Value& value,
                       Text message, ValueData& out) {
  if (value.kind == SVOD_VALUE_TENSOR) return read_one(message, value, out);
  if (value.kind == SVOD_VALUE_SEQUENCE) return read_sequence(message, value, out);
  if (value.count == 0) return "its type is not packed";
  if (value.kind == SVOD_VALUE_MAPS) return read_maps(session, side, value, message, out);
  if (const char* error = take_rows(session, side, value, 1, out)) return error;
  void* row = const_cast<void*>(out.tensors[0].data);
  return MapReader(session, value, row).read(message, &out.name);
}

void write_scalar(Printer& out, const Tensor& tensor, uint64_t i) {
  uint64_t bytes = tensor.element->bytes(1);
  put_number(out, 2, tensor.element->onnx);
  put_bytes(out, 9, {static_cast<const char*>(tensor.data) + i * bytes, bytes});
}

void write_map(Printer& out, const Session& session, const Value& value,
               const Tensor& tensor, uint64_t row) {
  constexpr uint64_t kInt64 = 7, kString = 8;
  bool texts = value.has(SVOD_VALUE_TEXT_KEYS);
  put_number(out, ELEMENT_TYPE, texts ? kString : kInt64);
  for (uint32_t i = 0; i < value.key_count; i++) {
    if (texts) {
      put_bytes(out, MAP_TEXT_KEYS, text_of(session, value.keys[i].text));
    } else {
      put_number(out, MAP_KEYS, static_cast<uint64_t>(value.keys[i].number));
    }
  }
  put_message(out, MAP_VALUES, [&](Printer& values) {
    put_number(values, ELEMENT_TYPE, 1); // tensors
    for (uint32_t i = 0; i < value.key_count; i++) {
      put_message(values, TENSOR, [&](Printer& scalar) {
        write_scalar(scalar, tensor, row * value.key_count + value.keys[i].place);
      });
    }
  });
}

void write_sequence(Printer& out, const Session& session, const Value& value) {
  bool maps = value.kind == SVOD_VALUE_MAPS;
  put_number(out, ELEMENT_TYPE, maps ? 4 : 1);
  for (uint32_t i = 0; !maps && i < value.count; i++) {
    Tensor tensor = output_type(session, value.first + i);
    put_message(out, TENSOR, [&](Printer& element) { write_proto(element, tensor); });
  }
  if (!maps || value.count == 0) return;
  Tensor tensor = output_type(session, value.first);
  for (int64_t row = 0; row < tensor.dims[0]; row++) {
    put_message(out, MAP, [&](Printer& map) {
      write_map(map, session, value, tensor, static_cast<uint64_t>(row));
    });
  }
}

void write_inner(Printer& out, const Session& session, const Value& value) {
  if (value.kind == SVOD_VALUE_TENSOR) {
    write_proto(out, output_type(session, value.first));
  } else if (value.kind == SVOD_VALUE_MAP) {
    write_map(out, session, value, output_type(session, value.first), 0);
  } else {
    write_sequence(out, session, value);
  }
}

} // namespace

const char* read_value(const Session& session, Side side, const Value& value,
                       Text content, ValueData& out) {
  out = {};
  if (!value.has(SVOD_VALUE_OPTIONAL)) {
    return read_inner(session, side, value, content, out);
  }
  uint64_t wanted = value.kind == SVOD_VALUE_TENSOR ? TENSOR : SEQUENCE;
  Text name, element;
  out.present = false;
  const char* error = each_field(content, [&](const Field& field) -> const char* {
    if (field.wire != 2) return nullptr;
    if (field.number == NAME) name = field.bytes;
    if (field.number == NAME) return nullptr;
    if (field.number != wanted || out.present) return "it is no optional of this type";
    out.present = true;
    element = field.bytes;
    return nullptr;
  });
  if (error == nullptr && out.present) {
    error = read_inner(session, side, value, element, out);
  }
  out.name = name;
  return error;
}

void write_value(Printer& out, const Session& session, const Value& value) {
  constexpr uint64_t kTensor = 1, kSequence = 3; // OptionalProto.DataType
  bool tensor = value.kind == SVOD_VALUE_TENSOR;
  if (!tensor || value.has(SVOD_VALUE_OPTIONAL)) put_bytes(out, NAME, value.name);
  if (!value.has(SVOD_VALUE_OPTIONAL)) return write_inner(out, session, value);
  put_number(out, ELEMENT_TYPE, tensor ? kTensor : kSequence);
  if (!is_present(session, value)) return;
  put_message(out, tensor ? TENSOR : SEQUENCE,
              [&](Printer& element) { write_inner(element, session, value); });
}

} // namespace packed
