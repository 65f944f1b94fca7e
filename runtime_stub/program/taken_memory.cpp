// Memory comes in whole pages from the system and is seldom given back: a program reads,
// runs once and ends. Where it runs on many inputs a scope lists what is taken in it.
// There is one thread that takes memory.
#include "runtime_stub/platform.h"
#include "runtime_stub/program/tensor.h"

namespace packed {

namespace {

struct Piece {
  const void* data;
  uint64_t bytes;
};

// Of the scope that lives; room is 0 without one.
struct Pieces {
  Piece* list = nullptr;
  uint64_t count = 0, room = 0;
};
Pieces held;

constexpr uint64_t kFirstRoom = 256;

Piece* take_list(uint64_t room) {
  return static_cast<Piece*>(svod_allocate(room * sizeof(Piece)));
}

} // namespace

MemoryScope::MemoryScope() {
  held = {take_list(kFirstRoom), 0, kFirstRoom};
  if (held.list == nullptr) held = {};
}

MemoryScope::~MemoryScope() {
  for (uint64_t i = 0; i < held.count; i++)
    svod_unmap(held.list[i].data, held.list[i].bytes);
  if (held.list != nullptr) svod_unmap(held.list, held.room * sizeof(Piece));
  held = {};
}

// A piece that cannot be listed stays: too much is kept rather than too little.
void hold_memory(const void* data, uint64_t bytes) {
  if (held.room == 0 || data == nullptr) return;
  if (held.count == held.room) {
    Piece* larger = take_list(held.room * 2);
    if (larger == nullptr) return;
    memcpy(larger, held.list, static_cast<size_t>(held.count * sizeof(Piece)));
    svod_unmap(held.list, held.room * sizeof(Piece));
    held.list = larger;
    held.room *= 2;
  }
  held.list[held.count++] = {data, bytes};
}

void* take_memory(uint64_t bytes) {
  if (bytes == 0) bytes = 1;
  void* data = svod_allocate(bytes);
  hold_memory(data, bytes);
  return data;
}

// What is given back early was taken last, as a rule.
void drop_memory(const void* data, uint64_t bytes) {
  for (uint64_t i = held.count; i-- > 0;) {
    if (held.list[i].data != data) continue;
    held.list[i] = held.list[--held.count];
    break;
  }
  svod_unmap(data, bytes == 0 ? 1 : bytes);
}

} // namespace packed
