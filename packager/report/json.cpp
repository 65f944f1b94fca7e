// JSON text (RFC 8259). A model's name may hold any byte: valid UTF-8 is kept as \u
// escapes, any other byte becomes the replacement character, so that the result always
// parses.
#include "packager/report/json.h"

#include "compiler/support/text.h"

#include <cstdio>

namespace svod::packager {

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

static void append_escape(std::string& out, uint32_t unit) {
  char escape[8];
  std::snprintf(escape, sizeof(escape), "\\u%04x", unit & 0xffff);
  out += escape;
}

// JSON names a character above U+FFFF by its two UTF-16 halves.
static void append_units(std::string& out, uint32_t point) {
  if (point < 0x10000) return append_escape(out, point);
  append_escape(out, 0xd800 + ((point - 0x10000) >> 10));
  append_escape(out, 0xdc00 + (point & 0x3ff));
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
    } else {
      const Utf8Character point = decode_utf8(text, i);
      const bool valid = is_well_formed(point);
      append_units(text_, valid ? point.value : 0xfffd);
      if (valid) length = point.size;
    }
    i += length;
  }
  text_ += '"';
}

} // namespace svod::packager
