// A word is NAME=VALUE or VALUE; names may hold any byte, so they are tried against the
// word's beginning instead of being cut out of it.
#include "runtime_stub/program/binding.h"

#include "runtime_stub/platform.h"
#include "runtime_stub/program/strings.h"
#include "runtime_stub/program/tensor_file.h"
#include "runtime_stub/program/value.h"

namespace packed {

namespace {

uint64_t next_random(uint64_t& state) { // SplitMix64, as published
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

bool is_space(char c) { return c == ' ' || c == ',' || c == '\n' || c == '\t'; }

// 1x3xf32 in front of =[...]
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

// 1x3xf32=[1 2 3]; one value stands for all.
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

Exit bind_file(Session& session, uint32_t i, const char* path, Printer& errors) {
  Text content;
  int32_t status = read_file(path, content);
  if (status < 0) {
    errors << "error: " << path << ": cannot be read (error " << -status << ")\n";
    return EXIT_FILE;
  }
  Tensor wanted = input_type(session, i), tensor;
  const char* error = read_tensor(form_of(Text(path), content), content, wanted, tensor);
  if (error == nullptr) return bind_input(session, i, tensor, Text(path), errors);
  errors << "error: " << path << ": " << error << ", for input '";
  errors.name(wanted.name);
  errors << "' ";
  print_type(errors, wanted.element, wanted.rank, wanted.dims);
  errors << "\n";
  return EXIT_BAD_DATA;
}

// A whole sequence, optional or map.
Exit bind_value_file(Session& session, const Value& value, const char* path,
                     Printer& errors) {
  Text content;
  ValueData data;
  int32_t status = read_file(path, content);
  if (status < 0) {
    errors << "error: " << path << ": cannot be read (error " << -status << ")\n";
    return EXIT_FILE;
  }
  const char* error = read_value(session, Side::Input, value, content, data);
  if (error == nullptr) return bind_tensors(session, value, data, Text(path), errors);
  errors << "error: " << path << ": " << error << ", for input '";
  errors.name(value.name);
  errors << "', ";
  print_value_kind(errors, session, value);
  errors << "\n";
  return EXIT_BAD_DATA;
}

// The path of a word NAME=@FILE.pb that names a sequence, an optional or a map; null for
// any other word. Their tensors have names of their own.
const char* value_path(const Session& session, Side side, const char* word,
                       Value& value) {
  Text whole(word);
  if (!whole.ends_with(".pb")) return nullptr;
  for (uint32_t v = 0; v < value_count(session, side); v++) {
    value = value_at(session, side, v);
    Text name = value.name;
    if (value.is_tensor() || !whole.starts_with(name) || name.size >= whole.size ||
        word[name.size] != '=') {
      continue;
    }
    return word + name.size + 1 + (word[name.size + 1] == '@');
  }
  return nullptr;
}

// `value` ends where its word ends, with a zero byte.
Exit bind_value(Session& session, uint32_t i, Text value, Printer& errors) {
  Tensor wanted = input_type(session, i), tensor;
  uint64_t seed = 1;
  if (value.starts_with("@")) return bind_file(session, i, value.data + 1, errors);
  if (value == Text("-")) return bind_file(session, i, value.data, errors);
  bool seeded = value.starts_with("random:") && read_unsigned(value.from(7), &seed);
  if (value == Text("random") || seeded) {
    if (fill_random(wanted, seed, tensor)) {
      return bind_input(session, i, tensor, value, errors);
    }
  } else if (value == Text("zeros")) {
    tensor = wanted;
    tensor.data = take_memory(wanted.bytes());
    if (tensor.data != nullptr) return bind_input(session, i, tensor, value, errors);
  } else {
    const char* error = read_literal(value, tensor);
    if (error == nullptr) return bind_input(session, i, tensor, value, errors);
    errors << "error: --input ";
    errors.name(value);
    errors << ": " << error << "\n";
    return EXIT_USAGE;
  }
  print_error(errors, "there is not enough memory");
  return EXIT_FILE;
}

uint32_t first_free(const Session& session) {
  uint32_t i = 0;
  while (i < session.entry->input_count && session.inputs[i] != nullptr) i++;
  return i;
}

Exit bind_word(Session& session, const char* word, Printer& errors) {
  Text value;
  Value whole;
  if (const char* path = value_path(session, Side::Input, word, whole)) {
    return bind_value_file(session, whole, path, errors);
  }
  uint32_t count = session.entry->input_count;
  uint32_t i = find_named(Text(word), count, session, input_type, value);
  bool named = i < count;
  if (!named) {
    i = first_free(session);
    value = Text(word);
  }
  if (i == count) {
    errors << "error: " << word << ": the model has only " << count << " inputs\n";
    return EXIT_USAGE;
  }
  if (session.inputs[i] != nullptr) {
    errors << "error: --input " << word << ": this input is given twice\n";
    return EXIT_USAGE;
  }
  whole = value_of(session, Side::Input, i);
  if (!named && !whole.is_tensor() && whole.first == i && value.ends_with(".pb")) {
    return bind_value_file(session, whole, word + (*word == '@'), errors);
  }
  // A word without a name that is none of the other forms is a file.
  bool special = value.starts_with("@") || value.starts_with("random") ||
                 value == Text("zeros") || value == Text("-") ||
                 value.find('=') < value.size;
  if (!named && !special) return bind_file(session, i, word, errors);
  return bind_value(session, i, value, errors);
}

Exit write_value_file(const Session& session, const Value& value, const char* path,
                      Printer& errors) {
  int32_t file = svod_open(path, SVOD_OPEN_WRITE);
  bool written = file >= 0;
  if (written) {
    Printer out(file);
    write_value(out, session, value);
    out.flush();
    written = !out.failed();
  }
  if (file >= 0) written = svod_close(file) == 0 && written;
  if (written) return EXIT_DONE;
  errors << "error: " << path << ": cannot be written\n";
  return EXIT_FILE;
}

Exit write_output(const Session& session, uint32_t i, Text value, Printer& errors) {
  const char* path = value.data + value.starts_with("@");
  Tensor tensor = output_type(session, i);
  if (Text(path) == Text("-")) {
    Printer out(1);
    print_value(out, tensor, ~uint64_t{0});
    return EXIT_DONE;
  }
  int32_t file = svod_open(path, SVOD_OPEN_WRITE);
  bool written = file >= 0 && write_tensor(file, form_of(Text(path), {}), tensor);
  if (file >= 0) written = svod_close(file) == 0 && written;
  if (written) return EXIT_DONE;
  errors << "error: " << path << ": cannot be written\n";
  return EXIT_FILE;
}

} // namespace

uint32_t find_named(Text word, uint32_t count, const Session& session,
                    Tensor (*type)(const Session&, uint32_t), Text& rest) {
  for (uint32_t i = 0; i < count; i++) {
    Text name = type(session, i).name;
    if (name.size < word.size && word.starts_with(name) && word.data[name.size] == '=') {
      rest = word.from(name.size + 1);
      return i;
    }
  }
  uint64_t equals = word.find('='), number = 0;
  if (equals < word.size && read_unsigned(word.first(equals), &number) &&
      number < count) {
    rest = word.from(equals + 1);
    return static_cast<uint32_t>(number);
  }
  return count;
}

void print_packed_value(Printer& out, const Session& session, uint32_t i) {
  Tensor packed = packed_value(session, i);
  uint64_t count = packed.elements();
  out.name(packed.name) << " = [";
  for (uint64_t at = 0; at < count; at++) {
    out << (at > 0 ? ", " : "");
    print_element(out, *packed.element, packed.data, at);
  }
  out << "]";
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

static Exit bind_strings(Session& session, uint32_t i, Tensor tensor, Text origin,
                         Printer& errors) {
  Tensor wanted = input_type(session, i);
  uint64_t where = 0;
  const char* error = fit_strings(tensor, wanted.width, where);
  session.inputs[i] = tensor.data;
  if (error == nullptr) return EXIT_DONE;
  errors << "error: ";
  errors.name(origin);
  errors << ": input '";
  errors.name(wanted.name);
  errors << "', string " << where << ": " << error << "; at most " << wanted.width
         << " bytes were packed for one (--string-bytes)\n";
  return EXIT_BAD_DATA;
}

Exit bind_input(Session& session, uint32_t i, const Tensor& tensor, Text origin,
                Printer& errors) {
  Tensor wanted = input_type(session, i);
  if (!same_type(tensor, wanted)) {
    errors << "error: ";
    errors.name(origin);
    errors << ": input '";
    errors.name(wanted.name);
    errors << "' is ";
    print_type(errors, wanted.element, wanted.rank, wanted.dims);
    errors << ", this is ";
    print_type(errors, tensor.element, tensor.rank, tensor.dims);
    errors << "\n";
    return EXIT_BAD_DATA;
  }
  if (is_text(*wanted.element)) return bind_strings(session, i, tensor, origin, errors);
  if (!svod_has_packed_value(session.model.image,
                             svod_input(session.model.image, session.entry, i),
                             tensor.data)) {
    errors << "error: ";
    errors.name(origin);
    errors << ": input '";
    errors.name(wanted.name);
    errors << "' has another value; packed for ";
    print_packed_value(errors, session, i);
    errors << "\n";
    return EXIT_BAD_DATA;
  }
  session.inputs[i] = tensor.data;
  if (reinterpret_cast<uintptr_t>(tensor.data) % SVOD_ALIGN == 0 && tensor.data)
    return EXIT_DONE;
  // Within a mapped file elements lie anywhere.
  void* copy = take_memory(tensor.bytes());
  session.inputs[i] = copy;
  if (copy == nullptr) {
    print_error(errors, "there is not enough memory");
    return EXIT_FILE;
  }
  if (tensor.bytes() > 0) memcpy(copy, tensor.data, static_cast<size_t>(tensor.bytes()));
  return EXIT_DONE;
}

Exit bind_inputs(Session& session, const Options& options, bool fill, Printer& errors) {
  uint32_t count = session.entry->input_count;
  for (uint32_t i = 0; i < count; i++) session.inputs[i] = nullptr;
  for (uint32_t w = 0; w < options.input_count; w++) {
    Exit status = bind_word(session, options.inputs[w], errors);
    if (status != EXIT_DONE) return status;
  }
  for (uint32_t i = first_free(session); i < count; i = first_free(session)) {
    Tensor wanted = input_type(session, i);
    if (Tensor packed = packed_value(session, i); packed.data != nullptr) {
      Exit status = bind_input(session, i, packed, packed.name, errors);
      if (status != EXIT_DONE) return status;
      continue;
    }
    if (!fill) {
      errors << "error: input '";
      errors.name(wanted.name);
      errors << "' ";
      print_type(errors, wanted.element, wanted.rank, wanted.dims);
      errors << " is not given; --help shows how\n";
      return EXIT_USAGE;
    }
    Exit status = bind_value(session, i, Text("random"), errors);
    if (status != EXIT_DONE) return status;
  }
  return EXIT_DONE;
}

// A word --output [NAME=]@FILE; without a name it is for output `next`, or for the whole
// value that begins there. Moves `next` behind what is written.
static Exit write_word(const Session& session, const char* word, uint32_t& next,
                       Printer& errors) {
  Value whole;
  if (const char* path = value_path(session, Side::Output, word, whole)) {
    next += whole.count;
    return write_value_file(session, whole, path, errors);
  }
  uint32_t count = model_outputs(session);
  Text value;
  uint32_t i = find_named(Text(word), count, session, output_type, value);
  bool named = i < count;
  if (!named) {
    i = next;
    value = Text(word);
  }
  if (i >= count) {
    errors << "error: --output " << word << ": the model has only " << count
           << " outputs\n";
    return EXIT_USAGE;
  }
  whole = value_of(session, Side::Output, i);
  if (!named && !whole.is_tensor() && whole.first == i && value.ends_with(".pb")) {
    next += whole.count;
    return write_value_file(session, whole, word + (*word == '@'), errors);
  }
  next++;
  return write_output(session, i, value, errors);
}

Exit write_outputs(const Session& session, const Options& options, Printer& errors) {
  constexpr uint64_t kMostPrinted = 1024;
  uint32_t next = 0; // output of the next word if it has no name
  for (uint32_t w = 0; w < options.output_count; w++) {
    Exit status = write_word(session, options.outputs[w], next, errors);
    if (status != EXIT_DONE) return status;
  }
  if (options.output_count > 0) return EXIT_DONE;
  Printer out(1);
  for (uint32_t v = 0; v < value_count(session, Side::Output); v++) {
    Value value = value_at(session, Side::Output, v);
    bool present = is_present(session, value);
    if (!present || value.count == 0) {
      out.name(value.name);
      out << (present ? ": an empty sequence\n" : ": left out\n");
      continue;
    }
    for (uint32_t i = 0; i < value.count; i++) {
      Tensor tensor = output_type(session, value.first + i);
      out.name(tensor.name);
      out << ": ";
      print_value(out, tensor, kMostPrinted);
    }
  }
  out.flush();
  return out.failed() ? EXIT_FILE : EXIT_DONE;
}

} // namespace packed
