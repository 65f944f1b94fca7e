// JSON text (RFC 8259). A model's name may hold any byte: valid UTF-8 is kept as \u
// escapes, any other byte becomes the replacement character, so that the result always
// parses.
#include "packager/json.h"

#include <cstdio>

namespace svod {

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  text_ += bracket;
  has_members_.push_back(false);
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  has_members_.pop_back();
  text_ += bracket;
  return *this;
}

void JsonWriter::separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (has_members_.empty()) return;
  if (has_members_.back()) text_ += ", ";
  has_members_.back() = true;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  quote(name);
  text_ += ": ";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  quote(text);
  return *this;
}

JsonWriter& JsonWriter::value(int64_t number) {
  separate();
  text_ += std::to_string(number);
  return *this;
}

JsonWriter& JsonWriter::value(uint64_t number) {
  separate();
  text_ += std::to_string(number);
  return *this;
}

JsonWriter& JsonWriter::milliseconds(double number) {
  separate();
  char digits[64];
  std::snprintf(digits, sizeof(digits), "%.3f", number);
  text_ += digits;
  return *this;
}

JsonWriter& JsonWriter::boolean(bool truth) {
  separate();
  text_ += truth ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  text_ += json;
  return *this;
}

// The code point that starts at text[i], and its length; length 0 when it is no UTF-8.
static uint32_t decode_utf8(std::string_view text, size_t i, size_t& length) {
  auto byte = [&](size_t at) { return static_cast<uint8_t>(text[at]); };
  uint32_t first = byte(i);
  length = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (length == 0 || i + length > text.size()) return length = 0;
  uint32_t point = first & (0x7f >> length);
  for (size_t k = 1; k < length; k++) {
    if ((byte(i + k) & 0xc0) != 0x80) return length = 0;
    point = point << 6 | (byte(i + k) & 0x3f);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  bool bad = point < kSmallest[length] || point > 0x10ffff || (point >> 11) == 0x1b;
  return bad ? length = 0 : point;
}

static void append_escape(std::string& out, uint32_t unit) {
  char escape[8];
  std::snprintf(escape, sizeof(escape), "\\u%04x", unit & 0xffff);
  out += escape;
}

void JsonWriter::quote(std::string_view text) {
  text_ += '"';
  for (size_t i = 0; i < text.size();) {
    auto c = static_cast<uint8_t>(text[i]);
    size_t length = 1;
    if (c == '"' || c == '\\') {
      text_ += '\\';
      text_ += text[i];
    } else if (c >= 0x20 && c < 0x7f) {
      text_ += text[i];
    } else if (c < 0x80) {
      append_escape(text_, c);
    } else if (uint32_t point = decode_utf8(text, i, length); length == 0) {
      append_escape(text_, 0xfffd);
      length = 1;
    } else if (point < 0x10000) {
      append_escape(text_, point);
    } else {
      append_escape(text_, 0xd800 + ((point - 0x10000) >> 10));
      append_escape(text_, 0xdc00 + (point & 0x3ff));
    }
    i += length;
  }
  text_ += '"';
}

} // namespace svod
