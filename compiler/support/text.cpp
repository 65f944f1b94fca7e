// UTF-8 (RFC 3629): the first byte tells how many follow, each of those gives six bits.
#include "compiler/support/text.h"

namespace svod {

std::string escaped(std::string_view text, size_t limit) {
  static const char* digits = "0123456789abcdef";
  std::string out;
  for (unsigned char c : text) {
    if (out.size() >= limit) return out + "...";
    if (c >= 0x20 && c < 0x7f) {
      out += static_cast<char>(c);
    } else {
      out += "\\x";
      out += digits[c >> 4];
      out += digits[c & 15];
    }
  }
  return out;
}

std::string quoted(std::string_view name) { return "'" + escaped(name) + "'"; }

static size_t size_by_first_byte(uint32_t first) {
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

Utf8Character decode_utf8(std::string_view text, size_t at) {
  auto byte = [&](size_t i) { return static_cast<uint8_t>(text[at + i]); };
  const uint32_t first = byte(0);
  const size_t size = size_by_first_byte(first);
  if (size == 0 || size > text.size() - at) return {};
  uint32_t value = size == 1 ? first : first & (0x7fu >> size);
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3f);
  }
  return {value, size};
}

bool is_well_formed(Utf8Character character) {
  static constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = character.value >> 11 == 0xd800 >> 11;
  return character.size != 0 && character.value >= kSmallest[character.size] &&
         character.value <= 0x10ffff && !surrogate;
}

void append_utf8(std::string& out, uint32_t character) {
  const uint32_t c = character;
  auto put = [&](uint32_t byte) { out += static_cast<char>(byte); };
  auto tail = [&](int shift) { put(0x80 | (c >> shift & 0x3f)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xc0 | c >> 6), tail(0);
  } else if (c < 0x10000) {
    put(0xe0 | c >> 12), tail(6), tail(0);
  } else {
    put(0xf0 | c >> 18), tail(12), tail(6), tail(0);
  }
}

} // namespace svod
