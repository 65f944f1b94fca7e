// Linux tells names in parts and in no order. They are copied one behind the other into
// memory that doubles, and listed when all are there.
#include "runtime_stub/program/folder.h"

#include "runtime_stub/platform.h"
#include "runtime_stub/program/tensor.h"

namespace packed {

namespace {

constexpr int32_t kNoMemory = 12; // ENOMEM

// Texts one behind the other, each with its zero byte.
struct TextPile {
  char* data = nullptr;
  uint64_t size = 0, room = 0, count = 0;

  bool add(Text text) {
    while (room - size <= text.size) {
      const uint64_t larger = room == 0 ? 1 << 16 : 2 * room;
      auto moved = static_cast<char*>(take_memory(larger));
      if (moved == nullptr) return false;
      if (room > 0) {
        memcpy(moved, data, static_cast<size_t>(size));
        drop_memory(data, room);
      }
      data = moved;
      room = larger;
    }
    memcpy(data + size, text.data, static_cast<size_t>(text.size));
    size += text.size + 1; // what is taken is zero
    count++;
    return true;
  }
};

// The entries of an open folder. 0 or a negative errno.
int32_t pile_names(int32_t file, TextPile& pile) {
  alignas(8) char part[4096];
  for (;;) {
    const int64_t got =
        svod_read_folder(file, reinterpret_cast<SvodFolderEntry*>(part), sizeof(part));
    if (got <= 0) return static_cast<int32_t>(got);
    for (int64_t at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const SvodFolderEntry*>(part + at);
      const Text name(entry->name);
      at += entry->bytes;
      if (name == Text(".") || name == Text("..")) continue;
      if (!pile.add(name)) return -kNoMemory;
    }
  }
}

} // namespace

// Shell's, with gaps that shrink by 2.2.
void sort(Text* list, uint64_t count) {
  for (uint64_t gap = count; gap > 1;) {
    gap = gap < 5 ? 1 : gap * 5 / 11;
    for (uint64_t i = gap; i < count; i++) {
      const Text text = list[i];
      uint64_t to = i;
      for (; to >= gap && compare(text, list[to - gap]) < 0; to -= gap)
        list[to] = list[to - gap];
      list[to] = text;
    }
  }
}

int32_t read_folder(const char* path, Names& out) {
  const int32_t file = svod_open(path, SVOD_OPEN_READ);
  if (file < 0) return file;
  TextPile pile;
  const int32_t status = pile_names(file, pile);
  svod_close(file);
  if (status != 0) return status;
  out.count = pile.count;
  out.list = static_cast<Text*>(take_memory(pile.count * sizeof(Text)));
  if (out.list == nullptr) return -kNoMemory;
  const char* at = pile.data;
  for (uint64_t i = 0; i < out.count; i++) {
    out.list[i] = Text(at);
    at += out.list[i].size + 1;
  }
  sort(out.list, out.count);
  return 0;
}

} // namespace packed
