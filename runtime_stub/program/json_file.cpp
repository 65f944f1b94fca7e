// A tensor as JSON: lists in lists to the depth of its rank, numbers innermost; a complex
// number is a list of two. NaN, Infinity and -Infinity are words, as Python reads and
// writes them. The type is the input's: a file of numbers says none.
#include "runtime_stub/platform.h"
#include "runtime_stub/program/json_text.h"
#include "runtime_stub/program/literal.h"
#include "runtime_stub/program/strings.h"
#include "runtime_stub/program/tensor_file.h"

namespace packed {

namespace {

constexpr const char* kMalformed = "it is no JSON of nested lists";
constexpr const char* kOtherShape = "its lists are not as long as the shape says";

// The lists around an element: one per axis, and one around the halves of a complex one.
struct Lists {
  int64_t extents[SVOD_MAX_RANK + 1];
  uint32_t depth = 0;

  explicit Lists(const Tensor& tensor) {
    for (; depth < tensor.rank; depth++) extents[depth] = tensor.dims[depth];
    if (tensor.element->kind == ElementKind::Complex) extents[depth++] = 2;
  }
};

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Calls use(scalar) for each element in order; why the file is wrong, or null.
template <class F> const char* each_scalar(Text rest, const Lists& lists, F&& use) {
  int64_t at[SVOD_MAX_RANK + 2] = {}; // elements so far of each open list
  uint32_t depth = 0;
  bool ready = true; // for an element: not behind one
  for (;;) {
    while (rest.size > 0 && is_space(rest.data[0])) rest = rest.from(1);
    if (rest.size == 0) return depth == 0 && !ready ? nullptr : kMalformed;
    if (depth == 0 && !ready) return kMalformed;
    const char c = rest.data[0];
    if (c == ']') {
      if (depth == 0 || (ready && at[depth] > 0)) return kMalformed;
      if (at[depth] != lists.extents[depth - 1]) return kOtherShape;
      depth--;
    } else if (c == ',') {
      if (ready) return kMalformed;
      ready = true;
      rest = rest.from(1);
      continue;
    } else {
      if (!ready) return kMalformed;
      if (depth > 0 && at[depth]++ == lists.extents[depth - 1]) return kOtherShape;
      if ((c == '[') != (depth < lists.depth)) return kOtherShape;
      if (c == '[') {
        at[++depth] = 0;
        rest = rest.from(1);
        continue;
      }
      Text scalar = json_scalar(rest);
      if (scalar.size == 0) return kMalformed;
      if (const char* error = use(scalar)) return error;
      rest = rest.from(scalar.size - 1);
    }
    ready = false;
    rest = rest.from(1);
  }
}

int32_t hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = static_cast<char>(c | 0x20);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// \uXXXX as UTF-8; two of them where the first is half a pair. Moves `at` behind.
bool read_escape(Text text, uint64_t& at, uint32_t& code) {
  code = 0;
  if (text.size - at < 4) return false;
  for (uint64_t end = at + 4; at < end; at++) {
    int32_t digit = hex_digit(text.data[at]);
    if (digit < 0) return false;
    code = code * 16 + static_cast<uint32_t>(digit);
  }
  return true;
}

const char* read_strings(Text content, const Lists& lists, Tensor& out) {
  auto buffer = static_cast<char*>(take_memory(content.size));
  if (buffer == nullptr) return "there is no memory for it";
  StringRows rows;
  for (int32_t pass = 0; pass < 2; pass++) {
    const bool counting = pass == 0;
    const char* error = each_scalar(content, lists, [&](Text scalar) -> const char* {
      Text string;
      if (!read_json_string(scalar, buffer, string)) return "a string is malformed";
      counting ? rows.count(string) : rows.put(string);
      return nullptr;
    });
    if (error != nullptr) return error;
    if (!counting) break;
    if (rows.has_zero()) return "a string has a zero byte in it";
    if (!rows.begin(out)) return "there is no memory for it";
  }
  return nullptr;
}

} // namespace

Text skip_spaces(Text text) {
  while (text.size > 0 && is_space(text.data[0])) text = text.from(1);
  return text;
}

uint64_t json_value_size(Text text) {
  uint64_t depth = 0;
  Text rest = text;
  while (rest.size > 0) {
    const char c = rest.data[0];
    const bool opens = c == '[' || c == '{', closes = c == ']' || c == '}';
    if (depth == 0 && (closes || c == ',' || c == ':')) return 0;
    uint64_t size = 1;
    if (opens) depth++;
    if (closes) depth--;
    if (!opens && !closes && c != ',' && c != ':' && !is_space(c)) {
      size = json_scalar(rest).size;
      if (size == 0) return 0;
    }
    rest = rest.from(size);
    if (depth == 0) return text.size - rest.size;
  }
  return 0;
}

void write_json_string(Printer& out, Text string, bool strict) {
  out << "\"";
  while (string.size > 0) {
    auto byte = static_cast<uint8_t>(string.data[0]);
    const uint64_t size = strict ? character_size(string) : 1;
    if (byte == '"' || byte == '\\') out << "\\";
    if (size == 0) {
      out << "\\ufffd";
    } else if (byte < 0x20) {
      out << "\\u00" << Text(&"01"[byte >> 4], 1)
          << Text(&"0123456789abcdef"[byte & 15], 1);
    } else {
      out << string.first(size);
    }
    string = string.from(size == 0 ? 1 : size);
  }
  out << "\"";
}

void write_json_scalar(Printer& out, const Element& element, const Tensor& tensor,
                       uint64_t i) {
  if (is_text(element)) return write_json_string(out, string_at(tensor, i), false);
  if (!is_float(element)) {
    if (element.kind != ElementKind::Bool) {
      return print_element(out, element, tensor.data, i);
    }
    out << (load_bits(element, tensor.data, i) != 0 ? "true" : "false");
    return;
  }
  double value = load(element, tensor.data, i);
  if (value != value) {
    out << "NaN";
  } else if (value - value != 0) {
    out << (value < 0 ? "-Infinity" : "Infinity");
  } else if (value == 0 && __builtin_signbit(value)) {
    out << "-0.0";
  } else {
    out.number(value, element.bits == 64 ? 17 : 9);
  }
}

Text json_scalar(Text rest) {
  uint64_t size = 0;
  if (rest.data[0] == '"') {
    for (size = 1; size < rest.size && rest.data[size] != '"'; size++) {
      if (rest.data[size] == '\\') size++;
    }
    return size < rest.size ? rest.first(size + 1) : Text(rest.data, 0);
  }
  while (size < rest.size && !is_space(rest.data[size]) && rest.data[size] != ',' &&
         rest.data[size] != ']' && rest.data[size] != '[' && rest.data[size] != '}' &&
         rest.data[size] != '{' && rest.data[size] != ':') {
    size++;
  }
  return rest.first(size);
}

bool read_json_string(Text scalar, char* buffer, Text& out) {
  if (scalar.size < 2 || scalar.data[0] != '"') return false;
  Text text = scalar.from(1).first(scalar.size - 2);
  uint64_t size = 0;
  for (uint64_t at = 0; at < text.size;) {
    char c = text.data[at++];
    if (c != '\\') {
      buffer[size++] = c;
      continue;
    }
    c = text.data[at++];
    constexpr char kFrom[] = "\"\\/bfnrt", kTo[] = "\"\\/\b\f\n\r\t";
    const uint64_t which = Text(kFrom).find(c);
    uint32_t code = 0, low = 0;
    if (which < sizeof(kFrom) - 1) {
      buffer[size++] = kTo[which];
      continue;
    }
    if (c != 'u' || !read_escape(text, at, code)) return false;
    if (code >= 0xd800 && code < 0xdc00) {
      if (!text.from(at).starts_with("\\u")) return false;
      at += 2;
      if (!read_escape(text, at, low)) return false;
      if (low < 0xdc00 || low > 0xdfff) return false;
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xdc00 && code < 0xe000) {
      return false;
    }
    size += encode_character(code, reinterpret_cast<uint8_t*>(buffer) + size);
  }
  out = {buffer, size};
  return true;
}

const char* read_json(Text content, const Tensor& wanted, Tensor& out) {
  const Lists lists(wanted);
  out = wanted;
  out.name = {};
  if (is_text(*wanted.element)) return read_strings(content, lists, out);
  void* data = take_memory(out.bytes());
  if (data == nullptr) return "there is no memory for it";
  out.data = data;
  uint64_t i = 0;
  const bool words = is_float(part_of(*wanted.element));
  return each_scalar(content, lists, [&](Text scalar) -> const char* {
    // As strings, too, which is how strict JSON has NaN and the infinities.
    if (words && scalar.starts_with("\"") &&
        (scalar.ends_with("NaN\"") || scalar.ends_with("Infinity\"")))
      scalar = scalar.from(1).first(scalar.size - 2);
    return store_word(part_of(*wanted.element), data, i++, scalar)
               ? nullptr
               : "a value is malformed";
  });
}

void write_json(Printer& out, const Tensor& tensor) {
  write_json_lists(out, tensor, write_json_scalar);
  out << "\n";
}

void write_json_lists(Printer& out, const Tensor& tensor,
                      void (*scalar)(Printer&, const Element&, const Tensor&, uint64_t)) {
  const Lists lists(tensor);
  const Element& part = part_of(*tensor.element);
  int64_t at[SVOD_MAX_RANK + 1] = {};
  uint32_t depth = 0, opened = 0;
  uint64_t count = 1;
  while (depth < lists.depth && lists.extents[depth] > 0) {
    count *= static_cast<uint64_t>(lists.extents[depth++]);
  }
  const bool empty = depth < lists.depth; // then `count` lists without an element
  for (uint64_t i = 0; i < count; i++) {
    for (; opened < depth; opened++) out << "[";
    if (empty) {
      out << "[]";
    } else {
      scalar(out, part, tensor, i);
    }
    uint32_t axis = depth;
    while (axis > 0 && ++at[axis - 1] == lists.extents[axis - 1]) {
      at[--axis] = 0;
      opened--;
      out << "]";
    }
    if (i + 1 < count) out << ", ";
  }
}

} // namespace packed
