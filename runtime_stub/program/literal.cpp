// A literal is a type and its values between brackets. Random numbers come from a seed,
// so that two runs see the same.
#include "runtime_stub/program/literal.h"

#include "runtime_stub/platform.h"
#include "runtime_stub/program/strings.h"

namespace packed {

namespace {

uint64_t next_random(uint64_t& state) { // SplitMix64, as published
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

bool is_space(char c) { return c == ' ' || c == ',' || c == '\n' || c == '\t'; }

// "a" "b c" d
const char* read_string_values(Text values, Tensor& out) {
  auto buffer = static_cast<char*>(take_memory(values.size));
  if (buffer == nullptr) return "there is no memory for it";
  StringRows rows;
  uint64_t elements = out.elements();
  for (int32_t pass = 0; pass < 2; pass++) {
    bool counting = pass == 0;
    Text rest = values, string;
    for (;;) {
      while (rest.size > 0 && is_space(rest.data[0])) rest = rest.from(1);
      if (rest.size == 0) break;
      if (!read_quoted(rest, buffer, string)) return "a string is malformed";
      counting ? rows.count(string) : rows.put(string);
    }
    if (!counting) break;
    if (rows.size() > elements) return "it has too many values";
    if (rows.size() < elements) return "it has too few values";
    if (rows.has_zero()) return "a string has a zero byte in it";
    if (!rows.begin(out)) return "there is no memory for it";
  }
  return nullptr;
}

} // namespace

bool read_literal_type(Text text, Tensor& out) {
  int64_t dims[SVOD_MAX_RANK];
  uint32_t rank = 0;
  for (;;) {
    uint64_t end = text.find('x');
    Text part = text.first(end);
    if (end == text.size) {
      out.element = find_element_named(part);
      return out.element != nullptr && set_dims(out, dims, rank);
    }
    if (rank == SVOD_MAX_RANK || !read_signed(part, &dims[rank])) return false;
    rank++;
    text = text.from(end + 1);
  }
}

bool store_word(const Element& element, void* data, uint64_t i, Text word) {
  double value = 0;
  int64_t integer = 0;
  uint64_t large = 0;
  if (element.kind == ElementKind::Complex) return false;
  if (word == Text("true")) word = Text("1");
  if (word == Text("false")) word = Text("0");
  if (!is_float(element) && read_signed(word, &integer)) {
    store_integer(element, data, i, integer);
    return true;
  }
  if (element.kind == ElementKind::Uint && read_unsigned(word, &large)) {
    store_integer(element, data, i, static_cast<int64_t>(large));
    return true;
  }
  if (!is_float(element) || !read_float(word, &value)) return false;
  store(element, data, i, value);
  return true;
}

const char* read_literal(Text text, Tensor& out) {
  uint64_t equals = text.find('=');
  if (equals == text.size || !read_literal_type(text.first(equals), out)) {
    return "it is no file (@FILE), random, zeros or literal like 1x3xf32=[1 2 3]";
  }
  Text values = text.from(equals + 1);
  if (values.starts_with("[")) values = values.from(1);
  if (values.ends_with("]")) values = values.first(values.size - 1);
  if (is_text(*out.element)) return read_string_values(values, out);
  void* data = take_memory(out.bytes());
  if (data == nullptr) return "there is no memory for it";
  uint64_t count = 0, elements = out.elements();
  for (uint64_t at = 0; at < values.size;) {
    uint64_t end = at;
    while (end < values.size && !is_space(values.data[end])) end++;
    Text word = values.from(at).first(end - at);
    if (word.size > 0) {
      if (count == elements) return "it has too many values";
      if (!store_word(*out.element, data, count++, word)) return "a value is malformed";
    }
    at = end + 1;
  }
  uint64_t bits = count == 1 ? load_bits(*out.element, data, 0) : 0;
  for (uint64_t i = 1; count == 1 && i < elements; i++) {
    store_bits(*out.element, data, i, bits);
  }
  out.data = data;
  return count == elements || count == 1 ? nullptr : "it has too few values";
}

bool fill_random(const Tensor& type, uint64_t seed, Tensor& out) {
  out = type;
  void* data = take_memory(type.bytes());
  if (data == nullptr) return false;
  const Element& element = part_of(*type.element);
  uint64_t state = seed, count = type.elements() * (&element == type.element ? 1 : 2);
  bool byte = element.bits <= 8 && element.kind != ElementKind::Bool;
  if (is_text(*type.element))
    fill_words(out, next_random, state, static_cast<uint8_t*>(data));
  for (uint64_t i = 0; i < count && !is_text(*type.element); i++) {
    auto value = static_cast<int64_t>(next_random(state) >> 11);
    if (is_float(element)) {
      store(element, data, i, static_cast<double>(value) * 0x1p-52 - 1);
    } else {
      store_integer(element, data, i, value & (byte ? 255 : 1));
    }
  }
  out.data = data;
  return true;
}

} // namespace packed
