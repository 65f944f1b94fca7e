// A word is NAME=VALUE or VALUE, and a value is a file unless it can be nothing else.
// Everything is checked against the packed type before it reaches the run.
#include "runtime_stub/program/binding.h"

#include "runtime_stub/platform.h"
#include "runtime_stub/program/data_sets.h"
#include "runtime_stub/program/literal.h"
#include "runtime_stub/program/npz.h"
#include "runtime_stub/program/open_inputs.h"
#ifdef SVOD_PICTURES
#include "runtime_stub/program/pictures.h"
#endif
#include "runtime_stub/program/strings.h"
#include "runtime_stub/program/tensor_file.h"
#include "runtime_stub/program/words.h"

namespace packed {

Exit bind_file(Session& session, uint32_t i, const char* path, Printer& errors) {
  Text content;
  int32_t status = read_file(path, content);
  if (status < 0) return file_error(errors, path, "read", -status);
#ifdef SVOD_PICTURES
  // What is no array is a picture, whatever it is called.
  const FileForm form = form_of(Text(path), content);
  if (is_picture(session, i) && form == FileForm::Raw)
    return bind_picture(session, i, content, Text(path), errors);
#endif
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

namespace {

// A whole sequence, optional or map.
Exit bind_value_file(Session& session, const Value& value, const char* path,
                     Printer& errors) {
  Text content;
  ValueData data;
  int32_t status = read_file(path, content);
  if (status < 0) return file_error(errors, path, "read", -status);
  const char* error = read_value(session, Side::Input, value, content, data);
  if (error == nullptr) return bind_tensors(session, value, data, Text(path), errors);
  errors << "error: " << path << ": " << error << ", for input '";
  errors.name(value.name);
  errors << "', ";
  print_value_kind(errors, session, value);
  errors << "\n";
  return EXIT_BAD_DATA;
}

Exit given_twice(const char* word, Printer& errors) {
  errors << "error: --input " << word << ": this input is given twice\n";
  return EXIT_USAGE;
}

Exit bind_made(Session& session, uint32_t i, Text value, uint64_t seed, Printer& errors) {
#ifdef SVOD_PICTURES
  if (is_picture(session, i)) return make_picture(session, i, value, seed, errors);
#endif
  Tensor tensor = most_of(session, i);
  bool made = value == Text("zeros")
                  ? (tensor.data = take_memory(tensor.bytes())) != nullptr
                  : fill_random(tensor, seed, tensor);
  if (made) return bind_input(session, i, tensor, value, errors);
  return no_memory(errors);
}

// `value` is terminated. Whatever is not made from the word itself is a file, with @ or
// without.
Exit bind_value(Session& session, uint32_t i, const char* value, Printer& errors) {
  Text text(value);
  uint64_t seed = 1;
  if (*value == '@') return bind_file(session, i, value + 1, errors);
  bool seeded = text.starts_with("random:") && read_unsigned(text.from(7), &seed);
  if (text == Text("random") || text == Text("zeros") || seeded) {
    return bind_made(session, i, text, seed, errors);
  }
  if (text.find('=') == text.size || is_file(value)) {
    Exit status = bind_file(session, i, value, errors);
    if (status == EXIT_FILE && !is_file(value)) {
      errors << "a value is a file, random, zeros or a literal like 1x3xf32=[1 2 3]\n";
    }
    return status;
  }
  Tensor tensor;
  const char* error = read_literal(text, tensor);
  if (error == nullptr) return bind_input(session, i, tensor, text, errors);
  errors << "error: --input ";
  errors.name(text) << ": " << error << "\n";
  return EXIT_USAGE;
}

bool is_bound(const Session& session, const Value& value) {
  for (uint32_t i = 0; i < value.count; i++) {
    if (session.inputs[value.first + i] == nullptr) return false;
  }
  return value.count > 0;
}

// A value whose tensors have names of their own, or none: a sequence, a map, or an
// optional that was packed as left out.
Exit bind_whole(Session& session, const Value& value, const char* word, const char* rest,
                Printer& errors) {
  if (is_bound(session, value)) return given_twice(word, errors);
  if (Text(rest).ends_with(".pb")) {
    return bind_value_file(session, value, rest + (*rest == '@'), errors);
  }
  ValueData none;
  none.present = false;
  if (Text(rest) == Text("none") && value.has(SVOD_VALUE_OPTIONAL)) {
    return bind_tensors(session, value, none, Text(word), errors);
  }
  errors << "error: --input ";
  errors.name(Text(word)) << ": ";
  errors.name(value.name) << ", ";
  print_value_kind(errors, session, value);
  errors << ", is given as a whole, by a file .pb";
  if (value.has(SVOD_VALUE_OPTIONAL)) errors << " or as none";
  errors << "\n";
  return EXIT_USAGE;
}

// Whether a file is an optional without an element: what an input that was packed as left
// out takes, and no other input does.
bool is_empty_optional(const Session& session, const Value& value, const char* path) {
  Text content;
  ValueData data;
  return read_file(path, content) == 0 &&
         read_value(session, Side::Input, value, content, data) == nullptr;
}

// A word without a name is for the next input in the model's order that has none yet.
Exit bind_next(Session& session, const char* word, uint32_t& next, Printer& errors) {
  const bool whole = Text(word).ends_with(".pb");
  const char* path = word + (*word == '@');
  if (Text(word).ends_with(".npz")) return bind_archive(session, path, errors);
  for (uint32_t count = value_count(session, Side::Input); next < count; next++) {
    Value value = value_at(session, Side::Input, next);
    if (value.count == 0) {
      const bool optional = value.has(SVOD_VALUE_ABSENT) && whole;
      if (!optional || !is_empty_optional(session, value, path)) continue;
      next++;
      return bind_value_file(session, value, path, errors);
    }
    if (is_bound(session, value)) continue;
    if (whole && !value.is_tensor() && session.inputs[value.first] == nullptr) {
      return bind_value_file(session, value, path, errors);
    }
    uint32_t i = value.first;
    while (session.inputs[i] != nullptr) i++;
    return bind_value(session, i, word, errors);
  }
  errors << "error: " << word << ": the model has only " << model_inputs(session)
         << " inputs\n";
  return EXIT_USAGE;
}

Exit bind_word(Session& session, const char* word, uint32_t& next, Printer& errors) {
  Word found = read_word(session, Side::Input, word);
  switch (found.kind) {
  case WordKind::Nameless:
    return bind_next(session, word, next, errors);
  case WordKind::Tensor:
    if (session.inputs[found.tensor] != nullptr) return given_twice(word, errors);
    found.value = value_of(session, Side::Input, found.tensor);
    if (found.value.has(SVOD_VALUE_OPTIONAL) && Text(found.rest) == Text("none")) {
      return bind_whole(session, found.value, word, found.rest, errors);
    }
    return bind_value(session, found.tensor, found.rest, errors);
  case WordKind::Value:
    return bind_whole(session, found.value, word, found.rest, errors);
  case WordKind::Unknown:
    break;
  }
  return unknown_name(session, Side::Input, Text(word), errors);
}

uint32_t first_free(const Session& session) {
  uint32_t i = 0;
  while (i < session.entry->input_count &&
         (session.inputs[i] != nullptr || is_state(session, i)))
    i++;
  return i;
}

} // namespace

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
  if (!takes_type(session, i, tensor)) {
    errors << "error: ";
    errors.name(origin);
    errors << ": input '";
    errors.name(wanted.name);
    errors << "' is ";
    print_input_type(errors, session, i);
    errors << ", this is ";
    print_type(errors, tensor.element, tensor.rank, tensor.dims);
    errors << "\n";
    return EXIT_BAD_DATA;
  }
  if (is_state(session, i)) {
    set_state(session, i, tensor);
    return EXIT_DONE;
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
  if (is_open(session, i)) {
#ifdef SVOD_PICTURES
    if (is_picture(session, i)) note_origin(session, i, origin);
#endif
    if (spread_input(session, i, tensor)) return EXIT_DONE;
    return no_memory(errors);
  }
  session.inputs[i] = tensor.data;
  if (reinterpret_cast<uintptr_t>(tensor.data) % SVOD_ALIGN == 0 && tensor.data)
    return EXIT_DONE;
  // Within a mapped file elements lie anywhere.
  void* copy = take_memory(tensor.bytes());
  session.inputs[i] = copy;
  if (copy == nullptr) return no_memory(errors);
  if (tensor.bytes() > 0) memcpy(copy, tensor.data, static_cast<size_t>(tensor.bytes()));
  return EXIT_DONE;
}

// What the words give, then what was packed for one value.
Exit bind_words(Session& session, const Options& options, Printer& errors) {
  const uint32_t count = session.entry->input_count;
  if (!clear_inputs(session)) return no_memory(errors);
  uint32_t next = 0; // value of the next word without a name
  for (uint32_t w = 0; w < options.word_count; w++) {
    if (options.is_output(w)) continue;
    Exit status = bind_word(session, options.words[w], next, errors);
    if (status != EXIT_DONE) return status;
  }
  for (uint32_t i = 0; i < count; i++) {
    const Tensor packed = packed_value(session, i);
    if (session.inputs[i] != nullptr || packed.data == nullptr) continue;
    Exit status = bind_input(session, i, packed, packed.name, errors);
    if (status != EXIT_DONE) return status;
  }
  return EXIT_DONE;
}

FreeInputs::FreeInputs(const Session& session) {
  for (uint32_t i = 0; i < session.entry->input_count; i++)
    if (session.inputs[i] == nullptr && !is_state(session, i))
      bits_[i / 64] |= uint64_t{1} << i % 64;
}

bool FreeInputs::any() const {
  for (uint64_t bits : bits_)
    if (bits != 0) return true;
  return false;
}

void FreeInputs::clear(Session& session) const {
  for (uint32_t i = 0; i < session.entry->input_count; i++)
    if (has(i)) session.inputs[i] = nullptr;
}

Exit bind_path(Session& session, const char* path, Printer& errors) {
  uint32_t next = 0;
  Path word; // with @ it can be nothing but a file
  if (word.add("@") && word.add(Text(path)))
    return bind_next(session, word.text, next, errors);
  return file_error(errors, path, "read", SVOD_ENAMETOOLONG);
}

// input 'x' f32[1,3,224,224]
static void print_wanted(Printer& out, const Session& session, uint32_t i) {
  const Tensor wanted = input_type(session, i);
  out << "input '";
  out.name(wanted.name) << "' ";
#ifdef SVOD_PICTURES
  if (is_picture(session, i)) {
    out << "(a picture file)";
    return;
  }
#endif
  print_type(out, wanted.element, wanted.rank, wanted.dims);
}

Exit check_given(const Session& session, Text origin, Printer& errors) {
  const uint32_t i = first_free(session);
  if (i == session.entry->input_count) return EXIT_DONE;
  errors << "error: " << origin << " has no data for ";
  print_wanted(errors, session, i);
  errors << "\n";
  return EXIT_BAD_DATA;
}

Exit bind_inputs(Session& session, const Options& options, bool fill, Printer& errors) {
  const uint32_t count = session.entry->input_count;
  Exit bound = bind_words(session, options, errors);
  if (bound != EXIT_DONE) return bound;
  for (uint32_t i = first_free(session); i < count; i = first_free(session)) {
    if (!fill) {
      errors << "error: ";
      print_wanted(errors, session, i);
      errors << " is not given; --help shows how\n";
      return EXIT_USAGE;
    }
    Exit status = bind_value(session, i, "random", errors);
    if (status != EXIT_DONE) return status;
  }
  return EXIT_DONE;
}

} // namespace packed
