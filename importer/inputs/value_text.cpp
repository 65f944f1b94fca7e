#include "importer/inputs/value_text.h"

#include "compiler/ir/text.h"
#include "compiler/support/text.h"
#include "importer/formula/deciding_inputs.h"

#include <algorithm>
#include <cstring>

namespace svod::importer {

namespace {

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    words.push_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return words;
}

} // namespace

int64_t values_in(const std::string& text) { return std::ssize(split(text)); }

std::optional<std::vector<std::byte>>
value_from_text(const std::string& text, DType dtype, int64_t count, std::string& error) {
  const std::vector<std::string_view> words = split(text);
  const auto size = static_cast<size_t>(byte_size(dtype));
  if (static_cast<int64_t>(words.size()) != count || count > kMostFixedElements) {
    error = "it has " + std::to_string(count) + " elements, given are " +
            std::to_string(words.size());
    return std::nullopt;
  }
  std::vector<std::byte> bytes(words.size() * size);
  for (size_t i = 0; i < words.size(); ++i) {
    std::string_view word = words[i];
    if (dtype == DType::Bool && word == "true") word = "1";
    if (dtype == DType::Bool && word == "false") word = "0";
    const std::optional<uint64_t> bits = scalar_from_text(dtype, word);
    if (!bits) {
      error = quoted(word) + " is no " + std::string(info(dtype).text);
      return std::nullopt;
    }
    std::memcpy(bytes.data() + i * size, &*bits, size);
  }
  return bytes;
}

std::string value_text(DType dtype, const std::vector<std::byte>& bytes) {
  const auto size = static_cast<size_t>(byte_size(dtype));
  std::string text = "[";
  for (size_t at = 0; at < bytes.size(); at += size) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + at, size);
    text += (at ? ", " : "") + scalar_text(dtype, bits);
  }
  return text + "]";
}

std::string value_option(const std::string& name, int64_t count) {
  std::string text = "--value " + escaped(name) + "=";
  for (int64_t i = 0; i < count; ++i) text += i ? ",N" : "N";
  return text;
}

} // namespace svod::importer
