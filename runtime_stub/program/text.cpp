// Decimal conversion by scaling with powers of ten held as products of exact squares;
// good to the digits we print, and small. Fixed notation where it is short, else
// d.ddde+xx.
#include "runtime_stub/program/text.h"

#include "runtime_stub/crc32.h"
#include "runtime_stub/platform.h"

namespace packed {

namespace {

constexpr int32_t kMostExponent = 400;

// value * 10^exponent.
double scale10(double value, int32_t exponent) {
  bool down = exponent < 0;
  int32_t steps = down ? -exponent : exponent;
  if (steps > kMostExponent) steps = kMostExponent;
  // In parts, so that no intermediate leaves the range before the result does.
  while (steps > 0) {
    int32_t part = steps < 22 ? steps : 22;
    double power = 1; // 10^22 is the largest exact power
    for (int32_t i = 0; i < part; i++) power *= 10;
    value = down ? value / power : value * power;
    steps -= part;
  }
  return value;
}

// 10^e <= value < 10^(e+1), value > 0.
int32_t decimal_exponent(double value) {
  int32_t e = 0;
  while (scale10(value, -e) >= 10) e++;
  while (scale10(value, -e) < 1) e--;
  return e;
}

bool is_nan(double value) { return value != value; }
bool is_infinite(double value) { return value - value != 0 && !is_nan(value); }

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool equals_ignoring_case(Text text, Text word) {
  if (text.size != word.size) return false;
  for (uint64_t i = 0; i < text.size; i++) {
    if (lower(text.data[i]) != word.data[i]) return false;
  }
  return true;
}

} // namespace

Text::Text(const char* terminated) : data(terminated) {
  while (terminated[size] != 0) size++;
}

bool Text::operator==(Text other) const {
  return size == other.size && memcmp(data, other.data, static_cast<size_t>(size)) == 0;
}

bool Text::starts_with(Text prefix) const {
  return size >= prefix.size && first(prefix.size) == prefix;
}

bool Text::ends_with(Text suffix) const {
  return size >= suffix.size && from(size - suffix.size) == suffix;
}

uint64_t Text::find(char c) const {
  for (uint64_t i = 0; i < size; i++) {
    if (data[i] == c) return i;
  }
  return size;
}

int32_t compare(Text a, Text b) {
  const uint64_t both = a.size < b.size ? a.size : b.size;
  const int32_t order = memcmp(a.data, b.data, static_cast<size_t>(both));
  return order != 0 || a.size == b.size ? order : a.size < b.size ? -1 : 1;
}

bool read_unsigned(Text text, uint64_t* out) {
  if (text.size == 0 || text.size > 20) return false;
  uint64_t value = 0;
  for (uint64_t i = 0; i < text.size; i++) {
    uint64_t digit = static_cast<uint64_t>(text.data[i]) - '0';
    if (digit > 9 || value > (~uint64_t{0} - digit) / 10) return false;
    value = value * 10 + digit;
  }
  *out = value;
  return true;
}

bool read_signed(Text text, int64_t* out) {
  bool negative = text.size > 0 && text.data[0] == '-';
  uint64_t magnitude = 0;
  if (!read_unsigned(negative ? text.from(1) : text, &magnitude)) return false;
  if (magnitude > (uint64_t{1} << 63) - !negative) return false;
  *out = static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
  return true;
}

bool read_float(Text text, double* out) {
  bool negative = text.size > 0 && text.data[0] == '-';
  if (text.size > 0 && (negative || text.data[0] == '+')) text = text.from(1);
  double sign = negative ? -1 : 1;
  if (equals_ignoring_case(text, "nan")) return *out = __builtin_nan(""), true;
  if (equals_ignoring_case(text, "inf") || equals_ignoring_case(text, "infinity")) {
    return *out = sign * __builtin_inf(), true;
  }
  uint64_t digits = 0, at = 0;
  int32_t exponent = 0;
  bool any = false, point = false;
  for (; at < text.size; at++) {
    char c = text.data[at];
    if (c == '.' && !point) {
      point = true;
    } else if (c >= '0' && c <= '9') {
      any = true;
      bool room = digits < (uint64_t{1} << 59);
      if (room) digits = digits * 10 + static_cast<uint64_t>(c - '0');
      exponent += (room ? 0 : 1) - (point ? 1 : 0);
    } else {
      break;
    }
  }
  if (at < text.size) {
    int64_t power = 0;
    if (lower(text.data[at]) != 'e') return false;
    Text rest = text.from(at + 1);
    if (rest.starts_with("+")) rest = rest.from(1);
    if (!read_signed(rest, &power) || power > 9999 || power < -9999) return false;
    exponent += static_cast<int32_t>(power);
  }
  *out = sign * scale10(static_cast<double>(digits), exponent);
  return any;
}

Text failure_text(int32_t failure) {
  struct Row {
    int32_t failure;
    char words[36];
  };
  static constexpr Row kRows[] = {
      {1, "Operation not permitted"},
      {2, "No such file or directory"},
      {5, "Input/output error"},
      {9, "Bad file descriptor"},
      {12, "Cannot allocate memory"},
      {13, "Permission denied"},
      {20, "Not a directory"},
      {21, "Is a directory"},
      {22, "Invalid argument"},
      {24, "Too many open files"},
      {26, "Text file busy"},
      {27, "File too large"},
      {28, "No space left on device"},
      {30, "Read-only file system"},
      {32, "Broken pipe"},
      {36, "File name too long"},
      {40, "Too many levels of symbolic links"},
  };
  for (const Row& row : kRows) {
    if (row.failure == failure) return Text(row.words);
  }
  return {};
}

void Printer::put(char c) {
  if (used_ == sizeof(buffer_)) flush();
  buffer_[used_++] = c;
  column_ = c == '\n' ? 0 : column_ + 1;
}

void Printer::send(const char* data, uint64_t bytes) {
  constexpr int32_t kInputOutput = 5; // fewer bytes than asked, without a reason
  const uint64_t at = flushed_;
  flushed_ += bytes;
  if (sum_ != nullptr)
    sum_->add(reinterpret_cast<const uint8_t*>(data), static_cast<size_t>(bytes));
  for (uint64_t i = 0; i < bytes && at + i < room_bytes_; i++) room_[at + i] = data[i];
  if (bytes == 0 || file_ == kNowhere || failure_ != 0) return;
  int64_t written = svod_write(file_, data, bytes);
  if (written < 0) failure_ = static_cast<int32_t>(-written);
  if (written >= 0 && written < static_cast<int64_t>(bytes)) failure_ = kInputOutput;
}

void Printer::flush() {
  send(buffer_, used_);
  used_ = 0;
}

Printer& Printer::operator<<(Text text) {
  if (text.size > sizeof(buffer_)) {
    flush();
    send(text.data, text.size);
    return *this;
  }
  for (uint64_t i = 0; i < text.size; i++) put(text.data[i]);
  return *this;
}

Printer& Printer::operator<<(uint64_t number) {
  char digits[20];
  uint32_t count = 0;
  do {
    digits[count++] = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number != 0);
  while (count > 0) put(digits[--count]);
  return *this;
}

Printer& Printer::operator<<(int64_t number) {
  if (number < 0) put('-');
  return *this << (number < 0 ? 0 - static_cast<uint64_t>(number)
                              : static_cast<uint64_t>(number));
}

Printer& Printer::number(double value, uint32_t digits) {
  if (is_nan(value)) return *this << "nan";
  if (value < 0) *this << "-";
  if (value < 0) value = -value;
  if (is_infinite(value)) return *this << "inf";
  if (value == 0) return *this << "0";
  int32_t exponent = decimal_exponent(value);
  // `digits` decimal digits as an integer, rounded; a carry lengthens it.
  auto whole = static_cast<uint64_t>(
      scale10(value, static_cast<int32_t>(digits) - 1 - exponent) + 0.5);
  char text[24];
  uint32_t count = 0;
  for (uint64_t rest = whole; rest != 0; rest /= 10) count++;
  exponent += static_cast<int32_t>(count) - static_cast<int32_t>(digits);
  for (uint32_t i = count; i > 0; whole /= 10)
    text[--i] = static_cast<char>('0' + whole % 10);
  while (count > 1 && text[count - 1] == '0') count--;
  return decimal(text, count, exponent);
}

Printer& Printer::decimal(const char* digits, uint32_t count, int32_t exponent) {
  bool scientific = exponent < -5 || exponent > 15;
  int32_t before = scientific ? 1 : exponent + 1; // digits before the point
  if (before <= 0) *this << "0.";
  for (int32_t i = before; i < 0; i++) put('0');
  for (uint32_t i = 0; i < count; i++) {
    if (static_cast<int32_t>(i) == before && before > 0) put('.');
    put(digits[i]);
  }
  for (int32_t i = static_cast<int32_t>(count); i < before; i++) put('0');
  if (scientific) *this << (exponent < 0 ? "e" : "e+") << exponent;
  return *this;
}

Printer& Printer::fixed(double value, uint32_t decimals) {
  uint64_t power = 1;
  for (uint32_t i = 0; i < decimals; i++) power *= 10;
  double magnitude = (value < 0 ? -value : value) * static_cast<double>(power) + 0.5;
  if (!(magnitude < 1e18)) return number(value, 9);
  if (value < 0) put('-');
  auto whole = static_cast<uint64_t>(magnitude);
  *this << whole / power;
  if (decimals == 0) return *this;
  put('.');
  for (uint64_t rest = power / 10; rest > 0; rest /= 10) {
    put(static_cast<char>('0' + whole / rest % 10));
  }
  return *this;
}

Printer& Printer::name(Text text) {
  for (uint64_t i = 0; i < text.size; i++) {
    auto byte = static_cast<uint8_t>(text.data[i]);
    if (i >= 80) return *this << "...";
    if (byte >= 0x20 && byte < 0x7f) {
      put(text.data[i]);
    } else {
      *this << "\\x" << Text(&"0123456789abcdef"[byte >> 4], 1)
            << Text(&"0123456789abcdef"[byte & 15], 1);
    }
  }
  return *this;
}

Printer& Printer::json(Text text) {
  put('"');
  for (uint64_t i = 0; i < text.size; i++) {
    auto byte = static_cast<uint8_t>(text.data[i]);
    if (byte == '"' || byte == '\\') put('\\');
    // A page may hold the JSON: nothing in it ends an element.
    if (byte >= 0x20 && byte < 0x7f && byte != '<') {
      put(text.data[i]);
    } else {
      *this << "\\u00" << Text(&"0123456789abcdef"[byte >> 4], 1)
            << Text(&"0123456789abcdef"[byte & 15], 1);
    }
  }
  put('"');
  return *this;
}

Printer& Printer::hexadecimal(const uint8_t* bytes, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    put("0123456789abcdef"[bytes[i] >> 4]);
    put("0123456789abcdef"[bytes[i] & 15]);
  }
  return *this;
}

Printer& Printer::column(uint32_t at) {
  do put(' ');
  while (column_ < at);
  return *this;
}

} // namespace packed
