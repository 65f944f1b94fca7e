#include "runtime_stub/program/data_sets.h"

#include "runtime_stub/platform.h"
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

} // namespace packed
