// Text in and out without a library: a buffered printer, numbers to decimal and back.
#ifndef SVOD_PROGRAM_TEXT_H
#define SVOD_PROGRAM_TEXT_H

#include "runtime_stub/types.h"

namespace svod {
class Crc32;
}

namespace packed {

// A piece of text that somebody else owns; not terminated.
struct Text {
  const char* data = nullptr;
  uint64_t size = 0;

  Text() = default;
  Text(const char* start, uint64_t bytes) : data(start), size(bytes) {}
  Text(const char* terminated);
  bool operator==(Text other) const;
  bool starts_with(Text prefix) const;
  bool ends_with(Text suffix) const;
  Text from(uint64_t at) const { return {data + at, size - at}; }
  Text first(uint64_t bytes) const { return {data, bytes}; }
  // Position of the first c, or size.
  uint64_t find(char c) const;
};

// Below, at or above zero, as memcmp: by bytes, a shorter text before a longer one.
int32_t compare(Text a, Text b);

// Whole text as a number; false when it is none or does not fit.
bool read_unsigned(Text text, uint64_t* out);
bool read_signed(Text text, int64_t* out);
// Decimal with fraction and exponent, nan, inf. Within one unit of the last place of a
// double.
bool read_float(Text text, double* out);

// What an errno of Linux means, in the words of the C library; empty: a rare one.
Text failure_text(int32_t failure);

class Printer {
public:
  // Counts what is written and drops it.
  static constexpr int32_t kNowhere = -1;
  explicit Printer(int32_t file) : file_(file) {}
  // Into memory, as far as there is room.
  Printer(char* room, uint64_t bytes)
      : file_(kNowhere), room_(room), room_bytes_(bytes) {}
  ~Printer() { flush(); }
  Printer& operator<<(Text text);
  Printer& operator<<(const char* text) { return *this << Text(text); }
  Printer& operator<<(uint64_t number);
  Printer& operator<<(int64_t number);
  Printer& operator<<(uint32_t number) { return *this << uint64_t{number}; }
  Printer& operator<<(int32_t number) { return *this << int64_t{number}; }
  Printer& number(double value, uint32_t digits); // significant ones
  // d.ddd times a power of ten, in one of two notations by its size.
  Printer& decimal(const char* digits, uint32_t count, int32_t exponent);
  Printer& fixed(double value, uint32_t decimals);
  // A model's string: control bytes as \xNN, cut at 80.
  Printer& name(Text text);
  Printer& json(Text text); // quoted
  Printer& hexadecimal(const uint8_t* bytes, uint32_t count);
  // Spaces up to that column, counted from the last new line.
  Printer& column(uint32_t at);
  void flush();
  int32_t failure() const { return failure_; } // errno of the first write that failed
  uint64_t written() const { return flushed_ + used_; } // bytes so far
  // The sum of what is written from here on; none of it waits to be flushed.
  void watch(svod::Crc32* sum) { sum_ = sum; }

private:
  void put(char c);
  void send(const char* data, uint64_t bytes);
  int32_t file_;
  char* room_ = nullptr;
  uint64_t room_bytes_ = 0;
  svod::Crc32* sum_ = nullptr;
  int32_t failure_ = 0;
  uint32_t column_ = 0;
  uint64_t used_ = 0, flushed_ = 0;
  char buffer_[1024]; // what is longer is written as it lies
};

} // namespace packed

#endif
