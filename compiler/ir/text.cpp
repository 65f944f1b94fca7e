// The small pieces of the text form.
#include "compiler/ir/text.h"

#include "compiler/ir/build.h"

#include <charconv>
#include <cmath>

namespace svod {

std::string type_text(DType dtype, const Shape& shape) {
  std::string out(info(dtype).text);
  out += '[';
  for (size_t i = 0; i < shape.size(); ++i)
    out += (i ? "," : "") + std::to_string(shape[i]);
  return out + ']';
}

template <class T> static std::string number_text(T value) {
  char buffer[64];
  auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  return {buffer, result.ptr};
}

static std::string hex_text(uint64_t bits) {
  char buffer[16];
  auto result = std::to_chars(buffer, buffer + sizeof buffer, bits, 16);
  return "0x" + std::string(buffer, result.ptr);
}

std::string scalar_text(DType dtype, uint64_t bits) {
  if (!is_float(dtype)) {
    if (info(dtype).kind != DTypeKind::Int) return number_text(bits);
    int unused = 64 - 8 * byte_size(dtype);
    return number_text(static_cast<int64_t>(bits << unused) >> unused);
  }
  double value = scalar_value(dtype, bits);
  if (std::isnan(value)) return bits == scalar_bits(dtype, NAN) ? "nan" : hex_text(bits);
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return dtype == DType::F64 ? number_text(value)
                             : number_text(static_cast<float>(value));
}

template <class T> static std::optional<T> whole(std::string_view text, auto... base) {
  T value{};
  auto result = std::from_chars(text.data(), text.data() + text.size(), value, base...);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size())
    return std::nullopt;
  return value;
}

static bool fits(DType dtype, uint64_t bits) {
  // A signed element of less than a byte fills its byte with its sign.
  int width =
      info(dtype).kind == DTypeKind::Int ? 8 * byte_size(dtype) : info(dtype).bits;
  return width == 64 || bits >> width == 0;
}

std::optional<uint64_t> scalar_from_text(DType dtype, std::string_view text) {
  if (text.starts_with("0x")) {
    auto bits = whole<uint64_t>(text.substr(2), 16);
    return bits && fits(dtype, *bits) ? bits : std::nullopt;
  }
  if (is_float(dtype)) {
    auto value = whole<double>(text); // accepts inf and nan
    if (!value) return std::nullopt;
    return scalar_bits(dtype, *value);
  }
  if (info(dtype).kind != DTypeKind::Int) {
    auto bits = whole<uint64_t>(text);
    if (!bits || !fits(dtype, *bits) || (dtype == DType::Bool && *bits > 1))
      return std::nullopt;
    return bits;
  }
  auto value = whole<int64_t>(text);
  if (!value) return std::nullopt;
  uint64_t bits = scalar_bits_int(dtype, *value);
  int unused = 64 - 8 * byte_size(dtype);
  bool exact = static_cast<int64_t>(bits << unused) >> unused == *value;
  return exact ? std::optional(bits) : std::nullopt;
}

std::optional<int64_t> int_from_text(std::string_view text) {
  return whole<int64_t>(text);
}

std::string name_text(std::string_view name) {
  static const char* digits = "0123456789abcdef";
  std::string out = "\"";
  for (char c : name) {
    auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\') {
      out += c;
      continue;
    }
    out += "\\x";
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out + '"';
}

std::optional<std::string> name_from_text(std::string_view text) {
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return std::nullopt;
  text = text.substr(1, text.size() - 2);
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') return std::nullopt;
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    if (i + 3 >= text.size() || text[i + 1] != 'x') return std::nullopt;
    auto byte = whole<unsigned char>(text.substr(i + 2, 2), 16);
    if (!byte) return std::nullopt;
    out += static_cast<char>(*byte);
    i += 3;
  }
  return out;
}

std::vector<PayloadField> payload_fields(Op op) {
  using Kind = PayloadField::Kind;
  std::vector<PayloadField> fields;
  std::string_view legend = info(op).payload;
  while (!legend.empty()) {
    size_t end = std::min(legend.find(' '), legend.size());
    std::string_view word = legend.substr(0, end);
    legend.remove_prefix(std::min(end + 1, legend.size()));
    if (word.ends_with("[R]"))
      fields.push_back({Kind::PerAxis, word.substr(0, word.size() - 3)});
    else if (word.ends_with("..."))
      fields.push_back({Kind::Rest, word.substr(0, word.size() - 3)});
    else
      fields.push_back({Kind::One, word});
  }
  return fields;
}

} // namespace svod
