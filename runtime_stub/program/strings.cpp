// A row has no length beside it: the string ends at the first zero. So a string with a
// zero byte in it is refused where data comes in, and kernels may count bytes that are
// not zero.
#include "runtime_stub/program/strings.h"

#include "runtime_stub/platform.h"

namespace packed {

namespace {

const char kZeroByte[] = "a string has a zero byte in it";

bool is_space(char c) { return c == ' ' || c == ',' || c == '\n' || c == '\t'; }

int32_t hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// Bytes of the printable character at the beginning, 0: none is there. U+0080 to U+009F
// steer a terminal, as the first 32 do.
uint64_t printable(Text text) {
  const uint64_t size = character_size(text);
  if (size == 0) return 0;
  const auto first = static_cast<uint8_t>(text.data[0]);
  const bool steers = first < 0x20 || first == 0x7f ||
                      (first == 0xc2 && static_cast<uint8_t>(text.data[1]) < 0xa0);
  return steers ? 0 : size;
}

} // namespace

uint64_t character_size(Text text) {
  auto byte = [&](uint64_t i) { return static_cast<uint8_t>(text.data[i]); };
  if (byte(0) < 0x80) return 1;
  uint64_t size = byte(0) < 0xc2   ? 0
                  : byte(0) < 0xe0 ? 2
                  : byte(0) < 0xf0 ? 3
                  : byte(0) < 0xf5 ? 4
                                   : 0;
  if (size == 0 || size > text.size) return 0;
  for (uint64_t i = 1; i < size; i++) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // The second byte tells longer forms of what has a shorter one (e0, f0), surrogates
  // (ed), and what is beyond the last character (f4).
  uint8_t second = byte(1);
  bool bad = (byte(0) == 0xe0 && second < 0xa0) || (byte(0) == 0xf0 && second < 0x90) ||
             (byte(0) == 0xed && second >= 0xa0) || (byte(0) == 0xf4 && second >= 0x90);
  return bad ? 0 : size;
}

uint64_t encode_character(uint32_t c, uint8_t* out) {
  if (c < 0x80) {
    out[0] = static_cast<uint8_t>(c);
    return 1;
  }
  uint64_t tails = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  uint32_t mark = tails == 1 ? 0xc0 : tails == 2 ? 0xe0 : 0xf0;
  out[0] = static_cast<uint8_t>(mark | c >> (6 * tails));
  for (uint64_t i = 1; i <= tails; i++) {
    out[i] = static_cast<uint8_t>(0x80 | (c >> (6 * (tails - i)) & 0x3f));
  }
  return tails + 1;
}

Text string_at(const Tensor& tensor, uint64_t i) {
  Text row(static_cast<const char*>(tensor.data) + i * tensor.width, tensor.width);
  return row.first(row.find(0));
}

const char* fit_strings(Tensor& tensor, uint64_t width, uint64_t& where) {
  uint64_t count = tensor.elements();
  auto rows = static_cast<uint8_t*>(take_memory(count * width));
  if (rows == nullptr) return "there is no memory for it";
  auto from = static_cast<const uint8_t*>(tensor.data);
  for (uint64_t i = 0; i < count; i++) {
    Text string = string_at(tensor, i);
    where = i;
    for (uint64_t k = string.size; k < tensor.width; k++) {
      if (from[i * tensor.width + k] != 0) return kZeroByte;
    }
    if (string.size > width) return "a string is too long";
    memset(rows + i * width, 0, static_cast<size_t>(width));
    memcpy(rows + i * width, string.data, static_cast<size_t>(string.size));
  }
  tensor.data = rows;
  tensor.width = width;
  return nullptr;
}

void StringRows::count(Text string) {
  count_++;
  if (string.size > width_) width_ = string.size;
  has_zero_ = has_zero_ || string.find(0) < string.size;
}

bool StringRows::begin(Tensor& tensor) {
  // The rows of one long string and many short ones: as much as the text is long,
  // squared.
  constexpr uint64_t kMost = uint64_t{1} << 34;
  if (width_ > 0 && count_ > kMost / width_) return false;
  room_ = count_;
  rows_ = static_cast<uint8_t*>(take_memory(count_ * width_));
  if (rows_ == nullptr) return false;
  tensor.width = width_;
  tensor.data = rows_;
  return true;
}

void StringRows::put(Text string) {
  if (at_ == room_ || string.size > width_) return;
  memset(rows_ + at_ * width_, 0, static_cast<size_t>(width_));
  memcpy(rows_ + at_ * width_, string.data, static_cast<size_t>(string.size));
  at_++;
}

bool read_quoted(Text& text, char* buffer, Text& string) {
  uint64_t size = 0, at = 0;
  bool quoted = text.size > 0 && text.data[0] == '"';
  if (quoted) at++;
  for (; at < text.size; at++) {
    char c = text.data[at];
    if (quoted ? c == '"' : is_space(c)) break;
    if (quoted && c == '\\') {
      if (++at == text.size) return false;
      c = text.data[at];
      if (c == 'x') {
        int32_t high = at + 2 < text.size ? hex_digit(text.data[at + 1]) : -1;
        int32_t low = at + 2 < text.size ? hex_digit(text.data[at + 2]) : -1;
        if (high < 0 || low < 0) return false;
        c = static_cast<char>(16 * high + low);
        at += 2;
      } else if (c == 'n' || c == 't') {
        c = c == 'n' ? '\n' : '\t';
      } else if (c != '"' && c != '\\') {
        return false;
      }
    }
    buffer[size++] = c;
  }
  if (quoted && at++ == text.size) return false;
  text = text.from(at);
  string = {buffer, size};
  return text.size == 0 || is_space(text.data[0]);
}

void print_plain(Printer& out, Text string) {
  while (string.size > 0) {
    uint64_t size = printable(string);
    auto byte = static_cast<uint8_t>(string.data[0]);
    if (size == 0) {
      out << "\\x" << Text(&"0123456789abcdef"[byte >> 4], 1)
          << Text(&"0123456789abcdef"[byte & 15], 1);
      size = 1;
    } else {
      if (byte == '\\') out << "\\";
      out << string.first(size);
    }
    string = string.from(size);
  }
}

void print_quoted(Printer& out, Text string) {
  out << "\"";
  for (uint64_t end = string.find('"'); end < string.size; end = string.find('"')) {
    print_plain(out, string.first(end));
    out << "\\\"";
    string = string.from(end + 1);
  }
  print_plain(out, string);
  out << "\"";
}

const char* from_wide_characters(Tensor& tensor) {
  uint64_t count = tensor.elements();
  auto rows = static_cast<uint8_t*>(take_memory(count * tensor.width));
  if (rows == nullptr) return "there is no memory for it";
  auto from = static_cast<const uint8_t*>(tensor.data);
  memset(rows, 0, static_cast<size_t>(count * tensor.width));
  for (uint64_t i = 0; i < count; i++) {
    uint8_t* row = rows + i * tensor.width;
    bool ended = false;
    for (uint64_t k = 0; k < tensor.width; k += 4) {
      uint32_t c = 0;
      memcpy(&c, from + i * tensor.width + k, 4);
      if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return "a character is no Unicode";
      if (c != 0 && ended) return kZeroByte;
      ended = c == 0;
      if (c != 0) row += encode_character(c, row);
    }
  }
  tensor.data = rows;
  return nullptr;
}

void fill_words(Tensor& tensor, uint64_t (*next)(uint64_t&), uint64_t& state,
                uint8_t* rows) {
  uint64_t most = tensor.width < 8 ? tensor.width : 8, count = tensor.elements();
  memset(rows, 0, static_cast<size_t>(count * tensor.width));
  for (uint64_t i = 0; i < count; i++) {
    uint64_t number = next(state), size = 1 + number % 8;
    for (uint64_t k = 0; k < size && k < most; k++) {
      number >>= 5;
      rows[i * tensor.width + k] = static_cast<uint8_t>('a' + number % 26);
    }
  }
}

} // namespace packed
