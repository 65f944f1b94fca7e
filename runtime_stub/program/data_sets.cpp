#include "runtime_stub/program/data_sets.h"

#include "runtime_stub/platform.h"
#include "runtime_stub/program/binding.h"
#include "runtime_stub/program/tensor_file.h"
#include "runtime_stub/program/words.h"

namespace packed {

bool Path::add(Text part) {
  if (part.size >= sizeof(text) - size) return false;
  memcpy(text + size, part.data, static_cast<size_t>(part.size));
  size += part.size;
  text[size] = 0;
  return true;
}

bool Path::add(uint64_t number) {
  char digits[20];
  uint64_t at = sizeof(digits);
  do {
    digits[--at] = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number != 0);
  return add(Text(digits + at, sizeof(digits) - at));
}

bool data_path(Path& path, Text folder, Text kind, uint64_t number, Text suffix) {
  return path.add(folder) && path.add(Text("/")) && path.add(kind) && path.add(number) &&
         path.add(suffix);
}

bool is_set(Text folder) {
  Path first;
  return data_path(first, folder, Text("output_"), 0, Text(".pb")) && is_file(first.text);
}

bool is_folder(const char* path) {
  SvodFileInfo info = {};
  return svod_stat_path(path, &info) == 0 && info.is_directory;
}

int32_t read_set_file(const Path& path, const Session& session, Side side,
                      const Value& value, ValueData& data, Printer& errors) {
  Text content;
  int32_t status = read_file(path.text, content);
  if (status == -SVOD_ENOENT) return 0;
  if (status < 0) {
    file_error(errors, path.text, "read", -status);
    return -1;
  }
  const char* error = read_value(session, side, value, content, data);
  if (error == nullptr) return 1;
  errors << "error: " << path.text << ": " << error << "\n";
  return -1;
}

Value find_named_value(const Session& session, Side side, Text name, const Value& like) {
  for (uint32_t i = 0; i < value_count(session, side); i++) {
    Value value = value_at(session, side, i);
    bool named = name.size > 0 && value.name == name;
    if (named && value.kind == like.kind && value.flags == like.flags) return value;
  }
  return like;
}

Exit bind_set_files(Session& session, Text folder, Printer& errors) {
  for (uint32_t k = 0; k < value_count(session, Side::Input); k++) {
    Path path;
    ValueData data;
    if (!data_path(path, folder, Text("input_"), k, Text(".pb"))) return EXIT_FILE;
    Value value = value_at(session, Side::Input, k);
    int32_t status = read_set_file(path, session, Side::Input, value, data, errors);
    if (status < 0) return EXIT_BAD_DATA;
    if (status == 0) continue;
    value = find_named_value(session, Side::Input, data.name, value);
    Exit bound = bind_tensors(session, value, data, Text(path.text), errors);
    if (bound != EXIT_DONE) return bound;
  }
  return EXIT_DONE;
}

} // namespace packed
