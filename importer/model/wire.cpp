// Decoding of keys, varints and lengths, each checked against what is left of its
// message.
#include "importer/model/wire.h"

namespace svod::importer {

static_assert(std::endian::native == std::endian::little,
              "the wire format and the graph's blobs are little endian");

int64_t WireField::as_int() const {
  if (type != WireType::Varint)
    fail_read("field " + std::to_string(number) + " should be a number");
  return static_cast<int64_t>(value);
}

float WireField::as_float() const {
  if (type != WireType::Fixed32)
    fail_read("field " + std::to_string(number) + " should be a float");
  return std::bit_cast<float>(static_cast<uint32_t>(value));
}

std::string_view WireField::as_bytes() const {
  if (type != WireType::Bytes)
    fail_read("field " + std::to_string(number) + " should have a length");
  return bytes;
}

std::string_view WireReader::take(uint64_t size) {
  if (size > rest_.size()) fail_read("the file is cut off or damaged");
  const std::string_view taken = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return taken;
}

uint64_t WireReader::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    const auto byte = static_cast<uint8_t>(take(1)[0]);
    // The tenth byte has room for one bit.
    if (shift == 63 && byte > 1) break;
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  fail_read("a number in the file is longer than 64 bits");
}

std::optional<WireField> WireReader::next() {
  if (rest_.empty()) return std::nullopt;
  const uint64_t key = varint();
  WireField field;
  if (key >> 3 == 0 || key >> 3 > 0x1fffffff) fail_read("a field number is out of range");
  field.number = static_cast<int>(key >> 3);
  switch (key & 7) {
  case 0:
    field.value = varint();
    break;
  case 1:
    field.type = WireType::Fixed64;
    std::memcpy(&field.value, take(8).data(), 8);
    break;
  case 2:
    field.type = WireType::Bytes;
    field.bytes = take(varint());
    break;
  case 5:
    field.type = WireType::Fixed32;
    std::memcpy(&field.value, take(4).data(), 4);
    break;
  default:
    fail_read("the file is no ONNX model, or damaged");
  }
  return field;
}

size_t count_fields(std::string_view message, int number) {
  size_t count = 0;
  WireReader reader(message);
  while (auto field = reader.next()) count += field->number == number;
  return count;
}

} // namespace svod::importer
