// Text that comes from a model: how it is shown, and its characters. A model's strings
// may hold any byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace svod {

// Safe for a terminal: bytes that are not printable ASCII as \xNN, cut at `limit` bytes.
std::string escaped(std::string_view text, size_t limit = 80);

// A name in a message: escaped, in single quotes.
std::string quoted(std::string_view name);

struct Utf8Character {
  uint32_t value = 0;
  size_t size = 0; // bytes; 0: no character begins there
};

// The character that begins at text[at], told by the pattern of its bytes alone.
Utf8Character decode_utf8(std::string_view text, size_t at);

// Whether Unicode allows these bytes: no longer form of what has a shorter one, no half
// of a surrogate pair, nothing above U+10FFFF.
bool is_well_formed(Utf8Character character);

void append_utf8(std::string& out, uint32_t character);

} // namespace svod
