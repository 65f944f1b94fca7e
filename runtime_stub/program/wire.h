// Protobuf's wire format: a message is fields of (number, wire type, value). Reading
// copies nothing and never leaves the message.
#ifndef SVOD_PROGRAM_WIRE_H
#define SVOD_PROGRAM_WIRE_H

#include "runtime_stub/program/text.h"

namespace packed {

struct Field {
  uint64_t number = 0, wire = 0;
  uint64_t value = 0; // of varint and fixed types
  Text bytes;         // of wire type 2
};

class Reader {
public:
  explicit Reader(Text message) : rest_(message) {}
  bool done() const { return rest_.size == 0; }
  // False: the message is cut off or malformed.
  bool varint(uint64_t& out);
  bool next(Field& field);
  bool fixed(uint64_t bytes, uint64_t& out);

private:
  Text rest_;
};

void put_varint(Printer& out, uint64_t value);
void put_number(Printer& out, uint64_t field, uint64_t value);
void put_bytes(Printer& out, uint64_t field, Text bytes);
// A message inside another: `body(printer)` writes it, twice, since its length comes
// first.
template <class F> void put_message(Printer& out, uint64_t field, F&& body) {
  Printer counted(Printer::kNowhere);
  body(counted);
  put_varint(out, field << 3 | 2);
  put_varint(out, counted.written());
  body(out);
}

} // namespace packed

#endif
