// Folders of ONNX test data: FOLDER/test_data_set_2/input_0.pb.
#ifndef SVOD_PROGRAM_DATA_SETS_H
#define SVOD_PROGRAM_DATA_SETS_H

#include "runtime_stub/program/session.h"
#include "runtime_stub/program/text.h"
#include "runtime_stub/program/value.h"

namespace packed {

// Ends with a zero. What does not fit is not added.
struct Path {
  char text[4096];
  uint64_t size = 0;
  bool add(Text part);
  bool add(uint64_t number);
};

// FOLDER/input_3.pb; false where that is too long.
bool data_path(Path& path, Text folder, Text kind, uint64_t number, Text suffix);

// Whether the folder holds outputs to compare with.
bool is_set(Text folder);
bool is_folder(const char* path);

// A file's value. 1: read, 0: there is no such file, negative: an error was printed.
int32_t read_set_file(const Path& path, const Session& session, Side side,
                      const Value& value, ValueData& data, Printer& errors);
// The value of kind `like` that a file names, else the one of its number.
Value find_named_value(const Session& session, Side side, Text name, const Value& like);
// Gives the inputs that have a file input_0.pb in the folder its value.
Exit bind_set_files(Session& session, Text folder, Printer& errors);

// Calls each(Text folder) for the folder where it is a set, else for every
// test_data_set_N in it. A mismatch does not end it, and is what comes out; another
// failure ends it.
template <class Each> Exit for_each_set(Text folder, Printer& errors, Each each) {
  while (folder.size > 1 && folder.ends_with("/")) folder = folder.first(folder.size - 1);
  if (is_set(folder)) return each(folder);
  Exit result = EXIT_DONE;
  uint64_t sets = 0;
  for (;; sets++) {
    Path path;
    if (!data_path(path, folder, Text("test_data_set_"), sets, Text("")))
      return EXIT_FILE;
    if (!is_folder(path.text)) break;
    Exit status = each(Text(path.text, path.size));
    if (status != EXIT_DONE && status != EXIT_MISMATCH) return status;
    if (status == EXIT_MISMATCH) result = status;
  }
  if (sets > 0) return result;
  errors << "error: " << folder << ": neither a test data set nor a folder of some\n";
  return EXIT_FILE;
}

} // namespace packed

#endif
