// The names in a folder, in the order of their bytes.
#ifndef SVOD_PROGRAM_FOLDER_H
#define SVOD_PROGRAM_FOLDER_H

#include "runtime_stub/program/text.h"

namespace packed {

struct Names {
  Text* list = nullptr; // each is terminated
  uint64_t count = 0;
};

// All but . and .., sorted. 0 or a negative errno.
int32_t read_folder(const char* path, Names& out);
void sort(Text* list, uint64_t count);

} // namespace packed

#endif
