// A tensor as files and literals give it.
#ifndef SVOD_PROGRAM_TENSOR_H
#define SVOD_PROGRAM_TENSOR_H

#include "runtime_stub/format.h"
#include "runtime_stub/program/element.h"

namespace packed {

struct Tensor {
  Text name; // as the file has it; empty if it has none
  const Element* element = nullptr;
  uint32_t rank = 0;
  int64_t dims[SVOD_MAX_RANK] = {};
  uint64_t width = 0;         // bytes of one string, zeros after its end
  const void* data = nullptr; // row-major, little endian, aligned to 64

  uint64_t elements() const;
  uint64_t element_bytes() const { return is_text(*element) ? width : element->bytes(1); }
  uint64_t bytes() const {
    return is_text(*element) ? elements() * width : element->bytes(elements());
  }
};

// f32[1,64,56,56]
void print_type(Printer& out, const Element* element, uint32_t rank, const int64_t* dims);
// 1x64x56x56xf32=[...], at most `most` elements.
void print_value(Printer& out, const Tensor& tensor, uint64_t most);
// dims, cut off or overflowing, are refused: false.
bool set_dims(Tensor& tensor, const int64_t* dims, uint32_t rank);
bool same_type(const Tensor& a, const Tensor& b);

// Bytes in memory, aligned to 64, zeros, that live as long as the MemoryScope that they
// are taken in, or without one as long as the program. Null when there is none.
void* take_memory(uint64_t bytes);
// Gives them back before.
void drop_memory(const void* data, uint64_t bytes);

// For what runs on one input after another: memory that is taken while it lives, and
// files that are read, are given back at its end. Scopes do not nest.
class MemoryScope {
public:
  MemoryScope();
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;
};
// Pages that the scope gives back: a file in memory.
void hold_memory(const void* data, uint64_t bytes);

} // namespace packed

#endif
