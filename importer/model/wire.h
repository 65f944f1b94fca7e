// Protobuf's wire format: a message is a list of fields, each a number, a wire type and a
// value. Reading copies nothing: strings and sub-messages are views of the mapped file.
//
// Malformed bytes throw ReadFailure, which never leaves read_model().
#pragma once

#include "compiler/support/diags.h"

#include <bit>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace svod::importer {

struct ReadFailure {
  Exit exit;
  std::string message;
  bool at_node = false; // the message names the innermost node
};

[[noreturn]] inline void fail_read(std::string message) {
  throw ReadFailure{Exit::InvalidModel, std::move(message), false};
}

// Values of the wire type in a field's key; the two group types are not used by ONNX.
enum class WireType : uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

struct WireField {
  int number = 0;
  WireType type = WireType::Varint;
  uint64_t value = 0;     // of Varint, Fixed64, Fixed32
  std::string_view bytes; // of Bytes

  // The value as what the schema says; a wire type that does not fit throws.
  int64_t as_int() const;
  float as_float() const;
  std::string_view as_bytes() const;
};

// The fields of one message, in file order:  while (auto field = reader.next()) ...
class WireReader {
public:
  explicit WireReader(std::string_view message) : rest_(message) {}
  std::optional<WireField> next();
  uint64_t varint();
  bool done() const { return rest_.empty(); }

private:
  std::string_view take(uint64_t size);
  std::string_view rest_;
};

// How many fields of a message have this number: what to reserve.
size_t count_fields(std::string_view message, int number);

// Calls `f` with each element of a repeated varint field, packed or not.
template <class F> void for_each_varint(const WireField& field, F&& f) {
  if (field.type != WireType::Bytes) return f(static_cast<uint64_t>(field.as_int()));
  for (WireReader packed(field.bytes); !packed.done();) f(packed.varint());
}

// Calls `f` with each element of a repeated float (T = uint32_t) or double (uint64_t)
// field.
template <class T, class F> void for_each_fixed(const WireField& field, F&& f) {
  constexpr WireType kSingle = sizeof(T) == 4 ? WireType::Fixed32 : WireType::Fixed64;
  if (field.type == kSingle) return f(static_cast<T>(field.value));
  const std::string_view packed = field.as_bytes();
  if (packed.size() % sizeof(T) != 0) fail_read("a packed field is cut off");
  for (size_t i = 0; i < packed.size(); i += sizeof(T)) {
    T value;
    std::memcpy(&value, packed.data() + i, sizeof(T));
    f(value);
  }
}

} // namespace svod::importer
