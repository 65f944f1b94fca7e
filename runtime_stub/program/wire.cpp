// Reading and writing of fields.
#include "runtime_stub/program/wire.h"

#include "runtime_stub/platform.h"

namespace packed {

bool Reader::varint(uint64_t& out) {
  out = 0;
  for (uint32_t shift = 0; shift < 64 && rest_.size > 0; shift += 7) {
    auto byte = static_cast<uint8_t>(rest_.data[0]);
    rest_ = rest_.from(1);
    out |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool Reader::fixed(uint64_t bytes, uint64_t& out) {
  if (rest_.size < bytes) return false;
  out = 0;
  memcpy(&out, rest_.data, static_cast<size_t>(bytes));
  rest_ = rest_.from(bytes);
  return true;
}

bool Reader::next(Field& field) {
  uint64_t key = 0, size = 0;
  if (!varint(key)) return false;
  field.number = key >> 3;
  field.wire = key & 7;
  if (field.wire == 0) return varint(field.value);
  if (field.wire == 1) return fixed(8, field.value);
  if (field.wire == 5) return fixed(4, field.value);
  if (field.wire != 2 || !varint(size) || size > rest_.size) return false;
  field.bytes = rest_.first(size);
  rest_ = rest_.from(size);
  return true;
}

void put_varint(Printer& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) {
    char byte = static_cast<char>(value | 0x80);
    out << Text(&byte, 1);
  }
  char byte = static_cast<char>(value);
  out << Text(&byte, 1);
}

void put_number(Printer& out, uint64_t field, uint64_t value) {
  put_varint(out, field << 3);
  put_varint(out, value);
}

void put_bytes(Printer& out, uint64_t field, Text bytes) {
  put_varint(out, field << 3 | 2);
  put_varint(out, bytes.size);
  out << bytes;
}

} // namespace packed
